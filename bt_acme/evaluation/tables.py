"""Plain-text tables."""

from typing import Any, Sequence


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
