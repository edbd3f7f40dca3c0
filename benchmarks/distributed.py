"""Whole programs on two cores: ours and dm-acme's distributed R2D2.

Both run as processes of the same machine, with the same network, lengths, batch
and samples per insert. A sequence of T steps is inserted every T / 2 steps.
"""

import csv
import functools
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
from typing import Any, Dict, List, NamedTuple

from benchmarks import floors, harness

_ROOT = pathlib.Path(__file__).parents[1]
_GAME = 'breakout'
_NUM_ACTORS = 2
_SETTINGS: Dict[str, Any] = {
  'trace_length': 40,
  'sequence_period': 20,
  'batch_size': 8,
  'samples_per_insert': 1.0,
  'min_replay_size': 100,
  'max_replay_size': 10_000,
}
_START_SECONDS = 240.0  # A program may take so long until its learner learns.


class _Counts(NamedTuple):
  """What a program had done after so many seconds."""

  seconds: float
  actor_steps: int
  learner_steps: int


def _our_command(workdir: pathlib.Path) -> List[str]:
  flags = {
    'env': _GAME,
    'workdir': workdir,
    'num_actors': _NUM_ACTORS,
    'envs_per_actor': 16,
    'num_evaluators': 0,
    'max_actor_steps': 100_000_000,
    **_SETTINGS,
  }
  return [
    sys.executable,
    str(_ROOT / 'launch' / 'run_r2d2.py'),
    *(f'--{name}={value}' for name, value in flags.items()),
  ]


def _acme_command(workdir: pathlib.Path, counts: pathlib.Path) -> List[str]:
  settings = {**_SETTINGS, 'num_parallel_calls': 1}
  program = (
    'from benchmarks import acme_program; '
    f'acme_program.run({str(workdir)!r}, {str(counts)!r}, {_GAME!r}, '
    f'{_NUM_ACTORS}, **{settings!r})'
  )
  return [sys.executable, '-c', program]


def _last_counts(path: pathlib.Path) -> _Counts:
  """The counts of a log's last line; zeros before there is one."""
  try:
    with path.open() as file:
      *_, row = csv.DictReader(file)
    steps = int(row['actor_steps']), int(row['learner_steps'])
  except (OSError, ValueError, KeyError, TypeError):
    steps = 0, 0
  return _Counts(time.monotonic(), *steps)


def _next_counts(path: pathlib.Path) -> _Counts:
  """Waits until both counts have grown, which are written now and then."""
  first = _last_counts(path)
  while True:
    time.sleep(0.05)
    counts = _last_counts(path)
    if counts[1] > first[1] and counts[2] > first[2]:
      return counts


def _measure(command: List[str], path: pathlib.Path, seconds: float) -> float:
  """Agent steps a second of a program, after its learner began to learn.

  Args:
    command: that starts the program.
    path: where the program writes its counts.
    seconds: that are measured.

  Raises:
    RuntimeError: if the program ends, or does not learn in time.
  """
  with tempfile.TemporaryFile('w+') as output:
    process = subprocess.Popen(
      command,
      env={**os.environ, 'PYTHONPATH': str(_ROOT)},
      stdout=output,
      stderr=output,
      start_new_session=True,
    )
    try:
      deadline = time.monotonic() + _START_SECONDS
      while _last_counts(path).learner_steps < 10:
        if process.poll() is not None or time.monotonic() > deadline:
          output.seek(0)
          raise RuntimeError(f'{command} does not learn:\n{output.read()}')
        time.sleep(0.2)
      start = _next_counts(path)
      time.sleep(seconds)
      end = _next_counts(path)
    finally:
      _stop(process)
  return (end.actor_steps - start.actor_steps) / (end.seconds - start.seconds)


def _stop(process: 'subprocess.Popen[Any]') -> None:
  """Interrupts a program as Ctrl-C does; kills it if that takes too long."""
  process.send_signal(signal.SIGINT)
  try:
    process.wait(20)
  except subprocess.TimeoutExpired:
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _measure_ours(seconds: float) -> float:
  with tempfile.TemporaryDirectory() as folder:
    workdir = pathlib.Path(folder) / 'run'
    counts = workdir / 'logs' / 'learner' / 'logs.csv'
    return _measure(_our_command(workdir), counts, seconds)


def _measure_theirs(seconds: float) -> float:
  with tempfile.TemporaryDirectory() as folder:
    workdir = pathlib.Path(folder)
    counts = workdir / 'counts.csv'
    return _measure(_acme_command(workdir, counts), counts, seconds)


def e2e(settings: harness.Settings) -> List[harness.Row]:
  """Agent steps a second while learning, at R2D2's samples per insert.

  There is only one round, because it takes minutes.
  """
  seconds = settings.pick(15.0, 8.0)
  length, batch = _SETTINGS['trace_length'], _SETTINGS['batch_size']
  steps_per_update = _SETTINGS['sequence_period'] * batch
  flops = floors.flops()  # Of both cores.
  learner_flop = floors.LEARNER_FLOP * (length + 1) * batch / steps_per_update
  core_seconds = floors.emulation_seconds(_GAME) / _NUM_ACTORS

  return [
    harness.compare(
      f'e2e T={length} B={batch}',
      'steps/s',
      functools.partial(_measure_ours, seconds),
      functools.partial(_measure_theirs, seconds),
      rounds=0,
      limit=1 / (core_seconds + (floors.POLICY_FLOP + learner_flop) / flops),
      note=f'one round; a learner step every {steps_per_update} steps',
    )
  ]
