"""The table of results, and the machine that they are of."""

import datetime
import json
import os
import pathlib
import platform
from typing import Any, Dict, List, Mapping, Optional, Sequence

_HEADER = ('benchmark', 'unit', 'ours', 'peer', 'ratio', 'limit', 'of limit')


def machine() -> Dict[str, Any]:
  """Where and when this runs."""
  model = platform.processor()
  for line in pathlib.Path('/proc/cpuinfo').read_text().splitlines():
    if line.startswith('model name'):
      model = line.split(':', 1)[1].strip()
      break
  memory = os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES')
  return {
    'cpu': model,
    'cores': os.cpu_count(),
    'memory_gb': round(memory / 1e9, 1),
    'python': platform.python_version(),
    'date': datetime.date.today().isoformat(),
  }


def read(path: pathlib.Path) -> Dict[str, Any]:
  """The results that a file holds, by benchmark; empty if there is no file."""
  return json.loads(path.read_text()) if path.is_file() else {}


def write(results: Mapping[str, Any], path: pathlib.Path) -> None:
  """Writes results for `read`."""
  path.write_text(json.dumps(results, indent=1) + '\n')


def format_rows(
  rows: Sequence[Mapping[str, Any]], *, markdown: bool = False
) -> str:
  """Rows, as dicts of `harness.Row`, as a table with their notes below it."""
  cells = [list(_HEADER), *(_cells(row) for row in rows)]
  notes = [f'{row["name"]}: {row["note"]}' for row in rows if row['note']]
  if markdown:
    lines = ['| ' + ' | '.join(line) + ' |' for line in cells]
    lines.insert(1, '|---|---|---:|---:|---|---:|---:|')
    return '\n'.join([*lines, '', *(f'* {note}' for note in notes)])
  widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
  lines = [
    '  '.join(
      text.ljust(width) if i in (0, 1, 4) else text.rjust(width)
      for i, (text, width) in enumerate(zip(line, widths, strict=True))
    ).rstrip()
    for line in cells
  ]
  lines.insert(1, '-' * len(lines[0]))
  return '\n'.join([*lines, *notes])


def _cells(row: Mapping[str, Any]) -> List[str]:
  ratio = ''
  if row['ratio'] is not None:
    ratio = f'{row["ratio"]:.2f}x'
    if row['rounds'] > 1:
      ratio += f' ({row["ratio_min"]:.2f}-{row["ratio_max"]:.2f})'
  peer = _number(row['theirs'])
  if row['peer'] != 'dm-acme':
    peer += f' ({row["peer"]})'
  fraction = '' if row['fraction'] is None else f'{row["fraction"]:.0%}'
  return [
    row['name'],
    row['unit'],
    _number(row['ours']),
    peer,
    ratio,
    _number(row['limit']),
    fraction,
  ]


def _number(value: Optional[float]) -> str:
  if value is None:
    return ''
  if abs(value) >= 100:
    return f'{value:,.0f}'
  return f'{value:.3g}'
