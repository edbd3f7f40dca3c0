"""Simulation of a run with faults, from its first command to its last."""

import contextlib
import dataclasses
import io
import itertools
import random
import signal
from typing import NamedTuple

from absl import logging

from bt_acme import files
from bt_acme.config import run as run_config
from bt_acme.launching import starting
from bt_acme.runtime import program as program_lib
from bt_acme.runtime import supervisor, workdir_lock
from tests.simulation import clock as clock_lib
from tests.simulation import disk as disk_lib
from tests.simulation import engine as engine_lib
from tests.simulation import invariants, nodes

WATCHDOG_SECONDS = 30.0
# The longest time until every node works again after a fault: the watchdog's
# timeout, the longest backoff, stopping a program that has something to save,
# several boots, and the waits in between.
RECOVERY_SECONDS = WATCHDOG_SECONDS + 72 + 60 + 60 + 60
_PAUSE_SECONDS = 5.0  # Until the user enters the next command.
_COMMAND_SECONDS = 100_000.0  # More than the longest command takes.
_QUIET_DILATION = 4.0

# Faults of a node.
NODE_FAULTS = (
  'killed',
  'crashes',
  'fails',
  'hangs',
  'pauses',
  'told to stop',
  'loses a request',
  'loses an answer',
)
# Faults of a machine other than the launcher's, and of the whole run.
MACHINE_FAULTS = ('machine lost', 'machine cut off')
RUN_FAULTS = (
  'power fails',
  'disk full',
  'Ctrl-C',
  'Ctrl-C twice',
  'launcher killed',
  'second launch',
  'quiet hour',
)


class Fault(NamedTuple):
  """A fault.

  Attributes:
    what: one of the faults above.
    where: a number that selects the node or the machine.
    after: the delay in seconds after the run has recovered from the previous
      fault; if negative, minus the delay after the previous fault.
    seed: the seed of the details.
  """

  what: str
  where: int
  after: float
  seed: int


class History(NamedTuple):
  """A history, which determines everything that happens.

  Attributes:
    seed: the seed of the run's settings and of all random choices.
    faults: the faults, in order.
  """

  seed: int
  faults: tuple


def draw(seed, number):
  """Draws a history with this number of faults."""
  generator = random.Random(f'{seed} faults')
  faults = []
  # The fraction of faults that happen before the run has recovered.
  pace = generator.choice((0.5, 0.9, 0.97, 0.97))
  choose = generator.choice
  for _ in range(number):
    kinds = NODE_FAULTS, NODE_FAULTS, RUN_FAULTS + MACHINE_FAULTS
    what = choose([choose(kind) for kind in kinds])
    is_early = generator.random() < pace
    seconds = choose((0.0, 3.0, 10.0, 20.0)) * generator.random()
    after = -seconds - 0.01 if is_early else seconds
    numbers = generator.randrange(100), after, generator.randrange(1 << 30)
    faults.append(Fault(what, *numbers))
  return History(seed, tuple(faults))


class Session:
  """Simulation of one history.

  Attributes:
    clock: virtual time.
    disk: the disk that all machines share.
    random: the generator of random choices.
    num_machines: the number of machines; the launcher is on the first.
    off: the indices of machines that are switched off or cut off.
    processes: all processes that have not ended; they may outlive programs.
    launcher: the launcher's process; dead before the first launch.
    engine: the engine of the current program.
    ledger: is told what processes do, and checks it.
    dilation: the factor by which all iterations take longer.
    episode_numbers: unique numbers for episodes.
    events: human-readable events.
    recoveries: the recovery time after each fault, in seconds.
    error: the violation or other error that ended the history, if any.
  """

  engine = error = _queue = None
  dilation = 1.0
  is_interrupted = _power_failed = False
  was_full = False  # Whether the disk was full during this command.
  # The time of the last fault; None once the run has recovered.
  _struck = None
  _number = 0  # Number of the latest wait for recovery.
  _num_commands = 0

  def __init__(self, history, root):
    self._history = history
    self._faults = list(history.faults)
    self.clock = clock_lib.Clock()
    self.random = random.Random(f'{history.seed} chance')
    self.disk = disk_lib.Disk(root, self.random)
    settings = random.Random(f'{history.seed} settings')
    self.num_machines = settings.choice((1, 1, 3))
    self.off = set()
    self.processes = []
    self.launcher = disk_lib.Process('launcher')
    self.launcher.is_dead = True
    self.run = _draw_run(settings, root / 'runs' / 'run')
    self._settings = settings
    self.episode_numbers = itertools.count()
    self.ledger = invariants.Ledger(self)
    self.events = []
    self.recoveries = []
    self._missing = set()  # Nodes that have not recovered.

  def play(self):
    """Plays the history, checking the invariants after each fault."""
    with (
      self.disk.installed(),
      nodes.installed(self),
      _silence() as self._output,
    ):
      self._strike_later()
      while True:
        self._expect_end()
        code = self._command()
        self.note(f'the command ends with {code}')
        if self._power_failed:
          self._power_failed = False
          self.disk.lose_power()
          self.ledger.power_failed()
        self._end_processes()
        self.ledger.check_ended(code)
        if code == 0:
          if not self._faults and (self._struck is None or not self._missing):
            return
          more = self._settings.choice((50, 100, 300))
          steps = self.run.max_actor_steps + more
          self.run = dataclasses.replace(self.run, max_actor_steps=steps)
        pause_ends = self.clock.now + _PAUSE_SECONDS
        while self.clock.step(pause_ends):
          pass

  @property
  def num_faults(self):
    """The number of faults so far."""
    return len(self._history.faults) - len(self._faults)

  def note(self, text):
    """Records a human-readable event."""
    self.events.append(f'{self.clock.now:9.2f} {text}')

  def on_learner_step(self, steps):
    """Records a learner step."""
    self.ledger.learner_stepped(steps)
    self.works('learner/0')

  def _expect_end(self):
    """Limits the time of a command and the number of commands."""
    self._num_commands += 1
    number = self._num_commands
    most = 4 * len(self._history.faults) + 20
    assert number <= most, 'the run does not end'

    def check_ended():
      if self._num_commands == number:
        raise AssertionError('the command does not end')

    self.clock.after(_COMMAND_SECONDS, check_ended)

  def printed(self):
    """Returns the output of this command."""
    return self._output.getvalue()[self._printed :]

  def _command(self):
    """Executes the command of the run; returns its exit code, or 'killed'."""
    self.launcher = disk_lib.Process('launcher')
    self.is_interrupted = self.is_hurried = False
    self._printed = len(self._output.getvalue())
    self.was_full = self.disk.is_full
    self.ledger.command_starts()
    self._expect_all()
    try:
      with self.disk.used_by(self.launcher):
        return self._launch()
    except disk_lib.Crash:
      return 'killed'
    except OSError as error:
      # A full disk must not hide a violation.
      hidden = error.__context__
      while hidden is not None:
        if isinstance(hidden, AssertionError):
          raise hidden from None
        hidden = hidden.__context__
      if not files.is_disk_full(error):
        raise
      return 1
    finally:
      self.launcher.die()

  def _launch(self):
    """Works like `launching.starting.start`."""
    with workdir_lock.held(self.run.workdir):
      code = starting.run_session(
        self.run, nodes.AGENT.config, {}, self._supervise
      )
    return code or 0

  def _supervise(self, resumed, begin_next):
    run = self.run
    self._queue = queue = engine_lib.Queue(self.clock, self.disk)

    def next_program():
      begin_next()
      self.ledger.program_restarts()
      return nodes.make_program(run, self)

    program = nodes.make_program(run, self)
    try:
      return supervisor.Supervisor(
        lambda: engine_lib.Simulated(queue, self),
        queue,
        workdir=run.workdir,
        rules=program_lib.rules(run, next_program),
        environments={},
        ports={},
        clock=self.clock.monotonic,
      ).run(program)
    finally:
      self._queue = None

  def _end_processes(self):
    """Ends all remaining processes, as the kernel does."""
    if not self.launcher.is_dead:
      self.ledger.check_left_behind()
    for process in self.processes:
      process.die()
    self.processes.clear()
    self.off.clear()

  # Recovery.

  def _expect_all(self):
    """Waits for every node to work again."""
    self._missing = {'learner/0'}
    self._missing |= {f'actor/{i}' for i in range(self.run.num_actors)}
    self._missing |= {f'evaluator/{i}' for i in range(self.run.num_evaluators)}

  def works(self, title):
    self._missing.discard(title)
    if not self._missing and self._struck is not None:
      self.recoveries.append(self.clock.now - self._struck)
      self._struck = None
      self._number += 1
      # Deferred, because an iteration is running.
      self.clock.after(0.0, self._check_and_strike)

  def _check_and_strike(self):
    self.ledger.check()
    if self._faults and self._faults[0].after >= 0:
      self._strike_later()

  # Faults.

  def _strike_later(self):
    if self._faults:
      self.clock.after(abs(self._faults[0].after), self._strike)

  def _strike(self):
    """Injects the next fault."""
    if not self._faults:
      return
    fault = self._faults.pop(0)
    generator = random.Random(fault.seed)
    self._struck = self.clock.now
    self._expect_all()
    self._number += 1
    number = self._number
    seconds = self._apply(fault, generator) or 0.0

    def check_recovered():
      if self._number == number:
        raise AssertionError(
          f'{sorted(self._missing)} do not work again after {fault.what}'
        )

    self.clock.after(
      (seconds + RECOVERY_SECONDS) * self.dilation, check_recovered
    )
    if self._faults and self._faults[0].after < 0:
      self._strike_later()

  def _apply(self, fault, generator):
    """Applies a fault; returns its duration in seconds, if any."""
    what = fault.what
    if what in NODE_FAULTS:
      return self._strike_node(fault, generator)
    self.note(what)
    if what in MACHINE_FAULTS:
      return self._strike_machine(fault, generator)
    method = '_' + what.lower().replace(' ', '_').replace('-', '_')
    return getattr(self, method)(generator)

  def _strike_node(self, fault, generator):
    processes = [p for p in self.processes if not p.is_cut_off]
    engine = self.engine
    if not processes or engine is None:
      return None
    process = processes[fault.where % len(processes)]
    self.note(f'{process.name} {fault.what}')
    if fault.what == 'killed':
      engine.exit(process, -signal.SIGKILL)
    elif fault.what == 'crashes':
      process.operations_left = generator.randrange(30)
      process.cuts = generator.random() < 0.5
    elif fault.what == 'fails':
      if process.node is not None:
        process.node.iterate = _fail
    elif fault.what == 'hangs':
      engine.freeze(process, float('inf'))
      if process.last_heartbeat < 0:  # The watchdog would not notice.
        engine.exit(process, -signal.SIGKILL, after=5.0)
    elif fault.what == 'pauses':
      seconds = generator.uniform(1, 2 * WATCHDOG_SECONDS)
      engine.freeze(process, seconds)
      return seconds
    elif fault.what == 'told to stop':
      self.ledger.others_stop(process)
      engine.tell_to_stop(process)
    else:
      process.lost_call = fault.what.split()[-1]
    return None

  def _strike_machine(self, fault, generator):
    others = self.num_machines - 1
    if not others or self.engine is None:
      return None
    machine = 1 + fault.where % others
    if len(self.off | {machine}) == others:
      return None  # One machine must remain.
    seconds = generator.uniform(5, 60)
    self.engine.lose_machine(
      machine, is_cut_off=fault.what == 'machine cut off', seconds=seconds
    )
    return seconds

  def _power_fails(self, generator):
    self._launcher_killed(generator, power_fails=True)

  def _launcher_killed(self, generator, power_fails=False):
    """Kills the launcher during an operation of any process."""
    launcher = self.launcher
    process = generator.choice([launcher, *self.processes])
    if generator.random() < 0.3 or launcher.is_dead:
      process = None

    def crash():
      if launcher.is_dead:
        return
      launcher.die()
      self._power_failed = power_fails
      for other in self.processes:
        other.die()

    def crash_at_last():
      if not launcher.is_dead:
        crash()
        raise disk_lib.Crash('launcher')

    if process is None:
      self.clock.after(0.0, crash_at_last)
      return
    process.operations_left = generator.randrange(40)
    process.cuts = generator.random() < 0.5
    process.on_crash = crash
    self.clock.after(5.0, crash_at_last)

  def _disk_full(self, generator):
    seconds = generator.uniform(2, 60)
    self.was_full = True
    self.disk.fill()
    self.clock.after(seconds, self.disk.free)
    return seconds

  def _ctrl_c(self, generator):
    if self._queue is not None:
      self.is_hurried = self.is_interrupted
      self.is_interrupted = True
      self._queue.put(signal.SIGINT)

  def _ctrl_c_twice(self, generator):
    self._ctrl_c(generator)
    self.clock.after(generator.uniform(0, 2), lambda: self._ctrl_c(generator))

  def _second_launch(self, generator):
    """Enters the command while the run is active."""
    if self._queue is None:
      return
    with contextlib.suppress(ValueError):
      with workdir_lock.held(self.run.workdir):
        raise AssertionError('two commands hold the workdir')

  def _quiet_hour(self, generator):
    """Simulates an hour with few events."""
    seconds = generator.uniform(1.1, 2.0) * nodes.HOUR
    self.dilation = _QUIET_DILATION
    self.clock.after(seconds, lambda: setattr(self, 'dilation', 1.0))
    return seconds


def _fail():
  raise RuntimeError('a failure')


def _draw_run(settings, folder):
  """Draws the settings of a run."""
  return run_config.RunConfig(
    env='MiniGrid-Empty-5x5-v0',
    workdir=str(folder),
    num_actors=settings.choice((1, 2, 2)),
    envs_per_actor=2,
    num_evaluators=settings.choice((0, 1, 1, 2)),
    inference=settings.choice(('local', 'server')),
    max_actor_steps=settings.choice((100, 200, 600)),
    evaluation_period=settings.choice((50, 200)),
    evaluation_episodes=2,
    max_episode_rows=settings.choice((20, 1000)),
    checkpoint_period=settings.choice((10.0, 30.0)),
    checkpoint_replay=settings.random() < 0.6,
    snapshot_steps=settings.choice(('', '50,100')),
    max_restarts=settings.choice((2, 10, 1000)),
    watchdog_seconds=WATCHDOG_SECONDS,
  )


@contextlib.contextmanager
def _silence():
  """Captures the output."""
  output = io.StringIO()
  verbosity = logging.get_verbosity()
  logging.set_verbosity(logging.FATAL)
  try:
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
      yield output
  finally:
    logging.set_verbosity(verbosity)
