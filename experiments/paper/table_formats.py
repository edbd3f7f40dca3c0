"""Tables as Markdown, CSV and LaTeX."""

import csv
import io
import math
from typing import Callable, List, Mapping

from experiments.paper.table_model import Cell, Table

_PLUS_MINUS = '±'
_CSV_HEADER = (
  *('artifact', 'row', 'column', 'ours', 'low', 'high', 'spread', 'seeds'),
  *('games', 'paper', 'paper_spread', 'comparable', 'note'),
)
_LATEX_ESCAPES = {
  **{char: f'\\{char}' for char in '%&#_$'},
  _PLUS_MINUS: r'$\pm$',
  '–': '--',
  '>': '$>$',
}


def render(table: Table, file_format: str) -> str:
  """Renders a table.

  Args:
    table: the table.
    file_format: `md`, `csv` or `tex`.

  Raises:
    ValueError: for another format.
  """
  if file_format not in FORMATS:
    raise ValueError(
      f'format={file_format!r} is unknown: choose one of {", ".join(FORMATS)}.'
    )
  return FORMATS[file_format](table)


def ours(cell: Cell) -> str:
  """Our number with its spread or its interval; a dash if it is missing."""
  if cell.text or cell.is_missing:
    return cell.text or '–'
  value = cell.digits(cell.value)
  if not math.isnan(cell.spread):
    return f'{value} {_PLUS_MINUS} {cell.digits(cell.spread)}'
  if not math.isnan(cell.low):
    return f'{value} [{cell.digits(cell.low)}, {cell.digits(cell.high)}]'
  return value


def paper(cell: Cell) -> str:
  """The paper's number, in parentheses where ours is not comparable."""
  if not cell.paper:
    return ''
  spread = f' {_PLUS_MINUS} {cell.paper_spread}' if cell.paper_spread else ''
  text = f'{cell.paper}{spread}'
  return text if cell.comparable else f'({text})'


def _shown(cell: Cell) -> str:
  """Both numbers: ours, then the paper's."""
  if not cell.paper:
    return ours(cell)
  return f'{ours(cell)}; {paper(cell)}'


def _markdown(table: Table) -> str:
  lines = [
    f'## {table.id}: {table.title}',
    '',
    _markdown_row([table.corner, *table.columns]),
    _markdown_row(['---', *('--:' for _ in table.columns)]),
    *(
      _markdown_row([row.title, *map(_shown, row.cells)]) for row in table.rows
    ),
    '',
    table.caption,
  ]
  if table.notes:
    lines += ['', *(f'- {note}' for note in table.notes)]
  return '\n'.join(lines) + '\n'


def _markdown_row(cells: List[str]) -> str:
  return f'| {" | ".join(cell.replace("|", "/") for cell in cells)} |'


def _csv(table: Table) -> str:
  """One row for each cell; what is missing is empty."""
  text = io.StringIO()
  writer = csv.writer(text, lineterminator='\n')
  writer.writerow(_CSV_HEADER)
  for row in table.rows:
    for column, cell in zip(table.columns, row.cells, strict=True):
      numbers = (cell.value, cell.low, cell.high, cell.spread)
      writer.writerow(
        [
          *(table.id, row.title, column),
          *([cell.text, '', '', ''] if cell.text else map(number, numbers)),
          *(cell.seeds, cell.games, cell.paper, cell.paper_spread),
          *(int(cell.comparable), cell.note),
        ]
      )
  return text.getvalue()


def number(value: float) -> str:
  """A number as CSV files have it; empty for NaN."""
  return '' if math.isnan(value) else f'{value:.10g}'


def _latex(table: Table) -> str:
  """A `tabular` in a `table`, with the caption and the notes below."""
  below = ' '.join([table.caption, *table.notes])
  lines = [
    r'\begin{table}',
    r'\centering',
    rf'\begin{{tabular}}{{l{"r" * len(table.columns)}}}',
    r'\hline',
    _latex_row([table.corner, *table.columns]),
    r'\hline',
    *(_latex_row([row.title, *map(_shown, row.cells)]) for row in table.rows),
    r'\hline',
    r'\end{tabular}',
    rf'\caption{{{_escaped(f"{table.title}. {below}")}}}',
    rf'\label{{tab:{table.id}}}',
    r'\end{table}',
  ]
  return '\n'.join(lines) + '\n'


def _latex_row(cells: List[str]) -> str:
  return ' & '.join(map(_escaped, cells)) + r' \\'


def _escaped(text: str) -> str:
  text = text.replace('`', '')
  return ''.join(_LATEX_ESCAPES.get(char, char) for char in text)


FORMATS: Mapping[str, Callable[[Table], str]] = {
  'md': _markdown,
  'csv': _csv,
  'tex': _latex,
}
