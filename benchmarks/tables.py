"""Formats the table of results and describes the machine."""

import datetime
import json
import os
import pathlib
import platform
import re
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks import harness
from bt_acme import files
from bt_acme.evaluation import tables as tables_lib

_HEADER = ('benchmark', 'unit', 'ours', 'peer', 'ratio', 'limit', 'of limit')


def machine() -> dict[str, Any]:
  """Describes the machine and the date."""
  lines = pathlib.Path('/proc/cpuinfo').read_text()
  model = re.search(r'^model name\s*: *(.*)', lines, re.MULTILINE)
  memory = os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES')
  return {
    'cpu': model[1].strip() if model else platform.processor(),
    'cores': os.cpu_count(),
    'memory_gb': round(memory / 1e9, 1),
    'python': platform.python_version(),
    'date': datetime.date.today().isoformat(),
  }


def write(results: Mapping[str, Any], path: pathlib.Path) -> None:
  """Writes results to a file."""
  files.write_text(path, json.dumps(results, indent=1) + '\n')


def format_rows(rows: Sequence[harness.Row]) -> str:
  """Formats rows as a Markdown table with notes below."""
  table = tables_lib.markdown(
    _HEADER, list(map(_cells, rows)), 'llrrlrr', padded=True
  )
  notes = [f'* {row["name"]}: {row["note"]}' for row in rows if row['note']]
  return '\n'.join([table, '', *notes])


def _cells(row: harness.Row) -> Sequence[str]:
  peer, ratio, fraction = _number(row.get('theirs')), '', ''
  if row['peer'] != 'dm-acme':
    peer += f' ({row["peer"]})'
  if row.get('ratio') is not None:
    ratio = f'{row["ratio"]:.2f}x'
    if row['rounds'] > 1:
      ratio += f' ({row["ratio_min"]:.2f}-{row["ratio_max"]:.2f})'
  if row.get('fraction') is not None:
    fraction = f'{row["fraction"]:.0%}'
  ours, limit = _number(row['ours']), _number(row.get('limit'))
  return row['name'], row['unit'], ours, peer, ratio, limit, fraction


def _number(value: float | None) -> str:
  if value is None:
    return ''
  return f'{value:,.0f}' if abs(value) >= 100 else f'{value:.3g}'
