"""A table of results, and its rendering as Markdown, CSV and LaTeX."""

import math
from typing import Callable, Iterator, List, Mapping, NamedTuple, Tuple

from bt_acme.evaluation import tables

_NAN = float('nan')
_PLUS_MINUS = '±'
_CSV_COLUMNS = (
  *('low', 'high', 'spread', 'seeds', 'games', 'paper', 'paper_spread'),
)
_LATEX_ESCAPES = {
  **{char: f'\\{char}' for char in '%&#_$'},
  '`': '',
  _PLUS_MINUS: r'$\pm$',
  '–': '--',
  '>': '$>$',
}


class Cell(NamedTuple):
  """One number of ours, and the paper's.

  Attributes:
    value: ours; NaN if it is missing.
    low: the lower end of its 95 % interval; NaN without one.
    high: the upper end.
    spread: the standard deviation over seeds (ddof 0); NaN without one.
    seeds: of each world.
    games: the worlds behind it.
    paper: the paper's digits; empty if it prints none.
    paper_spread: the digits of its standard deviation.
    comparable: whether games, budget and scale are the paper's.
    decimals: how many digits of ours are shown after the point.
    text: what is shown where the cell holds no number of ours.
    note: what is missing.
  """

  value: float = _NAN
  low: float = _NAN
  high: float = _NAN
  spread: float = _NAN
  seeds: int = 0
  games: int = 0
  paper: str = ''
  paper_spread: str = ''
  comparable: bool = False
  decimals: int = 2
  text: str = ''
  note: str = ''

  @property
  def is_missing(self) -> bool:
    return math.isnan(self.value)


class TableRow(NamedTuple):
  """One row: its title, and a cell for each column."""

  title: str
  cells: Tuple[Cell, ...]


class PaperTable(NamedTuple):
  """A table as it is rendered.

  Attributes:
    id: the artifact.
    title: what it shows.
    corner: the title of the first column.
    columns: the titles of the others.
    rows: the rows.
    caption: seeds, games, budget and scale, and how to read a cell.
    notes: what is irregular in the paper, and what is missing.
  """

  id: str
  title: str
  corner: str
  columns: Tuple[str, ...]
  rows: Tuple[TableRow, ...]
  caption: str
  notes: Tuple[str, ...] = ()

  @property
  def lines(self) -> Iterator[List[str]]:
    """What readers see, line by line: the header, then the rows."""
    yield [self.corner, *self.columns]
    for row in self.rows:
      yield [row.title, *map(_shown, row.cells)]


def render(table: PaperTable, file_format: str) -> str:
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
  value, low, high, spread = (f'{x:.{cell.decimals}f}' for x in cell[:4])
  if not math.isnan(cell.spread):
    return f'{value} {_PLUS_MINUS} {spread}'
  return value if math.isnan(cell.low) else f'{value} [{low}, {high}]'


def paper(cell: Cell) -> str:
  """The paper's number, in parentheses where ours is not comparable."""
  if not cell.paper:
    return ''
  spread = f' {_PLUS_MINUS} {cell.paper_spread}' if cell.paper_spread else ''
  text = f'{cell.paper}{spread}'
  return text if cell.comparable else f'({text})'


def _shown(cell: Cell) -> str:
  """Both numbers: ours, then the paper's."""
  return f'{ours(cell)}; {paper(cell)}' if cell.paper else ours(cell)


def _markdown(table: PaperTable) -> str:
  header, *rows = table.lines
  notes = ''.join(f'- {note}\n' for note in table.notes)
  return (
    f'## {table.id}: {table.title}\n\n{tables.markdown(header, rows)}\n\n'
    f'{table.caption}\n' + (f'\n{notes}' if notes else '')
  )


def _csv(table: PaperTable) -> str:
  """One row for each cell; what is missing is empty."""
  return tables.csv_text(
    [
      {
        'artifact': table.id,
        'row': row.title,
        'column': column,
        'ours': cell.text or cell.value,
        **{name: getattr(cell, name) for name in _CSV_COLUMNS},
        'comparable': int(cell.comparable),
        'note': cell.note,
      }
      for row in table.rows
      for column, cell in zip(table.columns, row.cells, strict=True)
    ],
    digits=10,
  )


def _latex(table: PaperTable) -> str:
  """A `tabular` in a `table`, with the caption and the notes below."""
  header, *rows = (
    ' & '.join(map(_escaped, line)) + r' \\' for line in table.lines
  )
  caption = ' '.join([f'{table.title}. {table.caption}', *table.notes])
  lines = [
    r'\begin{table}',
    r'\centering',
    rf'\begin{{tabular}}{{l{"r" * len(table.columns)}}}',
    *(r'\hline', header, r'\hline', *rows, r'\hline'),
    r'\end{tabular}',
    rf'\caption{{{_escaped(caption)}}}',
    rf'\label{{tab:{table.id}}}',
    r'\end{table}',
  ]
  return '\n'.join(lines) + '\n'


def _escaped(text: str) -> str:
  return ''.join(_LATEX_ESCAPES.get(char, char) for char in text)


FORMATS: Mapping[str, Callable[[PaperTable], str]] = {
  'md': _markdown,
  'csv': _csv,
  'tex': _latex,
}
