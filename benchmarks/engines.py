r"""Whole runs in one process against whole runs of a Launchpad program.

  .venv/bin/python -m benchmarks.engines

Both are launched by `launch/run_ngu.py` with equal settings, which say how many
learner steps an actor step brings. A run of few steps is taken off a run of
more, so that neither imports nor compiling count; what is compiled is found by
the runs after the first, which does not count.
"""

import argparse
import dataclasses
import functools
import pathlib
import subprocess
import sys
import tempfile
import time
from typing import Dict, List, NamedTuple

from benchmarks import harness, tables

_SCRIPT = pathlib.Path(__file__).parents[1] / 'launch' / 'run_ngu.py'


class _Case(NamedTuple):
  """What is run.

  Attributes:
    env: the environment.
    preset: the settings.
    few: actor steps that are taken off.
    more: actor steps.
  """

  env: str
  preset: str
  few: int
  more: int


CASES: Dict[str, _Case] = {
  'minigrid': _Case('MiniGrid-FourRooms-v0:no_goal', 'minigrid', 4_000, 24_000),
  'pong': _Case('pong', 'atari_small', 2_500, 6_500),
}


def _seconds(case: _Case, launch_type: str, steps: int) -> float:
  """Runs to the end, and returns how long it took."""
  with tempfile.TemporaryDirectory() as folder:
    start = time.monotonic()
    subprocess.run(
      [
        sys.executable,
        str(_SCRIPT),
        f'--env={case.env}',
        f'--preset={case.preset}',
        '--num_actors=1',
        '--num_evaluators=0',
        f'--max_actor_steps={steps}',
        f'--lp_launch_type={launch_type}',
        f'--workdir={folder}/run',
      ],
      check=True,
      capture_output=True,
    )
    return time.monotonic() - start


def _steps_per_second(case: _Case, launch_type: str) -> float:
  few, more = (_seconds(case, launch_type, n) for n in (case.few, case.more))
  return (case.more - case.few) / (more - few)


def main() -> None:
  """Measures the cases, and prints a table."""
  parser = argparse.ArgumentParser(prog='python -m benchmarks.engines')
  parser.add_argument('cases', nargs='*', default=list(CASES))
  parser.add_argument('--rounds', type=int, default=1)
  options = parser.parse_args()
  rows: List[harness.Row] = []
  for name in options.cases:
    if name not in CASES:
      parser.error(f'{name!r} is none of {list(CASES)}')
    case = CASES[name]
    rows.append(
      harness.compare(
        f'engine {name}',
        'steps/s',
        functools.partial(_steps_per_second, case, 'in_process'),
        functools.partial(_steps_per_second, case, 'local_mp'),
        rounds=options.rounds,
        peer='local_mp',
      )
    )
  print(tables.format_rows([dataclasses.asdict(row) for row in rows]))


if __name__ == '__main__':
  main()
