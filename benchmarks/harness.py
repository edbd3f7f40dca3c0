"""Rounds and ratios: what all benchmarks share.

A benchmark is a function that yields comparisons. Each has two sides, which
return their cost: seconds of one unit of work, or a number of bytes. What
counts is the ratio. Both sides run in turn (A, B, A, B, ...) in one process on
the same pinned cores, each round gives one ratio, and the median of them is
reported with the smallest and the largest. Absolute numbers are those of one
machine on one day.
"""

import dataclasses
import statistics
import time
from typing import Any, Callable, Dict, List, Optional, Sequence

Row = Dict[str, Any]  # One line of the table, as `measure` returns it.
Side = Callable[[], float]  # Runs one round, and returns its cost.

# XLA and BLAS get one thread, as in an actor.
ONE_THREAD = {
  'XLA_FLAGS': '--xla_cpu_multi_thread_eigen=false '
  'intra_op_parallelism_threads=1',
  'OMP_NUM_THREADS': '1',
  'OPENBLAS_NUM_THREADS': '1',
}

# glibc asks for huge pages, as in a learner of ours.
HUGE_PAGES = {'GLIBC_TUNABLES': 'glibc.malloc.hugetlb=1'}

# How often a unit of time goes into a second; any other unit is a count.
_PER_SECOND = {'s': 1, 'ms': 1e3, 'us': 1e6}

# Every benchmark measures with this clock. `time.process_time`, the processor
# time of this process, takes its place on a machine that others keep busy;
# waiting then costs nothing.
clock: Callable[[], float] = time.perf_counter

# Whether sizes are small, to see that a benchmark runs; numbers mean nothing.
quick = False

# What one side of a round takes, if it can choose.
round_seconds = 0.9


@dataclasses.dataclass(frozen=True)
class Comparison:
  """Two sides to be measured in turn.

  Attributes:
    name: of the benchmark, and of the case.
    unit: that the table shows: a rate ('steps/s'), a time ('us/step') or a
      count ('MB/batch').
    ours: runs one round of our side, and returns its cost.
    theirs: runs one round of the peer's side; None without a peer.
    limit: the cost that cannot be beaten; None if none is known.
    peer: whose side `theirs` is.
    note: what a reader must also know.
    once: whether to run a single round, without one to warm up.
  """

  name: str
  unit: str
  ours: Side
  theirs: Optional[Side] = None
  limit: Optional[float] = None
  peer: str = 'dm-acme'
  note: str = ''
  once: bool = False

  def shown(self, cost: float) -> float:
    """A cost in the unit of the table."""
    if self.unit.endswith('/s'):
      return 1 / cost
    return cost * _PER_SECOND.get(self.unit.split('/')[0], 1)


def measure(comparison: Comparison, rounds: int) -> Row:
  """Measures both sides in turn, after one round that is not counted.

  Args:
    comparison: what is measured.
    rounds: that count.

  Returns:
    Name, unit, peer and note of the comparison; in its unit, the medians `ours`
    and `theirs`, and `limit`; how many times better ours is, as `ratio`,
    `ratio_min` and `ratio_max`; the `fraction` of the limit that ours reaches;
    and the number of `rounds`. What is not known is left out.
  """
  sides = [side for side in (comparison.ours, comparison.theirs) if side]
  if not comparison.once:
    _one_round(sides)
  costs = [_one_round(sides) for _ in range(1 if comparison.once else rounds)]
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


def _one_round(sides: Sequence[Side]) -> List[float]:
  return [side() for side in sides]


def timed(
  call: Callable[[], Any],
  *,
  units: Optional[float] = 1,
  share: float = 1.0,
  finish: Callable[[], Any] = lambda: None,
) -> Side:
  """A side that makes calls for a round.

  Args:
    call: what is timed.
    units: of work in one call; None if the call returns them.
    share: of a round's time that it takes.
    finish: does what the calls have left undone, and is timed with them.
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
      # The clock is read about ten times in all, not once a call.
      batch = max(1, int(calls * share * round_seconds / elapsed / 10))

  return run_round
