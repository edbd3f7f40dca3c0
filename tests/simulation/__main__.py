"""Plays runs under simulated failures: `make simulate FAILURES=1000000`.

  .venv/bin/python -m tests.simulation --failures=10000
  .venv/bin/python -m tests.simulation --seed=7
  .venv/bin/python -m tests.simulation --seed=7 --faults=3,17

A seed determines everything that happens in one run: the settings, the order in
which the nodes run, and the time of each failure. If an invariant is violated,
the history is reduced to the necessary failures, then its events and a command
that repeats it are printed.
"""

import argparse
import pathlib
import random
import sys
import tempfile
import time

from tests.simulation import disk, engine, session

FAULTS = 40  # Per history.
_SEEDS = 1 << 31
_MEMORY = pathlib.Path('/dev/shm')


def play(history):
  """Plays a history; returns its session, with the error that ended it."""
  parent = _MEMORY if _MEMORY.is_dir() else None
  with tempfile.TemporaryDirectory(dir=parent, prefix='simulation-') as folder:
    played = session.Session(history, pathlib.Path(folder) / 'disk')
    try:
      played.play()
    # Others, such as the time limit of a test, are not caused by the run.
    except (Exception, disk.Crash, engine.Blocked) as error:
      played.error = error
    return played


def fails(history):
  """Plays a history; returns its error without numbers, shortened, if any."""
  error = play(history).error
  if error is None:
    return None
  words = f'{type(error).__name__} {error}'.split()
  return ' '.join(w for w in words if not any(c.isdigit() for c in w))[:60]


def shrink(history):
  """Removes faults while a failing history still fails in the same way."""
  kind = fails(history)
  size = max(1, len(history.faults) // 2)
  while size:
    history = _without_parts(history, size, lambda h: fails(h) == kind)
    size //= 2
  return history


def _without_parts(history, size, still):
  """Removes runs of `size` consecutive faults wherever possible."""
  first = 0
  while first < len(history.faults):
    faults = history.faults[:first] + history.faults[first + size :]
    shorter = history._replace(faults=faults)
    if still(shorter):
      history = shorter
    else:
      first += size
  return history


def report(history):
  """Shrinks a failing history; returns its events and a repeat command."""
  shortest = shrink(history)
  played = play(shortest)
  kept = [i for i, f in enumerate(history.faults) if f in shortest.faults]
  numbers = ','.join(map(str, kept))
  return '\n'.join(
    [
      *played.events,
      f'{type(played.error).__name__}: {played.error}',
      f'{len(shortest.faults)} of {len(history.faults)} failures suffice. '
      'To repeat this history:',
      f'  .venv/bin/python -m tests.simulation --seed={history.seed}'
      f' --faults={numbers or "none"}',
    ]
  )


def play_many(failures, seed):
  """Plays histories with this many failures; returns the first that fails."""
  generator = random.Random(seed)
  left, start, reported = failures, time.monotonic(), time.monotonic()
  while left > 0:
    history = session.draw(generator.randrange(_SEEDS), min(left, FAULTS))
    if play(history).error is not None:
      return history
    left -= len(history.faults)
    if time.monotonic() - reported > 10:
      reported = time.monotonic()
      done = failures - left
      print(f'{done:,} failures in {reported - start:.0f} s', flush=True)
  return None


def main():
  parser = argparse.ArgumentParser(description=__doc__)
  parser.add_argument('--failures', type=int, default=10_000)
  parser.add_argument('--seed', type=int, help='seed of a history to repeat')
  parser.add_argument('--faults', help='numbers of its failures, or none')
  parser.add_argument('--start', type=int, help='seed of the histories')
  options = parser.parse_args()
  if options.seed is not None:
    history = session.draw(options.seed, FAULTS)
    if options.faults:
      numbers = options.faults.replace('none', '').split(',')
      faults = tuple(history.faults[int(i)] for i in numbers if i)
      history = history._replace(faults=faults)
    played = play(history)
    print('\n'.join(played.events))
    print(repr(played.error) if played.error else 'All invariants hold.')
    return int(played.error is not None)
  start = options.start
  if start is None:
    start = random.SystemRandom().randrange(_SEEDS)
  print(f'--start={start} repeats these {options.failures:,} failures.')
  failed = play_many(options.failures, start)
  if failed is None:
    print('All invariants hold.')
    return 0
  print(report(failed))
  return 1


if __name__ == '__main__':
  sys.exit(main())
