"""A simulated engine, which runs all nodes in one thread.

Like a real engine, it schedules, starts, signals and ends processes on virtual
machines, and passes calls between nodes. A process may crash between any two
calls or file operations. Calls that it has made by then may still be executed
later.
"""

import contextlib
import functools
import queue as queue_lib
import signal

from bt_acme import files
from bt_acme.runtime import events, heartbeats
from bt_acme.runtime.engines import base
from tests.simulation import clock as clock_lib
from tests.simulation import disk as disk_lib

BOOT_SECONDS = (1.0, 8.0)  # Time for a process to import and build its node.
# Seconds per iteration, by label.
ITERATION_SECONDS = {
  'actor': 1.0,
  'learner': 1.0,
  'replay': 3.0,
  'inference': 3.0,
}
_OTHER_ITERATION_SECONDS = 0.1
_RETRY_SECONDS = 0.5  # Delay before retrying a call to a node that is starting.
_LATE_SECONDS = 5.0  # Maximum delay of a call of a lost process.
# Maximum durations of background work. The watchdog waits less than the longer.
_TASK_SECONDS = (3.0, 60.0)
_LOST = -int(signal.SIGKILL)


class Blocked(BaseException):
  """A call or wait that never ends."""


class NotYet(Blocked):
  """A call or wait that has to be repeated."""


class Queue:
  """The supervisor's queue of events, in virtual time."""

  def __init__(self, clock, disk):
    self._clock = clock
    self._disk = disk
    self._events = []

  def put(self, event):
    """Adds an event."""
    self._events.append(event)

  def get(self, timeout):
    """Advances time until there is an event, or until the timeout."""
    # Like a real clock, always advances a little.
    deadline = self._clock.now + max(timeout, 1e-6 * (timeout > 0))
    with self._disk.used_by(None):
      while not self._events:
        if not self._clock.step(deadline):
          raise queue_lib.Empty
    return self._events.pop(0)


class Process(disk_lib.Process):
  """A process of a node.

  Attributes:
    title: the node's title, `LABEL/INDEX`.
    attempt: the number of times that the node was started before.
    machine: the index of its machine.
    node: the node; None while the process boots.
    is_serving: whether other nodes can call the node.
    is_frozen: whether the process hangs or pauses.
    is_cut_off: whether the process is cut off from the network.
    is_told_to_stop: whether it has received SIGTERM.
    lost_call: 'request' or 'answer' if that part of its next call will be lost.
    thaws: the time when a frozen process continues; infinite if it hangs.
    waits_until: the time when it gets the answer to its last call.
    has_started: whether its node iterates.
    servers: the titles of the nodes that it calls.
    open_files: closes the process's files when it ends, like the kernel.
  """

  node = None
  is_serving = is_frozen = is_cut_off = is_told_to_stop = has_started = False
  lost_call = ''
  thaws = float('inf')
  last_heartbeat = -float('inf')
  waits_until = 0.0
  wake_ups = 0

  def __init__(self, title, attempt, machine):
    super().__init__(f'{title} {attempt}')
    self.title = title
    self.attempt = attempt
    self.machine = machine
    self.open_files = contextlib.ExitStack()
    self.servers = []

  def die(self):
    super().die()
    self.open_files.close()

  @property
  def label(self):
    return self.title.partition('/')[0]


class Task:
  """Background work of a process, like a thread."""

  def __init__(self, work, clock, seconds):
    self._work = work
    self._clock = clock
    self._ends = clock.now + seconds

  def run(self):
    """Does the work, unless `join` has already done it."""
    if self._work is not None:
      work, self._work = self._work, None
      work()

  def is_alive(self):
    return self._work is not None

  def join(self, timeout):
    assert timeout is not None, 'a process neither sends heartbeats nor stops'
    if self._clock.now + timeout >= self._ends:
      self.run()


class Simulated(base.Engine):
  """Runs the nodes of one program."""

  def __init__(self, queue, session):
    super().__init__(queue)
    self._session = session
    self._clock = session.clock
    self._random = session.random
    self._hosts = {}
    self._processes = {}
    self._is_closed = False
    session.engine = self

  def place(self, title, num_ports):
    self._check_launcher()
    here = title.partition('/')[0] in ('coordinator', 'learner', 'replay')
    others = range(1, self._session.num_machines)
    # The first machine and one of the others always remain.
    free = [i for i in others if i not in self._session.off]
    if here or not free:
      free = [0]
    number = self._random.choice(free)
    self._hosts[title] = number
    host = f'host{number}' if self._session.num_machines > 1 else ''
    self._queue.put(
      events.NodeScheduled(title, [f'host{number}:1'] * num_ports, host)
    )

  def start(self, title, executable, environment):
    self.release(title)  # The remains of the previous attempt.
    attempt = int(environment[heartbeats.ATTEMPT_VARIABLE])
    process = Process(title, attempt, self._hosts[title])
    self._processes[title] = process
    self._session.ledger.started(process)
    if process.machine in self._session.off:
      process.die()
      self.report_exit(process, _LOST, lost=True)
      return f'process {process.name}'
    self._session.processes.append(process)
    boot = self._random.uniform(*BOOT_SECONDS)
    self._run_later(boot, process, lambda: self._boot(process, executable))
    return f'process {process.name}'

  def signal(self, title, signum):
    self._check_launcher()
    process = self._processes.get(title)
    if process is None or process.is_dead or process.is_cut_off:
      return
    if signum == signal.SIGKILL:
      self.exit(process, -signum)
    else:
      self.tell_to_stop(process)

  def release(self, title):
    self._check_launcher()
    process = self._processes.pop(title, None)
    if process is not None and not process.is_cut_off:
      self._end(process)

  def close(self):
    self._check_launcher()
    self._is_closed = True

  def tell_to_stop(self, process):
    """Sends SIGTERM to a process."""
    if process.node is None:  # Its handler is not installed yet.
      self.exit(process, -signal.SIGTERM)
      return
    if process.is_told_to_stop:
      return
    process.is_told_to_stop = True
    self._output(process, 'heartbeats', heartbeats.STOP_MARK)
    self._wake_up(process, 0.0)

  def exit(self, process, code, **report):
    """Ends a process, and posts its exit later; see `report_exit`."""
    if process.is_dead and process not in self._session.processes:
      return
    self._end(process)
    self.report_exit(process, code, **report)

  def report_exit(self, process, code, *, reason='', lost=False, after=None):
    """Posts the exit of a process, unless its node has restarted by then."""

    def post():
      # The engine of a killed launcher does not see any more exits.
      is_mine = self._session.engine is self and not self._is_closed
      if is_mine and self._processes.get(process.title) is process:
        del self._processes[process.title]  # An exit is reported once.
        if lost:
          self._hosts.pop(process.title, None)
        self._session.ledger.exited(process, code, lost)
        self._queue.put(
          events.NodeExited(process.title, code, reason, lost=lost)
        )

    seconds = self._random.uniform(0, 0.2) if after is None else after
    self._clock.after(seconds, post)

  def lose_machine(self, machine, *, is_cut_off, seconds):
    """Switches off or cuts off a machine for some seconds."""
    self._session.off.add(machine)
    lost = [p for p in self._session.processes if p.machine == machine]
    for process in lost:
      if is_cut_off:
        process.is_cut_off = True
      else:
        self._end(process)
      why = 'was lost with its machine.'
      after = self._random.uniform(1, 15)
      self.report_exit(process, _LOST, reason=why, lost=True, after=after)

    def come_back():
      self._session.off.discard(machine)
      for process in lost:  # Processes that were cut off end now.
        self._end(process)

    self._clock.after(seconds, come_back)

  def freeze(self, process, seconds):
    """Stops a process for a while, or forever."""
    thaws = self._clock.now + seconds
    # A pause does not revive a process that hangs.
    process.thaws = max(thaws, process.thaws) if process.is_frozen else thaws
    process.is_frozen = True
    if seconds < float('inf'):
      self._clock.after(seconds, lambda: self._thaw(process))

  def _thaw(self, process):
    if process.thaws <= self._clock.now:  # Later if frozen again since.
      process.is_frozen = False
      self._wake_up(process, 0.0)

  def _check_launcher(self):
    if self._session.launcher.is_dead:
      raise disk_lib.Crash('launcher')

  def _end(self, process):
    process.die()
    if process in self._session.processes:
      self._session.processes.remove(process)

  def _run_later(self, seconds, process, work):
    """Does work of a process after some seconds, unless it is dead by then."""

    def run():
      if process.is_dead:
        return
      if process.is_frozen:
        self._clock.after(1.0, run)
        return
      with self._running(process):
        work()

    self._clock.after(seconds, run)

  def _boot(self, process, executable):
    process.node = executable(process, self)
    self._start_node(process)

  def _start_node(self, process):
    """Starts a node; retries while a node that it calls is not ready."""
    try:
      if not all(map(self._is_serving, process.servers)):
        raise NotYet  # Its first call waits for an answer.
      process.is_serving = True
      process.node.start()
    except NotYet:
      retry = functools.partial(self._start_node, process)
      self._run_later(_RETRY_SECONDS, process, retry)
      return
    process.has_started = True
    self._wake_up(process, 0.0)

  def _is_serving(self, title):
    process = self._processes.get(title)
    return process is not None and process.is_serving and not process.is_dead

  def _wake_up(self, process, seconds):
    process.wake_ups += 1
    number = process.wake_ups

    def iterate():
      if process.wake_ups == number and not process.is_frozen:
        self._iterate(process)

    self._clock.after(seconds, iterate)

  def _iterate(self, process):
    """Runs the part of `node.Node.run` between two waits."""
    if process.is_dead or not process.has_started:
      return
    pause = None
    with self._running(process):
      if process.is_told_to_stop:
        self._stop_node(process)
        return
      try:
        pause = process.node.iterate()
      except NotYet:
        self._wake_up(process, _RETRY_SECONDS)
        return
      if process.node.is_warm:
        self.heartbeat(process)
      if pause is None:
        process.node.close()
        self.exit(process, 0)
        return
      least = ITERATION_SECONDS.get(process.label, _OTHER_ITERATION_SECONDS)
      seconds = max(pause, least) * self._session.dilation
      wait = max(0.0, process.waits_until - self._clock.now)
      self._wake_up(process, wait + seconds * self._random.uniform(0.8, 1.2))

  def _stop_node(self, process):
    try:
      process.node.stop()
      process.node.close()
    except NotYet:
      self._wake_up(process, _RETRY_SECONDS)
      return
    self.exit(process, 0)

  @contextlib.contextmanager
  def _running(self, process):
    """Runs the code of a process, and handles its crashes and failures."""
    try:
      with self._session.disk.used_by(process):
        yield
    except disk_lib.Crash:
      if self._session.launcher.is_dead:
        raise
      if process in self._session.processes:
        self.exit(process, _LOST)
    except Blocked:
      process.is_frozen = True  # It waits forever.
    except (clock_lib.Deadlock, AssertionError):
      raise
    except Exception as error:
      self._fail(process, error)

  def _fail(self, process, error):
    """Ends a process whose node has raised an error."""
    if process.label == 'learner' and process.has_started:
      is_full = isinstance(error, OSError) and files.is_disk_full(error)
      assert not is_full or process.is_told_to_stop, 'a full disk is an error'
    with contextlib.suppress(disk_lib.Crash, Blocked, Exception):
      with self._session.disk.used_by(process):
        process.node.close()
    if self._session.launcher.is_dead:
      raise disk_lib.Crash('launcher')
    text = f'{type(error).__name__}: {error}\n'
    self._output(process, 'stderr', text.encode())
    self.exit(process, 1)

  def heartbeat(self, process):
    """Sends a heartbeat, at most once a second."""
    is_due = self._clock.now - process.last_heartbeat >= heartbeats.PERIOD
    if is_due and not process.is_cut_off:  # Otherwise it would be lost.
      process.last_heartbeat = self._clock.now
      self._output(process, 'heartbeats', heartbeats.MARK)

  def _output(self, process, stream, data):
    if not process.is_cut_off and not self._is_closed:
      self._queue.put(events.Output(process.title, stream, data))

  def report_saved(self, process):
    """Reports that a process has nothing left to save."""
    self._output(process, 'heartbeats', heartbeats.SAVED_MARK)

  def start_task(self, process, work):
    """Starts background work of a process."""
    seconds = self._random.uniform(0.0, self._random.choice(_TASK_SECONDS))
    task = Task(work, self._clock, seconds)
    self._run_later(seconds, process, task.run)
    return task

  def call(self, caller, title, method, *arguments, **named):
    """Calls a method of another node.

    Raises:
      ConnectionError: if the request or the answer is lost.
      Blocked: if there is no answer.
      NotYet: if there may be an answer later.
    """
    try:
      caller.operate()
    except disk_lib.Crash:
      self._deliver_late(caller, title, method, arguments, named)
      raise
    if caller.is_cut_off:
      self._deliver_late(caller, title, method, arguments, named)
      raise Blocked
    lost, caller.lost_call = caller.lost_call, ''
    if lost == 'request':
      raise ConnectionError('the request was lost')
    server = self._processes.get(title)
    if server is None or server.is_dead or server.is_cut_off:
      raise Blocked
    if server.is_frozen:
      if server.thaws == float('inf'):
        raise Blocked
      caller.waits_until = server.thaws
    if not server.is_serving:
      raise NotYet
    result = self._execute(caller, server, method, arguments, named)
    caller.operate()
    if lost:
      raise ConnectionError('the answer was lost')
    return result

  def _execute(self, caller, server, method, arguments, named):
    """Executes a call in the server's process."""
    try:
      with self._session.disk.used_by(server):
        result = getattr(server.node, method)(*arguments, **named)
    except disk_lib.Crash:
      if self._session.launcher.is_dead:
        raise
      self.exit(server, _LOST)
      raise Blocked from None
    self._session.ledger.called(caller, server, method, arguments, result)
    return result

  def _deliver_late(self, caller, title, method, arguments, named):
    """Possibly executes a call after its caller has crashed."""
    if self._random.random() < 0.5:
      return
    server = self._processes.get(title)

    def deliver():
      if server is None or server.is_dead or server.is_frozen:
        return
      if server.is_serving:
        with contextlib.suppress(Blocked, ConnectionError):
          self._execute(caller, server, method, arguments, named)

    self._clock.after(self._random.uniform(0, _LATE_SECONDS), deliver)


class Client:
  """Client of a node in another process."""

  def __init__(self, engine, caller, title):
    self._call = functools.partial(engine.call, caller, title)

  def __getattr__(self, method):
    return functools.partial(self._call, method)
