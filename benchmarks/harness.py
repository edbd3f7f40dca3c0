"""Measures rounds and ratios for all benchmarks, and formats them as a table.

A benchmark is a function that yields comparisons. Each comparison has two
sides, which return their cost: seconds per unit of work, or a number of bytes.
The ratio is what matters. Both sides run alternately (A, B, A, B, ...) in one
process on the same pinned cores. Each round gives one ratio; the report shows
the median, the minimum and the maximum. Absolute numbers apply only to one
machine on one day.
"""

import argparse
import dataclasses
import datetime
import json
import os
import pathlib
import platform
import re
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bt_acme import files
from bt_acme.evaluation import tables

Row = dict[str, Any]  # A row of the table, as returned by `measure`.
Side = Callable[[], float]  # Runs one round and returns its cost.

_HEADER = ('benchmark', 'unit', 'ours', 'peer', 'ratio', 'limit', 'of limit')
# Units of time per second; all other units are counts.
_PER_SECOND = {'s': 1, 'ms': 1e3, 'us': 1e6}

# The clock of all benchmarks. On busy machines, `time.process_time`, the
# processor time of this process, replaces it; waiting then costs nothing.
clock: Callable[[], float] = time.perf_counter

# Whether to use small sizes for a smoke test; the numbers are meaningless.
quick = False

# Target duration of one side of a round.
round_seconds = 0.9


def parse(parser: argparse.ArgumentParser) -> argparse.Namespace:
  """Parses the command line; checks --rounds and the paths to write."""
  options = parser.parse_args()
  if getattr(options, 'rounds', 1) < 1:
    parser.error(f'--rounds={options.rounds} must be at least 1')
  for name in ('json', 'output'):
    path = getattr(options, name, None)
    try:
      if path is not None:
        files.check_writable(path)
    except OSError as error:
      parser.error(f'--{name}={path} cannot be written: {error.strerror}')
  return options


@dataclasses.dataclass(frozen=True)
class Comparison:
  """Two sides to measure alternately.

  Attributes:
    name: the name of the benchmark and the case.
    unit: the unit of the table: a rate ('steps/s'), a time ('us/step') or a
      count ('MB/batch').
    ours: runs one round of our side and returns its cost.
    theirs: runs one round of the peer's side; None without a peer.
    limit: the lowest possible cost; None if unknown.
    peer: the name of the peer.
    note: additional information for readers.
    once: whether to run a single round without a warm-up round.
  """

  name: str
  unit: str
  ours: Side
  theirs: Side | None = None
  limit: float | None = None
  peer: str = 'dm-acme'
  note: str = ''
  once: bool = False

  def shown(self, cost: float) -> float:
    """Converts a cost to the unit of the table."""
    if self.unit.endswith('/s'):
      return 1 / cost
    return cost * _PER_SECOND.get(self.unit.split('/')[0], 1)


def measure(comparison: Comparison, rounds: int) -> Row:
  """Measures both sides alternately after a warm-up round.

  Args:
    comparison: the comparison to measure.
    rounds: the number of rounds.

  Returns:
    The `name`, `unit`, `peer` and `note` of the comparison; the number of
    `rounds`; the medians `ours` and `theirs`, and the `limit`, in that unit;
    `ratio`, `ratio_min` and `ratio_max`, which say how many times better our
    side is; and the `fraction` of the limit that our side reaches. Unknown
    values are omitted.
  """
  sides = [side for side in (comparison.ours, comparison.theirs) if side]
  total = 1 if comparison.once else 1 + rounds
  costs = [[side() for side in sides] for _ in range(total)][-rounds:]
  ours, *theirs = map(statistics.median, zip(*costs, strict=True))
  row: Row = {
    **{x: getattr(comparison, x) for x in ('name', 'unit', 'peer', 'note')},
    'rounds': len(costs),
    'ours': comparison.shown(ours),
  }
  if theirs:
    ratios = [their / our for our, their in costs]
    row['theirs'] = comparison.shown(*theirs)
    row['ratio'] = statistics.median(ratios)
    row['ratio_min'], row['ratio_max'] = min(ratios), max(ratios)
  if comparison.limit is not None:
    row['limit'] = comparison.shown(comparison.limit)
    row['fraction'] = comparison.limit / ours
  return row


def timed(
  call: Callable[[], Any],
  *,
  units: float | None = 1,
  share: float = 1.0,
  finish: Callable[[], Any] = lambda: None,
) -> Side:
  """Returns a side that repeats a call during a round.

  Args:
    call: the function to time.
    units: units of work per call; None if the call returns them.
    share: the share of the round's duration.
    finish: completes pending work of the calls; timed together with them.
  """

  def run_round() -> float:
    calls, done, batch = 0, 0.0, 1
    start = clock()
    while True:
      for _ in range(batch):
        result = call()
        done += result if units is None else units
      calls += batch
      elapsed = clock() - start
      if elapsed >= share * round_seconds:
        finish()
        return (clock() - start) / done
      # Read the clock only about ten times instead of once per call.
      batch = max(1, int(calls * share * round_seconds / elapsed / 10))

  return run_round


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


def write_json(results: Mapping[str, Any], path: pathlib.Path) -> None:
  """Writes results to a file."""
  files.write_text(path, json.dumps(results, indent=1) + '\n')


def format_rows(rows: Sequence[Row]) -> str:
  """Formats rows as a Markdown table with notes below."""
  table = tables.markdown(
    _HEADER, list(map(_cells, rows)), 'llrrlrr', padded=True
  )
  notes = [f'* {row["name"]}: {row["note"]}' for row in rows if row['note']]
  return '\n'.join([table, '', *notes])


def _cells(row: Row) -> Sequence[str]:
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
