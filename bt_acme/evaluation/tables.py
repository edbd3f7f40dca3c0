"""Tables: plain text and Markdown for readers, CSV for programs."""

import csv
import io
import math
import pathlib
from typing import Any, Dict, List, Mapping, Sequence


def table(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
  """Lays out a table whose first column is aligned left and the others right.

  Args:
    header: a title for each column.
    rows: the rows, each with as many cells as there are titles.

  Returns:
    Lines of text.
  """
  cells = [[str(cell) for cell in row] for row in (header, *rows)]
  widths = [max(len(row[i]) for row in cells) for i in range(len(header))]
  lines = [
    '  '.join(
      cell.rjust(width) if i else cell.ljust(width)
      for i, (cell, width) in enumerate(zip(row, widths, strict=True))
    )
    for row in cells
  ]
  return '\n'.join([lines[0], '-' * len(lines[0]), *lines[1:]])


def markdown(
  header: Sequence[str], rows: Sequence[Sequence[Any]], alignment: str = ''
) -> str:
  """Lays out a table as Markdown.

  Args:
    header: a title for each column.
    rows: the rows, each with as many cells as there are titles.
    alignment: `l` or `r` for each column; if empty, only the first is left.

  Returns:
    Lines of text.
  """
  alignment = alignment or 'l' + 'r' * (len(header) - 1)
  rule = ['---' if one == 'l' else '--:' for one in alignment]
  return '\n'.join(
    f'| {" | ".join(str(cell).replace("|", "/") for cell in row)} |'
    for row in (header, rule, *rows)
  )


def csv_text(
  rows: Sequence[Mapping[str, Any]],
  digits: int = 0,
  header: Sequence[str] = (),
) -> str:
  """Lays out rows as CSV, with a header.

  Args:
    rows: cells by column. The cells of columns that a row lacks stay empty.
    digits: how many digits of floats count, of which NaN is empty; 0 for all.
    header: the first columns, whatever the rows have.
  """
  columns = dict.fromkeys((*header, *(name for row in rows for name in row)))
  text = io.StringIO()
  writer = csv.DictWriter(text, list(columns), lineterminator='\n')
  writer.writeheader()
  for row in rows:
    writer.writerow({name: _cell(row[name], digits) for name in row})
  return text.getvalue()


def _cell(value: Any, digits: int) -> Any:
  if not digits or not isinstance(value, float):
    return value
  return '' if math.isnan(value) else f'{value:.{digits}g}'


def read_csv(path: pathlib.Path) -> List[Dict[str, str]]:
  """Reads the rows of a CSV file, whose lines may be comments (`# ...`)."""
  with path.open(newline='') as file:
    lines = (line for line in file if not line.startswith('#'))
    return list(csv.DictReader(lines))
