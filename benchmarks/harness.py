"""Rounds, ratios and rows: what all benchmarks share.

What counts is the ratio. Both sides run in turn (A, B, A, B, ...) in one
process on the same pinned cores, each round gives one ratio, and the median of
them is reported with the smallest and the largest. Absolute numbers are those
of one machine on one day.
"""

import dataclasses
import statistics
import time
from typing import Any, Callable, Optional

# XLA and BLAS get one thread, as in an actor.
ONE_THREAD = {
  'XLA_FLAGS': '--xla_cpu_multi_thread_eigen=false '
  'intra_op_parallelism_threads=1',
  'OMP_NUM_THREADS': '1',
  'OPENBLAS_NUM_THREADS': '1',
}

# glibc asks for huge pages, as in a learner of ours.
HUGE_PAGES = {'GLIBC_TUNABLES': 'glibc.malloc.hugetlb=1'}

# Every benchmark measures with this clock. `time.process_time`, the processor
# time of this process, takes its place on a machine that others keep busy;
# waiting then costs nothing.
clock: Callable[[], float] = time.perf_counter


@dataclasses.dataclass(frozen=True)
class Settings:
  """How long to measure.

  Attributes:
    rounds: of both sides.
    seconds: that one side of a round takes, if it can choose.
    quick: small sizes, to see that a benchmark runs; its numbers mean nothing.
  """

  rounds: int = 5
  seconds: float = 1.2
  quick: bool = False

  def pick(self, full: Any, quick: Any) -> Any:
    """`quick` if the numbers mean nothing, else `full`."""
    return quick if self.quick else full


@dataclasses.dataclass(frozen=True)
class Row:
  """One line of the table.

  Attributes:
    name: of the benchmark, and of the case.
    unit: of `ours`, `theirs` and `limit`.
    ours: our figure, the median over rounds.
    theirs: the peer's figure, likewise; None without a peer.
    ratio: how many times better ours is, the median over rounds.
    ratio_min: the ratio of the worst round.
    ratio_max: the ratio of the best round.
    limit: the figure that cannot be beaten; None if none is known.
    fraction: of the limit that ours reaches, at most 1.
    rounds: that were run.
    peer: whose figure `theirs` is.
    note: what a reader must also know.
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
    ours: runs one round of our side and returns its figure.
    theirs: runs one round of the peer's side and returns its figure.
    rounds: that count; 0 counts the first one, if there is nothing to warm up.
    lower_is_better: for times and sizes.
    limit: in the same unit.
    peer: whose side `theirs` is.
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
  """Calls a function for about so many seconds, and returns the mean time.

  Args:
    call: what is timed.
    seconds: about how long.
    finish: does what the calls have left undone, and is timed with them.
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
    # The clock is read about ten times in all, not once a call.
    batch = max(1, int(calls * seconds / elapsed / 10))
