"""Runs that take no time, for tests of the queue.

python fakes.py run KIND FLAG ...   what a fake run's process does
python fakes.py work FOLDER KIND NUM_SEEDS   a worker in a process of its own
"""

import hashlib
import json
import os
import pathlib
import signal
import sys
import time

ENV = 'MiniGrid-Empty-5x5-v0'
_SLOW_STEPS = 15


def specs(num_seeds, *, script_settings=()):
  """A pre-training, and what builds on it, for each seed."""
  from experiments.harness import runs

  found = []
  for seed in range(num_seeds):
    ngu = runs.RunSpec(
      *(runs.PRETRAINING, 'ngu', f'{ENV}:no_goal', seed, 'run_ngu', 100),
      settings=script_settings,
    )
    bt = runs.RunSpec(
      *(runs.TRANSFER, 'bt_ngu', ENV, seed, 'run_bt', 100),
      settings=script_settings,
      needs=(runs.Need('behavior', ngu),),
    )
    r2d2 = runs.RunSpec(
      *(runs.TRANSFER, 'r2d2', ENV, seed, 'run_r2d2', 100),
      settings=script_settings,
    )
    found += [bt, r2d2]
  return runs.ordered(found)


def command(kind):
  """Makes the command of a fake run."""

  def make(spec):
    return [sys.executable, __file__, 'run', kind, *spec.flags]

  return make


def executions(folder):
  """The workdirs of all executions, in their order."""
  path = pathlib.Path(folder) / 'executions'
  return path.read_text().split() if path.exists() else []


def _run(kind, flags):
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
    lock.unlink()
    os._exit(128 + signum)

  signal.signal(signal.SIGINT, stop)
  signal.signal(signal.SIGTERM, stop)
  first = not (workdir / 'begun').exists()
  (workdir / 'begun').touch()
  if kind == 'slow':
    for _ in range(_SLOW_STEPS):
      time.sleep(0.1)
  lock.unlink()
  if kind == 'wrong':
    print('error: nonsense=1 is no flag')
    return 2
  if kind == 'fails' or (kind == 'fails_once' and first):
    print('\n'.join(f'line {i}' for i in range(100)))
    return 1
  if kind == 'lies':
    return 0
  if workdir.parts[1] == 'ngu':
    if kind == 'pretraining_fails':
      return 1
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


def _work(folder, kind, num_seeds):
  from experiments.harness import queue, slots

  worker = queue.Worker(
    pathlib.Path(folder),
    specs(int(num_seeds)),
    slots.parse('cpu:1'),
    command=command(kind),
    poll_seconds=0.05,
  )
  print(worker.work(), flush=True)
  return 0


if __name__ == '__main__':
  main = {'run': lambda kind, *flags: _run(kind, flags), 'work': _work}
  sys.exit(main[sys.argv[1]](*sys.argv[2:]))
