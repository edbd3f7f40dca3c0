"""A table of results: our numbers with intervals, the paper's beside them."""

import math
from typing import NamedTuple, Tuple

NAN = float('nan')


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

  value: float = NAN
  low: float = NAN
  high: float = NAN
  spread: float = NAN
  seeds: int = 0
  games: int = 0
  paper: str = ''
  paper_spread: str = ''
  comparable: bool = False
  decimals: int = 2
  text: str = ''
  note: str = ''

  def digits(self, value: float) -> str:
    """A number of ours as it is shown."""
    return f'{value:.{self.decimals}f}'

  @property
  def is_missing(self) -> bool:
    return math.isnan(self.value)


class Row(NamedTuple):
  """One row: its title, and a cell for each column."""

  title: str
  cells: Tuple[Cell, ...]


class Table(NamedTuple):
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
  rows: Tuple[Row, ...]
  caption: str
  notes: Tuple[str, ...] = ()
