"""Renders tables of results as Markdown, CSV and LaTeX."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from bt_acme.evaluation import tables
from experiments.paper import artifacts

_PLUS_MINUS = '±'
_CSV_COLUMNS = 'low high spread seeds games paper paper_spread'.split()
_LATEX_ESCAPES = {
  **{char: f'\\{char}' for char in '%&#_$'},
  '`': '',
  '^': r'\textasciicircum{}',
  _PLUS_MINUS: r'$\pm$',
  '–': '--',
  '>': '$>$',
}


class Cell(NamedTuple):
  """Our number and the paper's number.

  Attributes:
    value: our number; NaN if missing.
    low: the lower end of its 95% interval; NaN without one.
    high: the upper end of its 95% interval; NaN without one.
    spread: our standard deviation over seeds (ddof 0); NaN without one.
    seeds: the number of seeds per environment.
    games: the number of environments.
    paper: the number as printed in the paper; empty without one.
    paper_spread: the standard deviation as printed in the paper.
    comparable: whether games, budget and scale match the paper.
    decimals: the number of decimals of our number.
    text: the text to show instead of a number.
    note: a description of missing data.
  """

  value: float = math.nan
  low: float = math.nan
  high: float = math.nan
  spread: float = math.nan
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


class PaperTable(NamedTuple):
  """A table to render.

  Attributes:
    artifact: the artifact.
    corner: the title of the first column.
    columns: the titles of the other columns.
    rows: one cell per column, by the title of the row.
    caption: a description of seeds, games, budget, scale and cells.
    notes: irregularities in the paper and missing data.
  """

  artifact: artifacts.Artifact
  corner: str
  columns: tuple[str, ...]
  rows: Mapping[str, Sequence[Cell]]
  caption: str
  notes: tuple[str, ...] = ()

  @property
  def lines(self) -> Iterator[list[str]]:
    """The cells as shown to readers: the header, then the rows."""
    yield [self.corner, *self.columns]
    for title, cells in self.rows.items():
      yield [title, *map(_shown, cells)]


def ours(cell: Cell) -> str:
  """Formats our number with spread or interval; a dash if missing."""
  if cell.text or cell.is_missing:
    return cell.text or '–'
  value, low, high, spread = (f'{x:.{cell.decimals}f}' for x in cell[:4])
  if not math.isnan(cell.spread):
    return f'{value} {_PLUS_MINUS} {spread}'
  return value if math.isnan(cell.low) else f'{value} [{low}, {high}]'


def paper(cell: Cell) -> str:
  """Formats the paper's number, in parentheses if ours is not comparable."""
  if not cell.paper:
    return ''
  spread = f' {_PLUS_MINUS} {cell.paper_spread}' if cell.paper_spread else ''
  text = f'{cell.paper}{spread}'
  return text if cell.comparable else f'({text})'


def _shown(cell: Cell) -> str:
  """Formats both numbers: ours, then the paper's."""
  return f'{ours(cell)}; {paper(cell)}' if cell.paper else ours(cell)


def section(
  artifact: artifacts.Artifact, blocks: Sequence[str], notes: Sequence[str] = ()
) -> str:
  """Formats a section of a report as Markdown."""
  listed = ''.join(f'- {note}\n' for note in notes)
  text = '\n\n'.join([f'## {artifact.id}: {artifact.title}', *blocks])
  return f'{text}\n' + (f'\n{listed}' if listed else '')


def _markdown(table: PaperTable) -> str:
  header, *rows = table.lines
  blocks = [tables.markdown(header, rows), table.caption]
  return section(table.artifact, blocks, table.notes)


def _csv(table: PaperTable) -> str:
  """Formats a CSV row for each cell; missing values are empty."""
  return tables.csv_text(
    [
      {
        'artifact': table.artifact.id,
        'row': title,
        'column': column,
        'ours': cell.text or cell.value,
        **{name: getattr(cell, name) for name in _CSV_COLUMNS},
        'comparable': int(cell.comparable),
        'note': cell.note,
      }
      for title, cells in table.rows.items()
      for column, cell in zip(table.columns, cells, strict=True)
    ],
    digits=10,
  )


def _latex(table: PaperTable) -> str:
  """Formats a LaTeX `table` with the caption and notes below."""
  header, *rows = (
    ' & '.join(map(_escaped, line)) + r' \\' for line in table.lines
  )
  caption = ' '.join([f'{table.artifact.title}. {table.caption}', *table.notes])
  lines = [
    r'\begin{table}',
    r'\centering',
    rf'\begin{{tabular}}{{l{"r" * len(table.columns)}}}',
    *(r'\hline', header, r'\hline', *rows, r'\hline'),
    r'\end{tabular}',
    rf'\caption{{{_escaped(caption)}}}',
    rf'\label{{tab:{table.artifact.id}}}',
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
