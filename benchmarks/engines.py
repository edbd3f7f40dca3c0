r"""Compares single-process runs, or runs on Ray, with local multi-process runs.

  .venv/bin/python -m benchmarks.engines
  .venv/bin/python -m benchmarks.engines --ray_address=127.0.0.1:6379

All runs use `launch/run_ngu.py` with the same settings, which fix the ratio of
learner steps to actor steps. The time of a short run is subtracted from the
time of a longer one, to exclude imports and compilation. The first round is not
counted; later rounds find compiled functions in the cache. With a Ray cluster,
runs on the cluster replace the single-process runs, and the total duration of
the short run is measured as well.
"""

import argparse
import functools
import pathlib
import subprocess
import sys
import tempfile
import time
from typing import Iterator, NamedTuple, Sequence

from benchmarks import harness, tables

_SCRIPT = pathlib.Path(__file__).parents[1] / 'launch' / 'run_ngu.py'


class _Case(NamedTuple):
  """A pair of runs.

  Attributes:
    env: the environment.
    preset: the preset.
    few: actor steps of the short run.
    more: actor steps of the long run.
  """

  env: str
  preset: str
  few: int
  more: int


CASES = {
  'minigrid': _Case('MiniGrid-FourRooms-v0:no_goal', 'minigrid', 4_000, 24_000),
  'pong': _Case('pong', 'atari_small', 2_500, 6_500),
}


def _seconds(case: _Case, flags: Sequence[str], steps: int) -> float:
  """Executes a run and returns its duration in seconds."""
  with tempfile.TemporaryDirectory() as folder:
    command = [
      sys.executable,
      str(_SCRIPT),
      f'--env={case.env}',
      f'--preset={case.preset}',
      '--num_actors=1',
      '--num_evaluators=0',
      f'--max_actor_steps={steps}',
      f'--workdir={folder}/run',
      *flags,
    ]
    start = time.monotonic()
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
      raise RuntimeError(
        f'The run ended with exit code {done.returncode}: {done.stderr.strip()}'
      )
    return time.monotonic() - start


def _seconds_per_step(case: _Case, flags: Sequence[str]) -> float:
  few, more = (_seconds(case, flags, n) for n in (case.few, case.more))
  return (more - few) / (case.more - case.few)


def _comparisons(
  name: str, ray_address: str, ray_python: str
) -> Iterator[harness.Comparison]:
  """Yields the comparisons of a case."""
  case, peer = CASES[name], ['--lp_launch_type=local_mp']
  engine, flags = 'in one process', ['--lp_launch_type=in_process']
  if ray_address:
    addresses = [f'--ray_address={ray_address}', f'--ray_python={ray_python}']
    engine, flags = 'on Ray', ['--lp_launch_type=ray', *addresses]
  yield harness.Comparison(
    f'{name} {engine}',
    'steps/s',
    functools.partial(_seconds_per_step, case, flags),
    functools.partial(_seconds_per_step, case, peer),
    peer='local_mp',
  )
  if ray_address:
    yield harness.Comparison(
      f'{name} {engine}, {case.few} steps',
      's',
      functools.partial(_seconds, case, flags, case.few),
      functools.partial(_seconds, case, peer, case.few),
      peer='local_mp',
    )


def main() -> None:
  """Measures the cases and prints a table."""
  parser = argparse.ArgumentParser(prog='python -m benchmarks.engines')
  parser.add_argument('cases', nargs='*', default=list(CASES))
  parser.add_argument('--rounds', type=int, default=1)
  parser.add_argument('--ray_address', default='')
  parser.add_argument('--ray_python', default='.venv-ray/bin/python')
  options = parser.parse_args()
  if unknown := set(options.cases) - set(CASES):
    parser.error(f'unknown cases {sorted(unknown)}; choose from {list(CASES)}')
  rows = [
    harness.measure(comparison, options.rounds)
    for name in options.cases
    for comparison in _comparisons(
      name, options.ray_address, options.ray_python
    )
  ]
  print(tables.format_rows(rows))


if __name__ == '__main__':
  main()
