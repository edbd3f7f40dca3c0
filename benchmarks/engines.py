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
import pathlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence

from benchmarks import harness

_SCRIPT = pathlib.Path(__file__).parents[1] / 'launch' / 'run_ngu.py'

# Flags, and the actor steps of the short and the long run.
CASES = {
  'minigrid': (
    ('--env=MiniGrid-FourRooms-v0:no_goal', '--preset=minigrid'),
    (4_000, 24_000),
  ),
  'pong': (('--env=pong', '--preset=atari_small'), (2_500, 6_500)),
}


def _seconds(flags: Sequence[str], steps: int) -> float:
  """Executes a run and returns its duration in seconds."""
  with tempfile.TemporaryDirectory() as folder:
    command = [
      *(sys.executable, str(_SCRIPT), '--num_actors=1', '--num_evaluators=0'),
      *(f'--max_actor_steps={steps}', f'--workdir={folder}/run', *flags),
    ]
    start = time.monotonic()
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
      raise RuntimeError(
        f'The run ended with exit code {done.returncode}: {done.stderr.strip()}'
      )
    return time.monotonic() - start


def _seconds_per_step(flags: Sequence[str], few: int, more: int) -> float:
  short, long = (_seconds(flags, n) for n in (few, more))
  return (long - short) / (more - few)


def _comparisons(
  name: str, ray_address: str, ray_python: str
) -> Iterator[harness.Comparison]:
  """Yields the comparisons of a case."""
  flags, (few, more) = CASES[name]
  peer = [*flags, '--lp_launch_type=local_mp']
  engine, ours = 'in one process', [*flags, '--lp_launch_type=in_process']
  if ray_address:
    addresses = [f'--ray_address={ray_address}', f'--ray_python={ray_python}']
    engine, ours = 'on Ray', [*flags, '--lp_launch_type=ray', *addresses]
  yield harness.Comparison(
    f'{name} {engine}',
    'steps/s',
    lambda: _seconds_per_step(ours, few, more),
    lambda: _seconds_per_step(peer, few, more),
    peer='local_mp',
  )
  if ray_address:
    yield harness.Comparison(
      f'{name} {engine}, {few} steps',
      's',
      lambda: _seconds(ours, few),
      lambda: _seconds(peer, few),
      peer='local_mp',
    )


def main() -> None:
  """Measures the cases and prints a table."""
  parser = argparse.ArgumentParser(prog='python -m benchmarks.engines')
  parser.add_argument('cases', nargs='*', default=list(CASES))
  parser.add_argument('--rounds', type=int, default=1)
  parser.add_argument('--ray_address', default='')
  parser.add_argument('--ray_python', default='.venv-ray/bin/python')
  options = harness.parse(parser)
  if unknown := set(options.cases) - set(CASES):
    parser.error(f'unknown cases {sorted(unknown)}; choose from {list(CASES)}')
  rows = [
    harness.measure(comparison, options.rounds)
    for name in options.cases
    for comparison in _comparisons(
      name, options.ray_address, options.ray_python
    )
  ]
  print(harness.format_rows(rows))


if __name__ == '__main__':
  main()
