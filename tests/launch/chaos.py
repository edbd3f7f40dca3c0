"""Injects random faults into every process and machine of a run: `make chaos`.

  .venv/bin/python -m tests.launch.chaos --faults=100 --seed=7
  .venv/bin/python -m tests.launch.chaos --machines=0

Each fault hits a small pre-training run on three machines of a Ray cluster,
which this computer simulates (`tests.launch.machines`):

- A node is killed, suspended or told to stop.
- A machine loses its power, or its network for a short or long time.
- The disk is full for a while.
- Ctrl-C is typed or the launcher is killed, and the command is run again.

After each fault, actors, learner and evaluator must resume, and the run must be
intact: one living process per node and no others, a readable checkpoint, and
logs whose steps never decrease. In the end the run must reach its budget with
exit code 0, and its behavior must load. The printed seed reproduces the faults,
but not their exact times.

Without machines (`--machines=0`, or where the system does not allow them) the
nodes are processes of this computer. Filling a disk requires root, to mount a
small disk for the run; other users skip that fault.
"""

import argparse
import contextlib
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

import psutil

from bt_acme import behaviors
from bt_acme.evaluation import tables
from bt_acme.runtime import heartbeats
from tests.launch import machines as machines_lib
from tests.launch import scripts

ACTORS = 2
NODES = (
  *('coordinator/0', 'learner/0', 'replay/0', 'inference/0', 'evaluator/0'),
  *(f'actor/{i}' for i in range(ACTORS)),
)
# Faults of the whole run.
INTERRUPT, KILL_LAUNCHER = 'Ctrl-C', 'launcher killed'
FILL_DISK = 'full disk'
# Faults of a machine. The first machine, with the launcher, learner and replay,
# is never lost, because the run could not continue without it.
BLIP, CUT, CRASH = 'cut off for a moment', 'cut off', 'without power'
# Faults of a node.
SIGNALS = {
  'killed': signal.SIGKILL,
  'stopped': signal.SIGSTOP,
  'told to end': signal.SIGTERM,
}
_PATIENCE = 300.0  # Seconds in which a run has to resume.
_END_SECONDS = 120.0
_MORE_STEPS = 2_000  # Actor steps from the last fault to the budget.
_OVERSHOOT = 2 * 4 * ACTORS  # An actor may exceed it by a step in each group.
_DISK_SIZE = '200m'
_FULL_SECONDS = 10.0  # Several checkpoints are due in this time.
_BLIP_SECONDS = 5.0


def faults(number, seed, num_machines=0):
  """Returns random faults: the kind, and the node or machine that it hits."""
  generator = random.Random(seed)
  machines = range(num_machines)
  every = [
    *((how, node) for node in NODES for how in SIGNALS),
    *((how, '') for how in (INTERRUPT, KILL_LAUNCHER, FILL_DISK)),
    *((BLIP, machine) for machine in machines),
    *((how, machine) for machine in machines[1:] for how in (CUT, CRASH)),
  ]
  chosen = []
  while len(chosen) < number:
    chosen += generator.sample(every, len(every))
  return chosen[:number]


def name_of(what, where):
  """Returns the name of a fault for messages."""
  if isinstance(where, int):
    return f'machine {where + 1} {what}'
  return f'{where} {what}'.strip()


class Chaos:
  """A run that is hit by faults."""

  def __init__(self, folder, num_machines):
    """Starts a run.

    Args:
      folder: the directory in which the workdir is created.
      num_machines: the number of machines; 0 for processes of this computer.
    """
    self.workdir = folder / 'run'
    self._machines = None
    if num_machines:
      # One machine alone can run all actors, inference and evaluator.
      self._machines = machines_lib.Machines(num_machines, num_cpus=ACTORS + 2)
    self.script = None
    self._budget = 1_000_000_000
    self._start()

  def _start(self):
    flags, where = (), {}
    if self._machines is not None:
      flags = machines_lib.flags(self._machines.address)
      where['environment'] = machines_lib.VARIABLES
      where['prefix'] = self._machines.command_on(0)
    self.script = scripts.Script(
      'run_ngu',
      self.workdir,
      *scripts.NGU,
      *flags,
      f'--num_actors={ACTORS}',
      '--inference=server',
      '--evaluation_period=500',
      '--checkpoint_period=2',
      '--max_restarts=10000',
      '--watchdog_seconds=60',
      f'--max_actor_steps={self._budget}',
      capture=False,
      **where,
    )

  def processes(self):
    """Returns the title of each process of the run ('' without one), by PID."""
    found = {p.pid: title_of(p) for p in self.script.survivors()}
    if self._machines is not None:
      # Nodes have the environment of their machine.
      for pid in self._machines.all_processes():
        with contextlib.suppress(psutil.NoSuchProcess):
          title = title_of(psutil.Process(pid))
          found.update({pid: title} if title else {})
    return found

  def pids(self):
    """Returns the PID of the newest process of each node, by title."""
    found = []
    for pid, title in self.processes().items():
      with contextlib.suppress(psutil.NoSuchProcess):
        process = psutil.Process(pid)
        parent = process.parent()
        # Child processes of a node have its title, too.
        if title and (parent is None or title_of(parent) != title):
          found.append((process.create_time(), title, pid))
    return {title: pid for _, title, pid in sorted(found)}

  def _rows(self, label):
    return scripts.rows(self.workdir, label)

  def wait_for_progress(self):
    """Waits for new rows of each actor, the learner and the evaluator."""
    labels = ('actor', 'learner', 'evaluator')
    last = max(
      (_seconds(row) for label in labels for row in self._rows(label)[-1:]),
      default=-1.0,
    )

    def is_done():
      assert self.script.process.poll() is None, 'the run has ended'
      new = {
        label: [row for row in self._rows(label) if _seconds(row) > last]
        for label in labels
      }
      actors = {int(row['environment']) // 4 for row in new['actor']}
      return all(new.values()) and len(actors) == ACTORS

    self._wait(is_done, 'a node does not resume')

  def strike(self, what, where):
    """Injects a fault; returns the lost progress; see `_standing`."""
    before = self._standing()
    session = self._session()
    if what in SIGNALS:
      pid = self.pids()[where]
      os.kill(pid, SIGNALS[what])
      self._wait_for_new({where: pid})
    elif what == BLIP:
      with self._no_restarts():
        self._machines.cut(where)
        time.sleep(_BLIP_SECONDS)
        self._machines.mend(where)
    elif what in (CUT, CRASH):
      self._lose(what, where)
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
    self.wait_for_progress()
    if self._session() == session:
      return [0, 0, 0]
    # The log was truncated to the checkpoint from which the session resumed.
    after = self._standing(before_session=self._session())
    first = next(
      row for row in self._rows('learner') if row['session'] == self._session()
    )
    # The checkpoint may be newer than the last row before the fault.
    after[-1] = int(float(first['replay_size']))
    return [max(0, b - a) for b, a in zip(before, after, strict=True)]

  def _session(self):
    return self._rows('actor')[-1]['session']

  def _standing(self, before_session=None):
    """Returns the actor steps, learner steps and replay items of the run.

    Args:
      before_session: the session from which the rows are ignored.
    """
    standing = []
    for label, key in (
      ('actor', 'actor_steps'),
      ('learner', 'learner_steps'),
      ('learner', 'replay_size'),
    ):
      rows = self._rows(label)
      found = [row[key] for row in rows if row['session'] != before_session]
      standing.append(int(float(found[-1])) if found else 0)
    return standing

  def _fill_disk(self):
    """Fills the disk for a while."""
    filler = self.workdir / 'filler'
    deadline = time.monotonic() + _FULL_SECONDS
    with self._no_restarts(), filler.open('wb', buffering=0) as file:
      while time.monotonic() < deadline:
        # The run deletes files that it could not complete.
        with contextlib.suppress(OSError):
          while file.write(bytes(1 << 12)):
            pass
        time.sleep(0.05)
      filler.unlink()

  def _lose(self, what, machine):
    """Takes a machine away from the run, and gives it back."""
    there = self._machines.processes(machine)
    lost = {node: pid for node, pid in self.pids().items() if pid in there}
    if what == CRASH:
      self._machines.crash(machine)
    else:
      self._machines.cut(machine)
    self._wait_for_new(lost)
    self._machines.mend(machine)
    # Nodes that kept running on the machine must end.
    self._wait(
      lambda: not any(map(psutil.pid_exists, lost.values())),
      'nodes of the lost machine were left behind',
    )
    self._machines.boot(machine)

  @contextlib.contextmanager
  def _no_restarts(self):
    pids = self.pids()
    yield
    assert self.pids() == pids, 'a node has exited'

  def _start_again(self):
    self._wait(lambda: not self.processes(), 'processes were left behind')
    self._start()

  def _wait_for_new(self, old):
    """Waits until nodes have processes other than these."""

    def is_done():
      pids = self.pids()
      return all(pids.get(node, pid) != pid for node, pid in old.items())

    self._wait(is_done, f'one of {list(old)} was not restarted')

  def _wait(self, condition, otherwise):
    scripts.wait_until(condition, None, _PATIENCE, pause=0.5, what=otherwise)

  def check(self):
    """Checks that the run is intact."""
    assert set(self.pids()) == set(NODES), 'a node is missing'
    self._wait(
      lambda: self.processes().keys() <= self._known(),
      'a process was left behind',
    )
    values = scripts.checkpoint(self.workdir)  # It can be read.
    steps = [int(row['actor_steps']) for row in self._rows('actor')]
    assert steps == sorted(steps), 'steps decrease in the log of the actors'
    counts = values['counts']
    assert counts['learner_steps'] == values['learner']['learner_steps']

  def _known(self):
    """Returns the PIDs of the launcher, the nodes and their child processes."""
    known = {self.script.process.pid, *self.pids().values()}
    for pid in self.processes():
      with contextlib.suppress(psutil.NoSuchProcess):
        if any(p.pid in known for p in psutil.Process(pid).parents()):
          known.add(pid)
    return known

  def finish(self):
    """Runs to a budget, and checks the result."""
    self.script.process.send_signal(signal.SIGINT)
    assert self.script.process.wait(_END_SECONDS) == 130
    values = scripts.checkpoint(self.workdir)
    self._budget = values['counts']['actor_steps'] + _MORE_STEPS
    self._start()
    assert self.script.process.wait(_PATIENCE) == 0
    assert not self.processes()
    values = scripts.checkpoint(self.workdir)
    over = values['counts']['actor_steps'] - self._budget
    assert 0 <= over < _OVERSHOOT, over
    points = {int(r['evaluation_point']) for r in self._rows('evaluator')}
    assert {0, self._budget} <= points, sorted(points)[-3:]
    behaviors.Exported(str(self.workdir / 'behavior'))

  def close(self):
    if self.script is not None:
      self.script.__exit__()
    if self._machines is not None:
      self._machines.close()


def _seconds(row):
  return float(row['seconds'])


def title_of(process):
  """Returns the node of a process; '' if it belongs to none."""
  try:
    return process.environ().get(heartbeats.TITLE_VARIABLE, '')
  except (psutil.AccessDenied, psutil.NoSuchProcess, psutil.ZombieProcess):
    return ''


@contextlib.contextmanager
def own_disk(folder):
  """Mounts a small disk at a directory; yields whether that is allowed."""
  options = ['-t', 'tmpfs', '-o', f'size={_DISK_SIZE}', 'tmpfs']
  done = subprocess.run(['mount', *options, folder], capture_output=True)
  if done.returncode:
    print(f'Skipping full disks: {done.stderr.decode().strip()}')
  try:
    yield not done.returncode
  finally:
    if not done.returncode:
      subprocess.run(['umount', '--lazy', folder], check=True)


def run(chosen, folder, num_machines=0):
  """Injects all of the faults; returns a table of the results."""
  table = []
  with (
    own_disk(folder) as can_fill_disk,
    contextlib.closing(Chaos(folder, num_machines)) as chaos,
  ):
    chaos.wait_for_progress()
    for i, (what, where) in enumerate(chosen):
      name = name_of(what, where)
      print(f'{i + 1} of {len(chosen)}: {name}', flush=True)
      if what == FILL_DISK and not can_fill_disk:
        continue
      start = time.monotonic()
      lost = chaos.strike(what, where)
      seconds = time.monotonic() - start
      table.append([name, f'{seconds:.0f}', *lost])
      print(f'  resumed after {seconds:.0f} s, lost {lost}', flush=True)
      chaos.check()
    chaos.finish()
  header = ('fault', 'resumed after, s', 'actor steps lost', 'learner steps')
  return tables.markdown([*header, 'replay'], table)


def main():
  parser = argparse.ArgumentParser(description=__doc__)
  parser.add_argument('--faults', type=int, default=100)
  parser.add_argument('--seed', type=int, default=int(time.time()))
  parser.add_argument('--machines', type=int, default=3)
  parser.add_argument(
    '--skip', type=int, default=0, help='number of faults to skip'
  )
  options = parser.parse_args()
  missing = machines_lib.missing() if options.machines else ''
  if missing:
    print(f'Running without machines, which need {missing}.')
  num_machines = 0 if missing else options.machines
  print(f'--seed={options.seed} --machines={num_machines}', flush=True)
  with tempfile.TemporaryDirectory() as folder:
    chosen = faults(options.faults, options.seed, num_machines)[options.skip :]
    print(run(chosen, pathlib.Path(folder), num_machines))
  print(f'{len(chosen)} faults, and the run reached its budget.')


if __name__ == '__main__':
  sys.exit(main())
