"""Tables: plain text for readers, CSV for programs."""

import csv
import io
from typing import Any, Mapping, Sequence


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


def csv_text(rows: Sequence[Mapping[str, Any]]) -> str:
  """Lays out rows as CSV, with a header.

  Args:
    rows: cells by column. The cells of columns that a row lacks stay empty.
  """
  columns = dict.fromkeys(name for row in rows for name in row)
  text = io.StringIO()
  writer = csv.DictWriter(text, list(columns), lineterminator='\n')
  writer.writeheader()
  writer.writerows(rows)
  return text.getvalue()
