"""Rounds, ratios, processes and tables: what all benchmarks share.

What counts is the ratio: both sides run in turn (A, B, A, B, ...) in one
process on the same pinned cores, each round makes one ratio, and the median of
them is reported with the smallest and the largest. Absolute numbers are those
of one machine on one day.
"""

import dataclasses
import datetime
import json
import os
import pathlib
import platform
import statistics
import time
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence

# XLA and BLAS with one thread, as actors run.
ONE_THREAD = {
  'XLA_FLAGS': '--xla_cpu_multi_thread_eigen=false '
  'intra_op_parallelism_threads=1',
  'OMP_NUM_THREADS': '1',
  'OPENBLAS_NUM_THREADS': '1',
}

HUGE_PAGES = {'GLIBC_TUNABLES': 'glibc.malloc.hugetlb=1'}

# What all measure with; processor time of this process, `time.process_time`,
# where others keep the machine busy: waiting then costs nothing.
clock: Callable[[], float] = time.perf_counter


@dataclasses.dataclass(frozen=True)
class Settings:
  """How long to measure.

  Attributes:
    rounds: of both sides.
    seconds: that one side of a round takes, where it may choose.
    quick: small sizes, to see that a benchmark runs; its numbers mean nothing.
  """

  rounds: int = 5
  seconds: float = 1.2
  quick: bool = False

  def pick(self, full: Any, quick: Any) -> Any:
    """`quick` where numbers mean nothing, else `full`."""
    return quick if self.quick else full


@dataclasses.dataclass(frozen=True)
class Row:
  """One line of the table.

  Attributes:
    name: of the benchmark, and of the case.
    unit: of `ours`, `theirs` and `limit`.
    ours: median over rounds.
    theirs: likewise; None without a peer.
    ratio: how many times better ours is, median over rounds.
    ratio_min: in the worst round.
    ratio_max: in the best one.
    limit: what cannot be beaten; None where none is known.
    fraction: of the limit that ours reaches, at most 1.
    rounds: that were run.
    peer: whose side theirs is.
    note: what a reader must know beside.
  """

  name: str
  unit: str
  ours: float
  theirs: Optional[float] = None
  ratio: Optional[float] = None
  ratio_min: Optional[float] = None
  ratio_max: Optional[float] = None
  limit: Optional[float] = None
  fraction: Optional[float] = None
  rounds: int = 1
  peer: str = 'dm-acme'
  note: str = ''


def compare(
  name: str,
  unit: str,
  ours: Callable[[], float],
  theirs: Callable[[], float],
  *,
  rounds: int,
  lower_is_better: bool = False,
  limit: Optional[float] = None,
  peer: str = 'dm-acme',
  note: str = '',
) -> Row:
  """Measures both sides in turn, after one round that is not counted.

  Args:
    name: of the row.
    unit: of what both return.
    ours: runs one round and returns its figure.
    theirs: likewise.
    rounds: that count; 0 counts the first one, where there is nothing to warm.
    lower_is_better: for times and sizes.
    limit: in the same unit.
    peer: whose side theirs is.
    note: of the row.
  """
  pairs = [(ours(), theirs()) for _ in range(rounds + 1)][rounds > 0 :]
  ratios = [b / a if lower_is_better else a / b for a, b in pairs]
  mine = statistics.median(a for a, _ in pairs)
  fraction = None
  if limit is not None:
    fraction = limit / mine if lower_is_better else mine / limit
  return Row(
    name=name,
    unit=unit,
    ours=mine,
    theirs=statistics.median(b for _, b in pairs),
    ratio=statistics.median(ratios),
    ratio_min=min(ratios),
    ratio_max=max(ratios),
    limit=limit,
    fraction=fraction,
    rounds=len(pairs),
    peer=peer,
    note=note,
  )


def seconds_per_call(
  call: Callable[[], Any],
  seconds: float,
  finish: Callable[[], Any] = lambda: None,
) -> float:
  """Calls for about that long and returns the mean.

  Args:
    call: what is timed.
    seconds: about how long.
    finish: what calls leave to be done behind the last, timed with them.
  """
  calls, batch = 0, 1
  start = clock()
  while True:
    for _ in range(batch):
      call()
    calls += batch
    elapsed = clock() - start
    if elapsed >= seconds:
      finish()
      return (clock() - start) / calls
    # The clock is read ten times, not once a call.
    batch = max(1, int(calls * seconds / elapsed / 10))


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


def _number(value: Optional[float]) -> str:
  if value is None:
    return ''
  if abs(value) >= 100:
    return f'{value:,.0f}'
  return f'{value:.3g}'


_HEADER = ('benchmark', 'unit', 'ours', 'peer', 'ratio', 'limit', 'of limit')


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


def table(rows: Sequence[Mapping[str, Any]], *, markdown: bool = False) -> str:
  """Rows (as dicts) as a table, notes behind it."""
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


def read_rows(path: pathlib.Path) -> Dict[str, Any]:
  """The results that a file holds, by benchmark; empty where there is none."""
  return json.loads(path.read_text()) if path.is_file() else {}
