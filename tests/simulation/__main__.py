"""Plays runs under simulated failures: `make simulate FAILURES=1000000`.

  .venv/bin/python -m tests.simulation --failures=10000
  .venv/bin/python -m tests.simulation --seed=7
  .venv/bin/python -m tests.simulation --seed=7 --faults=3,17

A seed decides everything that happens in one run: the settings, the order in
which nodes take turns, each failure and its moment. When something does not
hold, the failures that do not matter are left out, what happened is printed,
and so is the command that repeats it.
"""

import argparse
import pathlib
import random
import sys
import tempfile
import time
from typing import List, NamedTuple, Optional

from tests.simulation import session, shrink

FAULTS = 40  # In each history.
_SEEDS = 1 << 31
_MEMORY = pathlib.Path('/dev/shm')


class Played(NamedTuple):
  """What came of a history.

  Attributes:
    error: what did not hold; None if all did.
    events: what happened, for people.
    num_faults: the number of faults until then.
    recoveries: the seconds until the run worked again, after each fault.
  """

  error: Optional[BaseException]
  events: List[str]
  num_faults: int
  recoveries: List[float]


def play(history: session.History) -> Played:
  """Plays a history."""
  parent = _MEMORY if _MEMORY.is_dir() else None
  with tempfile.TemporaryDirectory(dir=parent, prefix='simulation-') as folder:
    played = session.Session(history, pathlib.Path(folder) / 'disk')
    error: Optional[BaseException] = None
    try:
      played.play()
    except KeyboardInterrupt:
      raise
    except BaseException as caught:
      error = caught
    return Played(
      error,
      played.events,
      played.num_faults,
      [seconds for _, seconds in played.recoveries],
    )


def kind_of(error: BaseException) -> str:
  """Returns what two failures of one kind have in common."""
  words = f'{type(error).__name__} {error}'.split()
  return ' '.join(w for w in words if not any(c.isdigit() for c in w))[:60]


def fails(history: session.History) -> Optional[str]:
  """Plays a history; returns the kind of its failure, None without one."""
  error = play(history).error
  return None if error is None else kind_of(error)


def report(history: session.History) -> str:
  """Shrinks a history that fails, and says what happened in it."""
  shortest = shrink.shrink(history, fails)
  played = play(shortest)
  numbers = ','.join(map(str, shrink.numbers_of(shortest, history)))
  return '\n'.join(
    [
      *played.events,
      f'{type(played.error).__name__}: {played.error}',
      f'{len(shortest.faults)} of {len(history.faults)} failures suffice. '
      'To repeat them:',
      f'  .venv/bin/python -m tests.simulation --seed={history.seed}'
      f' --faults={numbers or "none"}',
    ]
  )


def play_many(failures: int, seed: int) -> Optional[session.History]:
  """Plays histories with so many failures; returns the first one that fails."""
  generator = random.Random(seed)
  left, start, told = failures, time.monotonic(), time.monotonic()
  while left > 0:
    history = session.draw(generator.randrange(_SEEDS), min(left, FAULTS))
    if play(history).error is not None:
      return history
    left -= len(history.faults)
    if time.monotonic() - told > 10:
      told = time.monotonic()
      done = failures - left
      print(f'{done:,} failures in {told - start:.0f} s', flush=True)
  return None


def main() -> int:
  parser = argparse.ArgumentParser(description=__doc__)
  parser.add_argument('--failures', type=int, default=10_000)
  parser.add_argument('--seed', type=int, help='of one history to repeat')
  parser.add_argument('--faults', help='numbers of its failures, or none')
  parser.add_argument('--start', type=int, help='chooses the histories')
  options = parser.parse_args()
  if options.seed is not None:
    whole = session.draw(options.seed, FAULTS)
    kept = options.faults and options.faults.replace('none', '')
    if kept is not None:
      numbers = shrink.parse_kept(kept)
      whole = whole._replace(faults=tuple(whole.faults[i] for i in numbers))
    played = play(whole)
    print('\n'.join(played.events))
    print(repr(played.error) if played.error else 'All holds.')
    return int(played.error is not None)
  start = options.start
  if start is None:
    start = random.SystemRandom().randrange(_SEEDS)
  print(f'--start={start} repeats these {options.failures:,} failures.')
  history = play_many(options.failures, start)
  if history is None:
    print('All holds.')
    return 0
  print(report(history))
  return 1


if __name__ == '__main__':
  sys.exit(main())
