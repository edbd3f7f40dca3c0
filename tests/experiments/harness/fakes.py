"""Fake runs that take no time, for tests of the worker.

python fakes.py run KIND FLAG ...     executes a fake run
python fakes.py work KIND NUM_SEEDS   starts a worker in this directory
python fakes.py complete NAME ...     starts a worker for runs of functions
"""

import collections
import dataclasses
import functools
import hashlib
import json
import math
import os
import pathlib
import signal
import sys
import time
from typing import ClassVar

ENV = 'MiniGrid-Empty-5x5-v0'
_SECONDS = {'slow': 1, 'long': 100, 'stubborn': 100}


def specs(num_seeds):
  """Returns a pre-training run and two transfer runs for each seed."""
  from experiments.harness import runs

  found = []
  for seed in range(num_seeds):
    ngu = runs.RunSpec(
      runs.PRETRAINING, 'ngu', f'{ENV}:no_goal', seed, 'run_ngu', 100
    )
    bt = runs.RunSpec(
      *(runs.TRANSFER, 'bt_ngu', ENV, seed, 'run_bt', 100),
      needs=(runs.Need('behavior', ngu),),
    )
    r2d2 = runs.RunSpec(runs.TRANSFER, 'r2d2', ENV, seed, 'run_r2d2', 100)
    found += [bt, r2d2]
  return runs.ordered(found)


def command_of(kind):
  """Returns a function that returns the command of a fake run."""
  return lambda script, flags: [sys.executable, __file__, 'run', kind, *flags]


def executions(folder):
  """Returns the workdirs of all executions in order."""
  return [words[0] for words in _lines(folder)]


@dataclasses.dataclass(frozen=True)
class Write:
  """A run that records which process executed it."""

  id: str
  needed: tuple = ()
  actor_steps: ClassVar[int] = 1
  is_evaluation: ClassVar[bool] = False

  def is_ready(self, folder):
    return all(run.is_done(folder) for run in self.needed)

  def is_done(self, folder):
    return (folder / self.id).exists()

  def result(self, folder):
    return {'row': {'seconds': 0}}

  def call(self, folder):
    return functools.partial(self._execute, folder)

  def _execute(self, folder, report):
    with (folder / 'executions').open('a') as file:
      file.write(f'{self.id} {os.getpid()} {os.environ["OMP_NUM_THREADS"]}\n')
    report((0, math.nan))
    print(f'{self.id} is logged')
    if self.id == 'fails':
      raise ValueError('It fails.')
    if self.id == 'crashes' and counts(folder)[self.id] == 1:
      os._exit(9)
    while self.id.startswith('slow') and not (folder / 'go').exists():
      time.sleep(0.02)
    (folder / self.id).touch()


def counts(folder):
  """Counts the executions of each function."""
  return collections.Counter(executions(folder))


def processes(folder):
  """Returns the PIDs of the processes that executed functions."""
  return [int(words[1]) for words in _lines(folder)]


def _lines(folder):
  path = pathlib.Path(folder) / 'executions'
  lines = path.read_text().splitlines() if path.exists() else []
  return [line.split() for line in lines]


def _run(kind, *flags):
  values = dict(flag[2:].split('=', 1) for flag in flags)
  if 'output' in values:
    return _evaluate(pathlib.Path(values['output']), int(values['episodes']))
  workdir = pathlib.Path(values['workdir'])
  workdir.mkdir(parents=True, exist_ok=True)
  with open('executions', 'a') as file:
    file.write(f'{workdir}\n')
  lock = workdir / 'lock'
  try:
    with lock.open('x') as file:
      file.write(str(os.getpid()))
  except FileExistsError:
    pathlib.Path('overlaps').write_text(str(workdir))

  def stop(signum, frame):
    del frame
    if kind == 'stubborn':
      return
    lock.unlink()
    os._exit(128 + signum)

  signal.signal(signal.SIGINT, stop)
  signal.signal(signal.SIGTERM, stop)
  first = not (workdir / 'begun').exists()
  (workdir / 'begun').touch()
  end = time.monotonic() + _SECONDS.get(kind, 0)
  while time.monotonic() < end:
    time.sleep(0.1)
  while kind == 'waits' and not pathlib.Path('go').exists():
    time.sleep(0.02)
  lock.unlink()
  if kind == 'wrong':
    print('error: nonsense=1 is not a flag')
    return 2
  if kind == 'fails' or (kind == 'fails_once' and first):
    print('\n'.join(f'line {i}' for i in range(100)))
    return 1
  if kind == 'incomplete':
    return 0
  if workdir.parts[1] == 'ngu':
    behavior = workdir / 'behavior'
    behavior.mkdir(exist_ok=True)
    (behavior / 'params.npz').write_bytes(b'parameters')
    checksum = hashlib.sha256(b'parameters').hexdigest()
    card = json.dumps({'params_sha256': checksum})
    (behavior / 'behavior.json').write_text(card)
  completed = {'max_actor_steps': int(values['max_actor_steps'])}
  (workdir / 'completed.json').write_text(json.dumps(completed))
  return 0


def _evaluate(path, episodes):
  path.parent.mkdir(parents=True)
  rows = ''.join(f'100,{i}\n' for i in range(episodes))
  path.write_text(f'actor_steps,episode_return\n{rows}')
  return 0


def _work(kind, num_seeds):
  from experiments import launching
  from experiments.harness import slots, workers

  launching.command_of = command_of(kind)
  folder = pathlib.Path.cwd()
  worker = workers.Worker(folder, specs(int(num_seeds)), slots.parse('cpu:1'))
  print(repr(worker.work()), flush=True)
  return 0


def _complete(*names):
  from experiments.harness import progress

  # The processes of slots import this module by its full name.
  from tests.experiments.harness import fakes

  todo = [fakes.Write(name) for name in names]
  return progress.complete(todo, pathlib.Path.cwd(), processes=1)


if __name__ == '__main__':
  main = {'run': _run, 'work': _work, 'complete': _complete}
  sys.exit(main[sys.argv[1]](*sys.argv[2:]))


def scores_of(dataset, run_id, source):
  """Returns the scores of a run from one source, sorted by actor steps."""
  found = [
    s for s in dataset.scores if (s.run_id, s.source) == (run_id, source)
  ]
  return sorted(found, key=lambda score: score.actor_steps)
