"""Runs a Launchpad program to its end, and leaves no process behind.

Launchpad makes the program's executables and gives each node its addresses,
its handles and its notice to stop (`lp.wait_for_stop`). Its own local launchers
read no exit codes, hold a worker's output back until the worker ends, and kill
themselves where a node does not stop in time, so the supervising is done here:

- the program ends well when the node of `main_label` does;
- a node that fails ends the program, and its traceback is the last thing said;
- Ctrl-C gives every node `grace_seconds` to stop, a second one none.

A node's function travels to another process: it carries its settings in its
closure and reads no flag, since a worker process parses Launchpad's flags only.
"""

import collections
import contextlib
import datetime
import functools
import os
import pathlib
import queue
import re
import selectors
import signal
import socket
import subprocess
import sys
import threading
import time
import traceback
from typing import (
  Any,
  BinaryIO,
  Callable,
  Collection,
  Iterator,
  List,
  Mapping,
  NamedTuple,
  Optional,
  Tuple,
  Union,
)

import launchpad as lp
from absl import flags
from launchpad import address as lp_address
from launchpad import context as lp_context
from launchpad.launch import worker_manager

from bt_acme.runtime import metrics as metrics_lib

_LAUNCH_TYPES = {
  'local_mp': lp_context.LaunchType.LOCAL_MULTI_PROCESSING,
  'local_mt': lp_context.LaunchType.LOCAL_MULTI_THREADING,
}
_TAIL_LINES = 200  # Of standard error, kept for each process.
_READ_SIZE = 1 << 16
_SIGNAL_SECONDS = 0.5  # At the latest then a waiting thread sees a signal.
# What lines of absl's INFO and of Reverb's start begin with: they go to the log
# file only.
_INFO_LINE = re.compile(r'I\d{4} \d\d:\d\d:\d\d|\[reverb/cc/platform/')
# Runs a command that the kernel kills as soon as the launcher is gone.
_DIES_WITH_PARENT = """
import ctypes, os, signal, sys
PR_SET_PDEATHSIG = 1
ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
if os.getppid() == int(sys.argv[1]):
  os.execv(sys.argv[2], sys.argv[2:])
"""


def launch(
  program: lp.Program,
  *,
  workdir: Union[str, pathlib.Path],
  launch_type: str = 'local_mp',
  environments: Optional[Mapping[str, Mapping[str, str]]] = None,
  ports: Optional[Mapping[str, int]] = None,
  main_label: str = 'coordinator',
  checked_labels: Collection[str] = (),
  grace_seconds: float = 10.0,
) -> int:
  """Runs a program until its main node ends, a node fails, or the user stops.

  To be called from the main thread, which handles the signals. Where a node of
  `local_mt` ignores the notice to stop, nothing but the end of this process
  stops its thread: the process then exits here, with the code.

  Args:
    program: nodes, grouped by label. They poll `lp.wait_for_stop`.
    workdir: `processes/LABEL-INDEX.log` in it takes all that a process prints.
    launch_type: `local_mp` (a process for each node) or `local_mt` (a thread).
    environments: label to the variables that its processes have besides this
      one's, as {'actor': {'JAX_PLATFORMS': 'cpu'}}. Threads share this one's.
    ports: label to the port of the label's first node, instead of a free one.
    main_label: the program is over when the node with this label is.
    checked_labels: nodes whose failure while they stop fails the program too.
      Others may well fail then: what they talk to stops as well.
    grace_seconds: between the notice to stop and SIGKILL.

  Returns:
    An exit code: 0; 1 after a failure; 128 + the number of the signal that
    stopped the program (130 for Ctrl-C).

  Raises:
    ValueError: before anything is started, for an unknown launch type or label,
      or a port that is taken.
  """
  check_launch_type(launch_type)
  environments, ports = environments or {}, ports or {}
  for label in (main_label, *checked_labels, *environments, *ports):
    if label not in program.groups:
      raise ValueError(
        f'The program has no node labelled {label!r}: its labels are '
        f'{sorted(program.groups)}.'
      )
  for label, port in ports.items():
    check_port_free(port, setting=f'{label}_port')
  executables = _make_executables(program, _LAUNCH_TYPES[launch_type], ports)
  if launch_type == 'local_mt':
    return _run_threads(
      executables, main_label, frozenset(checked_labels), grace_seconds
    )
  log_dir = pathlib.Path(workdir) / 'processes'
  log_dir.mkdir(parents=True, exist_ok=True)
  with _Processes(log_dir, main_label, frozenset(checked_labels)) as processes:
    return processes.run(executables, environments, grace_seconds)


def check_launch_type(launch_type: str) -> None:
  """Raises ValueError for a launch type that `launch` does not have."""
  if launch_type not in _LAUNCH_TYPES:
    raise ValueError(
      f'lp_launch_type={launch_type!r} is unknown: choose from '
      f'{sorted(_LAUNCH_TYPES)}.'
    )


def check_port_free(port: int, setting: str = 'port') -> None:
  """Checks that a server can listen on a port of this machine.

  Args:
    port: in [1, 65535].
    setting: what the user calls it.

  Raises:
    ValueError: where it cannot.
  """
  if not 0 < port < 1 << 16:
    raise ValueError(f'{setting}={port} must lie in [1, 65535].')
  with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
    # A port whose last connections are only fading away is free.
    probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
      probe.bind(('', port))
    except OSError as error:
      raise ValueError(
        f'{setting}={port} cannot be used ({error.strerror}): choose another '
        'port, or end the program that has it.'
      ) from error


class _FixedPort(lp_address.AbstractAddressBuilder):
  """An address on this machine that the user chose."""

  def __init__(self, port: int):
    self._port = port

  def build(self) -> str:
    return f'localhost:{self._port}'


def _make_executables(
  program: lp.Program,
  launch_type: lp_context.LaunchType,
  ports: Mapping[str, int],
) -> List[Tuple[str, Any]]:
  """Binds and connects the nodes, as Launchpad's own launchers do.

  Returns:
    (label, executable) of each node; an executable is a function for threads,
    Launchpad's `Command` for processes.
  """
  for nodes in program.groups.values():
    for node in nodes:
      node._initialize_context(launch_type, launch_config=None)
  for label, nodes in program.groups.items():
    for node in nodes:
      for handle in node.input_handles:
        handle.connect(node, label)
  for node in program.get_all_nodes():
    node.bind_addresses()
  for label, port in ports.items():
    program.groups[label][0].addresses[0].bind(_FixedPort(port))
  return [
    (label, executable)
    for label, nodes in program.groups.items()
    for executable in nodes[0].to_executables(
      nodes, label, nodes[0].launch_context
    )
  ]


def _interrupts() -> List[signal.Signals]:
  """The signals that stop a program; one started by nohup outlives SIGHUP."""
  interrupts = [signal.SIGINT, signal.SIGTERM]
  if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
    interrupts.append(signal.SIGHUP)
  return interrupts


@contextlib.contextmanager
def _signal_handler(
  signals: Collection[signal.Signals], handle: Callable[[int], object]
) -> Iterator[None]:
  """Hands signals to a function for a while."""
  previous = {
    signum: signal.signal(signum, lambda number, _: handle(number))
    for signum in signals
  }
  try:
    yield
  finally:
    for signum, handler in previous.items():
      signal.signal(signum, handler or signal.SIG_DFL)


class _Terminal:
  """The launcher's terminal: log lines, and one live status line below them."""

  def __init__(self) -> None:
    self.live = sys.stdout.isatty()
    self._status = ''

  def log(self, text: str) -> None:
    """Writes lines to standard error."""
    self._write(sys.stdout, metrics_lib.render_live('') if self._status else '')
    self._write(sys.stderr, text + '\n')
    self._write(sys.stdout, self._status)

  def status(self, text: str) -> None:
    """Replaces the status line, or writes one more where there is no TTY."""
    if self.live:
      self._status = metrics_lib.render_live(text)
      self._write(sys.stdout, self._status)
    else:
      self._write(sys.stdout, text + '\n')

  def end_status(self) -> None:
    """Leaves the last status line where it stands."""
    if self._status:
      self._status = ''
      self._write(sys.stdout, '\n')

  def _write(self, stream: Any, text: str) -> None:
    if text:
      # Training goes on, and ends cleanly, when its terminal has gone.
      with contextlib.suppress(OSError):
        stream.write(text)
        stream.flush()


class _Worker:
  """One process of the program."""

  def __init__(
    self, label: str, title: str, process: subprocess.Popen, log_path: str
  ):
    assert process.stdout is not None and process.stderr is not None
    self.label = label
    self.title = title  # label/index
    self.process = process
    self.log_path = log_path
    self.log: BinaryIO = open(log_path, 'ab')
    self.tail: collections.deque = collections.deque(maxlen=_TAIL_LINES)
    self.pipes = (process.stdout, process.stderr)
    self.error_fd = process.stderr.fileno()
    # What each open pipe ended with, by file descriptor.
    self.unfinished_lines = {process.stdout.fileno(): b'', self.error_fd: b''}

  @property
  def failed(self) -> bool:
    """Whether it ended, and not well."""
    return bool(self.process.returncode)

  def describe_end(self) -> str:
    """What happened, where to read on, and the traceback if there is one."""
    code = self.process.returncode
    if code == -signal.SIGKILL:
      how = 'was killed (SIGKILL): is the machine out of memory?'
    elif code < 0:
      how = f'died of {signal.Signals(-code).name}.'
    else:
      how = f'failed with exit code {code}.'
    tail = list(self.tail)
    starts = [i for i, line in enumerate(tail) if line.startswith('Traceback ')]
    lines = tail[starts[0] :] if starts else tail[-20:]
    summary = f'error: {self.title} {how} Its whole output: {self.log_path}'
    return '\n'.join([summary, *lines])


class _Processes:
  """The processes of one program, each in a session of its own.

  One thread does it all: it sleeps until a process prints or ends, or a signal
  comes in, which arrive as bytes in a pipe.
  """

  def __init__(
    self,
    log_dir: pathlib.Path,
    main_label: str,
    checked_labels: Collection[str],
  ):
    self._log_dir = log_dir
    self._main_label = main_label
    self._checked_labels = checked_labels
    self._terminal = _Terminal()
    self._workers: List[_Worker] = []
    self._stopping = False
    self._interrupts = _interrupts()
    self._selector = selectors.DefaultSelector()
    self._exit_stack = contextlib.ExitStack()

  def __enter__(self) -> '_Processes':
    signal_reader, signal_writer = os.pipe2(os.O_NONBLOCK)
    self._signal_reader = signal_reader
    self._selector.register(signal_reader, selectors.EVENT_READ)
    self._exit_stack.callback(os.close, signal_reader)
    self._exit_stack.callback(os.close, signal_writer)
    # A handler of Python's would run too late: a signal that another thread
    # takes, or that comes just before `select` sleeps, does not wake it.
    wakeup = signal.set_wakeup_fd(signal_writer, warn_on_full_buffer=False)
    self._exit_stack.callback(signal.set_wakeup_fd, wakeup)
    self._exit_stack.enter_context(
      _signal_handler([*self._interrupts, signal.SIGCHLD], lambda signum: None)
    )
    return self

  def __exit__(self, *exc_info: Any) -> None:
    for worker in self._workers:
      self._kill(worker)
    for worker in self._workers:
      worker.process.wait()
      self._drain(worker)
      for fd in list(worker.unfinished_lines):
        self._close_pipe(worker, fd)
      for file in (*worker.pipes, worker.log):
        file.close()
    self._terminal.end_status()
    self._exit_stack.close()
    self._selector.close()

  def run(
    self,
    commands: List[Tuple[str, Any]],
    environments: Mapping[str, Mapping[str, str]],
    grace_seconds: float,
  ) -> int:
    """Starts everything, waits for the end, stops the rest; the exit code."""
    for label, command in commands:
      self._start(label, command, environments.get(label, {}))
    code, culprit = self._wait_for_end()
    failures = self._stop(grace_seconds)
    self._terminal.end_status()
    if culprit is not None:
      failures = [culprit.describe_end()]
    if failures:
      self._terminal.log('\n'.join(failures))
      code = code or 1
    return code

  def _start(
    self, label: str, command: Any, environment: Mapping[str, str]
  ) -> None:
    """Starts one process, whose command Launchpad made."""
    process = subprocess.Popen(
      [
        *(sys.executable, '-IS', '-c', _DIES_WITH_PARENT, str(os.getpid())),
        *command.command_as_list,
        # This launcher, not the worker itself, kills a worker that stays.
        '--lp_termination_notice_secs=-1',
      ],
      stdin=subprocess.DEVNULL,
      stdout=subprocess.PIPE,
      stderr=subprocess.PIPE,
      bufsize=0,
      # Ctrl-C reaches this process alone.
      start_new_session=True,
      env={
        **os.environ,
        'PYTHONUNBUFFERED': '1',
        metrics_lib.STATUS_VARIABLE: 'live' if self._terminal.live else 'plain',
        **environment,
      },
    )
    log_path = self._log_dir / f'{command.title.replace("/", "-")}.log'
    worker = _Worker(label, command.title, process, str(log_path))
    self._workers.append(worker)
    started = datetime.datetime.now().isoformat(sep=' ', timespec='seconds')
    worker.log.write(f'--- {started}, process {process.pid}\n'.encode())
    for fd in worker.unfinished_lines:
      os.set_blocking(fd, False)
      self._selector.register(fd, selectors.EVENT_READ, worker)

  def _wait_for_end(self) -> Tuple[int, Optional[_Worker]]:
    """Waits for an end; its exit code, and the process that failed."""
    while True:
      for event in self._events(None):
        if isinstance(event, signal.Signals):
          self._terminal.log(
            f'{event.name}: stopping. Once more, and all is killed at once.'
          )
          return 128 + event, None
        if event.failed:
          return 1, event
        if event.label == self._main_label:
          return 0, None

  def _stop(self, grace_seconds: float) -> List[str]:
    """Asks all to stop, kills the rest; what went wrong in checked nodes."""
    self._stopping = True
    for worker in self._workers:
      if worker.process.returncode is None:
        worker.process.send_signal(signal.SIGTERM)
    deadline = time.monotonic() + grace_seconds
    hurry = False
    while self._running() and not hurry:
      left = deadline - time.monotonic()
      if left <= 0:
        break
      for event in self._events(left):
        hurry = hurry or isinstance(event, signal.Signals)
    failures = []
    for worker in self._workers:
      if worker.label not in self._checked_labels:
        continue
      if worker.process.returncode is None and not hurry:
        failures.append(
          f'error: {worker.title} did not stop within {grace_seconds:g} s and '
          'was killed: what it had yet to save is lost.'
        )
      elif worker.failed and worker.process.returncode != -signal.SIGTERM:
        failures.append(worker.describe_end())
    return failures

  def _running(self) -> List[_Worker]:
    return [w for w in self._workers if w.process.returncode is None]

  def _events(
    self, timeout: Optional[float]
  ) -> List[Union[signal.Signals, _Worker]]:
    """Waits; passes output on; returns signals, then processes that ended."""
    events: List[Union[signal.Signals, _Worker]] = []
    child_ended = False
    for key, _ in self._selector.select(timeout):
      if key.data is not None:
        self._read(key.data, key.fd)
        continue
      for signum in os.read(self._signal_reader, _READ_SIZE):
        if signum == signal.SIGCHLD:
          child_ended = True
        elif signum in self._interrupts:
          events.append(signal.Signals(signum))
    if child_ended:
      for worker in self._running():
        if worker.process.poll() is not None:
          self._kill(worker)  # What it may have started.
          self._drain(worker)
          events.append(worker)
    return events

  def _kill(self, worker: _Worker) -> None:
    with contextlib.suppress(ProcessLookupError):
      os.killpg(worker.process.pid, signal.SIGKILL)

  def _drain(self, worker: _Worker) -> None:
    """Reads what a process that has ended left in its pipes."""
    for fd in list(worker.unfinished_lines):
      while self._read(worker, fd):
        pass

  def _read(self, worker: _Worker, fd: int) -> bool:
    """Passes on what a process printed; whether there may be more."""
    try:
      data = os.read(fd, _READ_SIZE)
    except BlockingIOError:
      return False
    text = worker.unfinished_lines[fd] + data
    *lines, rest = re.split(rb'\r?\n|\r', text)
    if rest and (len(rest) > _READ_SIZE or not data):
      lines, rest = [*lines, rest], b''
    worker.unfinished_lines[fd] = rest
    for line in lines:
      is_error = fd == worker.error_fd
      self._pass_on(worker, line.decode('utf-8', 'replace'), is_error)
    worker.log.flush()
    if not data:
      self._close_pipe(worker, fd)
    return bool(data)

  def _close_pipe(self, worker: _Worker, fd: int) -> None:
    self._selector.unregister(fd)
    del worker.unfinished_lines[fd]

  def _pass_on(self, worker: _Worker, line: str, is_error: bool) -> None:
    """Hands one line to the log file, the tail and the terminal."""
    is_status = line.startswith(metrics_lib.STATUS_MARK)
    line = line.removeprefix(metrics_lib.STATUS_MARK)
    if not (is_status and self._terminal.live):
      worker.log.write(line.encode() + b'\n')
    if is_error:
      worker.tail.append(line)
    # Nodes that lose their servers in the end complain in vain.
    speaks = not self._stopping or worker.label in self._checked_labels
    if is_status:
      self._terminal.status(line)
    elif speaks and line and not _INFO_LINE.match(line):
      self._terminal.log(f'[{worker.title}] {line}')


class _NodeEnd(NamedTuple):
  """The end of a node that ran in a thread."""

  label: str
  error: Optional[BaseException]


_ALL_STOPPED = _NodeEnd('', None)


def _run_threads(
  functions: List[Tuple[str, Callable[[], Any]]],
  main_label: str,
  checked_labels: Collection[str],
  grace_seconds: float,
) -> int:
  """Runs each node in a thread of this process; returns the exit code."""
  terminal = _Terminal()
  events: queue.SimpleQueue = queue.SimpleQueue()  # _NodeEnd, signal numbers.
  if not flags.FLAGS.is_parsed():
    flags.FLAGS.mark_as_parsed()
  # No alarm of Launchpad's kills this process.
  flags.FLAGS['lp_termination_notice_secs'].value = -1
  with _signal_handler(_interrupts(), events.put):
    manager = worker_manager.WorkerManager(register_signals=False)
    # Launchpad's manager has just taken the signals.
    with _signal_handler(_interrupts(), events.put):
      for label, function in functions:
        run = functools.partial(_run_node, label, function, events)
        manager.thread_worker(label, run)
      code, culprit = _wait_for_thread(events, main_label, terminal)
      stopped, late = _stop_threads(manager, events, grace_seconds)
  if culprit is None:
    late = [end for end in late if end.label in checked_labels and end.error]
    culprit = late[0] if late else None
  if culprit is not None:
    trace = ''.join(traceback.format_exception(culprit.error))
    terminal.log(f'error: {culprit.label} failed.\n{trace.rstrip()}')
    code = code or 1
  if not stopped:
    terminal.log('Some nodes did not stop in time: the process ends with them.')
    os._exit(code)
  return code


def _run_node(
  label: str, function: Callable[[], Any], events: queue.SimpleQueue
) -> None:
  """Runs one node and says how it ended."""
  try:
    function()
  except SystemExit as error:
    events.put(_NodeEnd(label, error if error.code else None))
  except BaseException as error:
    events.put(_NodeEnd(label, error))
  else:
    events.put(_NodeEnd(label, None))


def _wait_for_thread(
  events: queue.SimpleQueue, main_label: str, terminal: _Terminal
) -> Tuple[int, Optional[_NodeEnd]]:
  """Waits for an end; its exit code, and the node that failed."""
  while True:
    try:
      # Handlers of signals that other threads take run in between.
      event = events.get(timeout=_SIGNAL_SECONDS)
    except queue.Empty:
      continue
    if not isinstance(event, _NodeEnd):
      name = signal.Signals(event).name
      terminal.log(f'{name}: stopping. Once more, and all is killed at once.')
      return 128 + event, None
    if event.error is not None:
      return 1, event
    if event.label == main_label:
      return 0, None


def _stop_threads(
  manager: worker_manager.WorkerManager,
  events: queue.SimpleQueue,
  grace_seconds: float,
) -> Tuple[bool, List[_NodeEnd]]:
  """Asks all to stop; whether they did, and how."""

  def stop() -> None:
    manager.stop_and_wait()
    events.put(_ALL_STOPPED)

  threading.Thread(target=stop, daemon=True).start()
  deadline = time.monotonic() + grace_seconds
  ends: List[_NodeEnd] = []
  while True:
    try:
      event = events.get(timeout=max(0.0, deadline - time.monotonic()))
    except queue.Empty:
      return False, ends
    if not isinstance(event, _NodeEnd):
      return False, ends
    if event is _ALL_STOPPED:
      return True, ends
    ends.append(event)
