"""Fake runs that take no time, for tests of workers.

python fakes.py run KIND FLAG ...     executes a fake script
python fakes.py complete ID ...       starts a worker for fake functions
"""

import collections
import contextlib
import dataclasses
import functools
import hashlib
import json
import os
import pathlib
import pickle
import sys
import time
import types
from unittest import mock

# Settings of small runs with a tiny network.
TINY = {
  **dict.fromkeys(['torso_size', 'lstm_size', 'head_size'], 8),
  **{'samples_per_insert': 1.0, 'min_replay_size': 4},
}


def executions(folder):
  """Returns the ids or workdirs of all executions in order."""
  path = pathlib.Path(folder) / 'executions'
  lines = path.read_text().splitlines() if path.exists() else []
  return [line.split()[0] for line in lines]


def counts(folder):
  """Counts the executions of each run."""
  return collections.Counter(executions(folder))


def scores_of(dataset, run_id, source):
  """Returns the scores of a run from one source, sorted by actor steps."""
  found = (s for s in dataset.scores if s[:2] == (run_id, source))
  return sorted(found, key=lambda score: score.actor_steps)


# Runs that are functions.


@dataclasses.dataclass(frozen=True)
class Write:
  """A run that writes a file; the first word of its id decides how it ends."""

  id: str
  needed: tuple = ()
  is_evaluation: bool = False
  actor_steps = 1

  def is_ready(self, folder):
    return all(run.is_done(folder) for run in self.needed)

  def is_done(self, folder):
    return (folder / self.id).exists()

  def result(self, folder):
    return {'row': {'seconds': 0}}

  def call(self, folder):
    return functools.partial(self._execute, folder)

  def _execute(self, folder, report):
    threads = os.environ.get('OMP_NUM_THREADS')
    with (folder / 'executions').open('a') as file:
      file.write(f'{self.id} {os.getpid()} {threads}\n')
    report(1)
    print(f'{self.id} is logged')
    kind, is_first = self.id.partition('_')[0], counts(folder)[self.id] == 1
    ignored = [KeyboardInterrupt] if kind == 'stubborn' else []
    mark = folder / f'{self.id}.lock'
    mark.touch(exist_ok=kind == 'crashes')  # One process executes it at a time.
    try:
      if kind == 'fails' or (kind == 'once' and is_first):
        raise ValueError('It fails.')
      if kind == 'ends' and is_first:
        raise SystemExit(143)
      if kind == 'crashes' and is_first:
        os._exit(9)
      while kind in ('waits', 'stubborn') and not (folder / 'go').exists():
        with contextlib.suppress(*ignored):
          time.sleep(0.02)
    finally:
      mark.unlink()
    if kind != 'incomplete':
      (folder / self.id).touch()


def _complete(*ids):
  from experiments.harness import execution

  # The processes of slots import this module by its full name.
  from tests.experiments.harness import fakes

  todo = [fakes.Write(each) for each in ids]
  return execution.complete(todo, pathlib.Path.cwd(), processes=1)


@contextlib.contextmanager
def worker_in_this_process():
  """Replaces workers by one that executes all runs in this process."""
  from experiments.harness import workers

  def make(folder, runs, slots, *, on_end=lambda *_: None, **callbacks):
    def work():
      for run in runs:
        assert run.is_ready(folder)
        # A process of a slot receives a pickled function.
        pickle.loads(pickle.dumps(run.call(folder)))(lambda news: None)
        on_end(run, 'ended')
      return workers.Outcome(len(runs), [], [], 0)

    return types.SimpleNamespace(work=work)

  with mock.patch.object(workers, 'Worker', make):
    yield


# Runs that are scripts.


def command_of(kind):
  """Returns a function that returns the command of a fake script."""
  return lambda script, flags: [sys.executable, __file__, 'run', kind, *flags]


def _run(kind, *flags):
  values = dict(flag[2:].split('=', 1) for flag in flags)
  if 'output' in values:
    return _evaluate(pathlib.Path(values['output']), int(values['episodes']))
  workdir = pathlib.Path(values['workdir'])
  workdir.mkdir(parents=True, exist_ok=True)
  with open('executions', 'a') as file:
    file.write(f'{workdir}\n')
  if kind == 'wrong':
    print('error: nonsense=1 is not a flag')
    return 2
  if kind == 'fails':
    print('\n'.join(f'line {i}' for i in range(100)))
    return 1
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


if __name__ == '__main__':
  main = {'run': _run, 'complete': _complete}
  sys.exit(main[sys.argv[1]](*sys.argv[2:]))
