"""Compares whole programs on two cores: ours and dm-acme's distributed R2D2.

Both run as processes on the same machine with the same network, lengths, batch
and samples per insert. A sequence of T steps is inserted every T / 2 steps.
"""

import contextlib
import functools
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import IO

from benchmarks import harness, limits
from bt_acme.evaluation import logs
from bt_acme.runtime.engines import node_process

_ROOT = pathlib.Path(__file__).parents[1]
_GAME = 'breakout'
_NUM_ACTORS = 2
_LENGTH, _PERIOD, _BATCH = 40, 20, 8
_SETTINGS = {
  'trace_length': _LENGTH,
  'sequence_period': _PERIOD,
  'batch_size': _BATCH,
  'samples_per_insert': 1.0,
  'min_replay_size': 100,
  'max_replay_size': 10_000,
}
_STEP_SECONDS = 240.0  # Time limit for learner steps; the first ones compile.


def _our_command(workdir: str) -> list[str]:
  return [
    *(sys.executable, str(_ROOT / 'launch' / 'run_r2d2.py')),
    *(f'--env={_GAME}', f'--workdir={workdir}', f'--num_actors={_NUM_ACTORS}'),
    *('--envs_per_actor=16', '--num_evaluators=0'),
    '--max_actor_steps=100000000',
    *(f'--{name}={value}' for name, value in _SETTINGS.items()),
  ]


def _acme_command(workdir: str) -> list[str]:
  settings = {**_SETTINGS, 'num_parallel_calls': 1}
  program = (
    'from benchmarks import acme_program; '
    f'acme_program.run({workdir!r}, {_GAME!r}, {_NUM_ACTORS}, **{settings!r})'
  )
  return [sys.executable, '-c', program]


def _last_counts(workdir: str) -> tuple[float, float]:
  """Returns the last logged actor and learner steps; zeros without rows."""
  last = (logs.read_rows(logs.path_of(workdir, 'learner')) or [{}])[-1]
  return last.get('actor_steps', 0.0), last.get('learner_steps', 0.0)


def _wait_for_step(
  workdir: str, process: 'subprocess.Popen[bytes]', output: IO[str]
) -> tuple[float, float]:
  """Waits until actor and learner advance; returns time and actor steps.

  The first 10 learner steps do not count.

  Raises:
    RuntimeError: if the program exits, or does not advance in time.
  """
  deadline = time.monotonic() + _STEP_SECONDS
  first = counts = _last_counts(workdir)
  while counts[0] <= first[0] or counts[1] <= max(first[1], 9):
    code = process.poll()
    if code is not None or time.monotonic() > deadline:
      slow = f'did not advance in {_STEP_SECONDS:.0f} s'
      what = slow if code is None else f'ended with exit code {code}'
      output.seek(0)
      raise RuntimeError(f'The program {what}. Output:\n{output.read()}')
    time.sleep(0.05)
    counts = _last_counts(workdir)
  return time.monotonic(), counts[0]


def _seconds_per_step(
  make_command: Callable[[str], list[str]], seconds: float
) -> float:
  """Runs a program and measures its speed once its learner takes steps.

  Args:
    make_command: returns the command that starts the program in a workdir.
    seconds: the duration of the measurement.

  Raises:
    RuntimeError: if the program exits, or its learner is too slow.
  """
  with (
    tempfile.TemporaryDirectory() as folder,
    tempfile.TemporaryFile('w+') as output,
  ):
    workdir = f'{folder}/run'
    process = subprocess.Popen(
      make_command(workdir),
      env={**os.environ, 'PYTHONPATH': str(_ROOT)},
      stdout=output,
      stderr=output,
      start_new_session=True,
    )
    try:
      start, steps_before = _wait_for_step(workdir, process, output)
      time.sleep(seconds)
      end, steps_after = _wait_for_step(workdir, process, output)
    finally:
      process.send_signal(signal.SIGINT)
      with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(20)
      node_process.send(process, signal.SIGKILL)
      process.wait()
  return (end - start) / (steps_after - steps_before)


def e2e() -> Iterator[harness.Comparison]:
  """Compares agent steps per second while learning at one sample per insert.

  There is only one round, because a round takes minutes.
  """
  seconds = 8.0 if harness.quick else 15.0
  steps_per_update = _PERIOD * _BATCH
  learner_flop = limits.LEARNER_FLOP * (_LENGTH + 1) * _BATCH / steps_per_update
  flop = limits.POLICY_FLOP + learner_flop
  emulation = limits.emulation_seconds(_GAME) / _NUM_ACTORS
  yield harness.Comparison(
    f'e2e T={_LENGTH} B={_BATCH}',
    'steps/s',
    functools.partial(_seconds_per_step, _our_command, seconds),
    functools.partial(_seconds_per_step, _acme_command, seconds),
    emulation + flop / limits.flops(),  # Both cores compute.
    note=f'one round; a learner step every {steps_per_update} steps',
    once=True,
  )
