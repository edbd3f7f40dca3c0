"""Tables as plain text, Markdown, HTML and CSV."""

import csv
import html as html_lib
import io
import math
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any


def table(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
  """Formats a table; the first column is left-aligned, the others right.

  Args:
    header: the title of each column.
    rows: the rows, with one cell per column.

  Returns:
    The lines of the table.
  """
  cells = [[str(cell) for cell in row] for row in (header, *rows)]
  first, *widths = (
    max(map(len, column)) for column in zip(*cells, strict=True)
  )
  lines = [
    '  '.join([title.ljust(first), *map(str.rjust, others, widths)])
    for title, *others in cells
  ]
  return '\n'.join([lines[0], '-' * len(lines[0]), *lines[1:]])


def markdown(
  header: Sequence[str],
  rows: Sequence[Sequence[Any]],
  alignment: str = '',
  *,
  padded: bool = False,
) -> str:
  """Formats a table as Markdown.

  Args:
    header: the title of each column.
    rows: the rows, with one cell per column.
    alignment: `l` or `r` per column; by default, `l` for the first column and
      `r` for all others.
    padded: whether to pad the cells of a column to the same width, so that the
      text is also readable in a terminal.

  Returns:
    The lines of the table.
  """
  alignment = alignment or 'l' + 'r' * (len(header) - 1)
  rule = ['---' if one == 'l' else '--:' for one in alignment]
  cells = [
    [str(cell).replace('|', '/') for cell in row]
    for row in (header, rule, *rows)
  ]
  columns = zip(*cells, strict=True)
  widths = [max(map(len, column)) if padded else 0 for column in columns]
  return '\n'.join(
    f'| {" | ".join(map(str.ljust, row, widths))} |' for row in cells
  )


def html(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
  """Formats a table as HTML.

  Args:
    header: the title of each column; empty for a table without a header, whose
      first column contains the titles.
    rows: the rows, with one cell per column.
  """

  def line(cells: Sequence[Any], titles: int) -> str:
    tags = ['th' if i < titles else 'td' for i in range(len(cells))]
    inner = ''.join(
      f'<{tag} style="text-align: left">{html_lib.escape(str(cell))}</{tag}>'
      for tag, cell in zip(tags, cells, strict=True)
    )
    return f'<tr>{inner}</tr>'

  head = line(header, len(header)) if header else ''
  body = ''.join(line(row, 0 if header else 1) for row in rows)
  return f'<table>{head}{body}</table>'


def counted(number: int, noun: str) -> str:
  """Formats a number with its noun, such as '1 episode' or '2,000 episodes'."""
  return f'{number:,} {noun}{"" if number == 1 else "s"}'


def csv_text(
  rows: Sequence[Mapping[str, Any]], digits: int = 0, header: Sequence[str] = ()
) -> str:
  """Formats rows as CSV, with a header.

  Args:
    rows: the cells of each row by column; missing cells are empty.
    digits: the number of significant digits of floats, 0 for all digits; unless
      0, NaN gives an empty cell.
    header: the first columns, even if no row contains them.
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


def read_csv(path: pathlib.Path) -> list[dict[str, str]]:
  """Reads the rows of a CSV file, skipping comments (`# ...`)."""
  with path.open(newline='', encoding='utf-8') as file:
    lines = (line for line in file if not line.startswith('#'))
    return list(csv.DictReader(lines))
