"""Faults in random order on every kind of process of a run: `make chaos`.

  .venv/bin/python -m tests.launch.chaos --faults=100 --seed=7

Each fault hits a small pre-training: a node is killed, stopped or told to end;
the disk is full for a while; Ctrl-C is typed or the launcher is killed, and the
same command is given again. After each, actors and learner have to go on,
and the run has to be whole: one living process for each node and none besides,
a checkpoint that can be read, logs without a step back. In the end the run has
to reach its budget with exit code 0, and its behavior has to load. The seed is
printed, and repeats the faults, though not their moments.

Only root can fill a disk without harm, one of its own: for others that fault is
left out.
"""

import argparse
import contextlib
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import tempfile
import time

from bt_acme import behaviors
from tests.launch import scripts

ACTORS = 2
NODES = (
  *('coordinator-0', 'learner-0', 'replay-0', 'inference-0', 'evaluator-0'),
  *(f'actor-{i}' for i in range(ACTORS)),
)
# What happens to the whole run, besides what happens to a node.
INTERRUPT, KILL_LAUNCHER = 'Ctrl-C', 'launcher killed'
FILL_DISK = 'full disk'
SIGNALS = {
  'killed': signal.SIGKILL,
  'stopped': signal.SIGSTOP,
  'told to end': signal.SIGTERM,
}
_PATIENCE = 300.0  # Seconds in which a run has to go on.
_END_SECONDS = 120.0
_MORE_STEPS = 2_000  # The budget leaves so many after the last fault.
_OVERSHOOT = 2 * 4 * ACTORS  # Each actor may overshoot by a turn of each group.
_DISK_SIZE = '200m'
_FULL_SECONDS = 10.0  # Several checkpoints are due in this time.


def faults(number, seed):
  """Returns so many faults: what happens, and to which node or ''."""
  generator = random.Random(seed)
  every = [(f'{n} {how}', n) for n in NODES for how in SIGNALS]
  every += [(INTERRUPT, ''), (KILL_LAUNCHER, ''), (FILL_DISK, '')]
  chosen = []
  while len(chosen) < number:
    chosen += generator.sample(every, len(every))
  return chosen[:number]


def _size(path):
  return path.stat().st_size if path.exists() else 0


class Chaos:
  """A run under faults."""

  def __init__(self, folder):
    self.workdir = folder / 'run'
    self.script = None
    self._budget = 1_000_000
    self._start()

  def _start(self):
    self.script = scripts.Script(
      'run_ngu',
      self.workdir,
      *scripts.NGU,
      f'--num_actors={ACTORS}',
      '--inference=server',
      '--evaluation_period=500',
      '--checkpoint_period=2',
      '--max_restarts=10000',
      '--watchdog_seconds=60',
      f'--max_actor_steps={self._budget}',
      capture=False,
    )

  def pid(self, name):
    """The process of a node; None before its first one."""
    path = self.workdir / 'processes' / f'{name}.log'
    text = path.read_text() if path.exists() else ''
    found = re.findall(r'^--- .*process (\d+)$', text, re.M)
    return int(found[-1]) if found else None

  def steps(self):
    """The actor steps at each row of the actors' log."""
    return [int(r['actor_steps']) for r in scripts.rows(self.workdir, 'actor')]

  def wait_until_it_goes_on(self):
    """Waits until each actor, the learner and the evaluator log anew."""
    missing = {f'actor-{i}' for i in range(ACTORS)} | {'learner', 'evaluator'}
    paths = {
      label: self.workdir / 'logs' / label / 'logs.csv'
      for label in ('actor', 'learner', 'evaluator')
    }
    sizes = {label: _size(path) for label, path in paths.items()}
    deadline = time.monotonic() + _PATIENCE
    while missing:
      assert self.script.process.poll() is None, 'the run has ended'
      assert time.monotonic() < deadline, f'{sorted(missing)} do not go on'
      time.sleep(0.2)
      for label, path in paths.items():
        if _size(path) > sizes[label]:
          missing.discard(label)
          last = scripts.rows(self.workdir, label)[-ACTORS:]
          if label == 'actor':
            missing -= {f'actor-{int(r["environment"]) // 4}' for r in last}
        sizes[label] = _size(path)

  def strike(self, what, name):
    """Lets a fault happen; returns the actor steps that were lost."""
    before = self.steps()[-1]
    life = scripts.rows(self.workdir, 'actor')[-1]['life']
    if name:
      old = self.pid(name)
      os.kill(old, SIGNALS[what.removeprefix(f'{name} ')])
      self._wait(lambda: self.pid(name) != old, f'{name} was not started anew')
    elif what == FILL_DISK:
      self._fill_disk()
    elif what == INTERRUPT:
      start = time.monotonic()
      self.script.process.send_signal(signal.SIGINT)
      code = self.script.process.wait(_END_SECONDS)
      assert code == 130, code
      print(f'  ended in {time.monotonic() - start:.1f} s')
      self._start_again()
    else:
      self.script.process.kill()
      self.script.process.wait()
      self._start_again()
    self.wait_until_it_goes_on()
    rows = scripts.rows(self.workdir, 'actor')
    if rows[-1]['life'] == life:
      return 0
    # The log is cut to the checkpoint that the new life goes on from.
    kept = [row for row in rows if row['life'] != rows[-1]['life']]
    return before - int(kept[-1]['actor_steps']) if kept else before

  def _fill_disk(self):
    """Leaves no room on the disk for a while, which nobody dies of."""
    pids = [self.pid(name) for name in NODES]
    filler = self.workdir / 'filler'
    deadline = time.monotonic() + _FULL_SECONDS
    with filler.open('wb', buffering=0) as file:
      while time.monotonic() < deadline:
        # The run gives back what it could not complete.
        with contextlib.suppress(OSError):
          while file.write(bytes(1 << 12)):
            pass
        time.sleep(0.05)
    filler.unlink()
    assert [self.pid(name) for name in NODES] == pids

  def _start_again(self):
    self._wait(
      lambda: not self.script.survivors(), 'processes were left behind'
    )
    self._start()
    old = self.pid('actor-0')
    self._wait(lambda: self.pid('actor-0') != old, 'it did not start again')

  def _wait(self, condition, otherwise):
    deadline = time.monotonic() + _PATIENCE
    while not condition():
      assert time.monotonic() < deadline, otherwise
      time.sleep(0.1)

  def check(self):
    """Looks whether the run is whole."""
    pids = {self.script.process.pid, *map(self.pid, NODES)}
    self._wait(
      lambda: {p.pid for p in self.script.survivors()} <= self._known(),
      'a process was left behind',
    )
    assert pids <= {p.pid for p in self.script.survivors()}, 'a node is missing'
    scripts.checkpoint(self.workdir)  # It can be read.
    steps = self.steps()
    assert steps == sorted(steps), 'the log of the actors has a step back'

  def _known(self):
    """The launcher, the nodes, and what these have started."""
    known = {self.script.process.pid, *map(self.pid, NODES)}
    return known | {
      process.pid
      for process in self.script.survivors()
      if any(parent.pid in known for parent in process.parents())
    }

  def finish(self):
    """Takes the run to a budget, and looks at its end."""
    self.script.process.send_signal(signal.SIGINT)
    assert self.script.process.wait(_END_SECONDS) == 130
    _, values = scripts.checkpoint(self.workdir)
    self._budget = values['counts']['actor_steps'] + _MORE_STEPS
    self._start()
    assert self.script.process.wait(_PATIENCE) == 0
    assert not self.script.survivors()
    _, values = scripts.checkpoint(self.workdir)
    over = values['counts']['actor_steps'] - self._budget
    assert 0 <= over < _OVERSHOOT, over
    points = {
      int(r['evaluation_point'])
      for r in scripts.rows(self.workdir, 'evaluator')
    }
    assert {0, self._budget} <= points, sorted(points)[-3:]
    behaviors.Exported(str(self.workdir / 'behavior'))

  def close(self):
    self.script.__exit__()


@contextlib.contextmanager
def own_disk(folder):
  """Gives a folder a small disk of its own; yields whether that is allowed."""
  options = ['-t', 'tmpfs', '-o', f'size={_DISK_SIZE}', 'tmpfs']
  done = subprocess.run(['mount', *options, folder], capture_output=True)
  if done.returncode:
    print(f'No disk is filled: {done.stderr.decode().strip()}')
  try:
    yield not done.returncode
  finally:
    if not done.returncode:
      subprocess.run(['umount', '--lazy', folder], check=True)


def run(chosen, folder):
  """Strikes with all of some faults; returns a table of what happened."""
  table = ['| fault | goes on after, s | actor steps lost |', '|---|---|---|']
  with (
    own_disk(folder) as can_fill_disk,
    contextlib.closing(Chaos(folder)) as chaos,
  ):
    chaos._wait(lambda: chaos.pid('actor-0'), 'it did not start')
    chaos.wait_until_it_goes_on()
    for i, (what, name) in enumerate(chosen):
      print(f'{i + 1} of {len(chosen)}: {what}', flush=True)
      if what == FILL_DISK and not can_fill_disk:
        continue
      start = time.monotonic()
      lost = chaos.strike(what, name)
      table.append(f'| {what} | {time.monotonic() - start:.0f} | {lost} |')
      print(
        f'  goes on after {time.monotonic() - start:.0f} s, lost {lost} steps'
      )
      chaos.check()
    chaos.finish()
  return '\n'.join(table)


def main():
  parser = argparse.ArgumentParser(description=__doc__)
  parser.add_argument('--faults', type=int, default=100)
  parser.add_argument('--seed', type=int, default=int(time.time()))
  options = parser.parse_args()
  print(f'--seed={options.seed}', flush=True)
  with tempfile.TemporaryDirectory() as folder:
    chosen = faults(options.faults, options.seed)
    print(run(chosen, pathlib.Path(folder)))
  print(f'{options.faults} faults, and the run reached its budget.')


if __name__ == '__main__':
  sys.exit(main())
