"""Watches the nodes of a program, and leaves no process behind.

Launchpad's own local launchers read no exit codes, hold a process's output back
until the process ends, and kill themselves if a node does not stop in time.
Here, on whatever engine the nodes run:

- the program succeeds when its main node (of `main_label`) does;
- a node that fails restarts, or the whole program does, as often as
  `restarts.RestartPolicy` says; a node that sends no heartbeat for too long is
  killed, which counts as a failure;
- any other death ends the program, and the node's traceback is printed last;
- Ctrl-C gives every node `grace_seconds` to stop, and a second one none. Nodes
  of `restarts.RestartPolicy.labels` that have yet to begin get none either.
"""

import os
import pathlib
import signal
import time
from typing import (
  Any,
  Callable,
  Collection,
  Dict,
  List,
  Mapping,
  NamedTuple,
  Optional,
)

import launchpad as lp

from bt_acme.runtime import (
  events,
  executables,
  heartbeats,
  interrupts,
  node_state,
  progress,
  restarts,
  shutdown,
  terminal,
)
from bt_acme.runtime.engines import base

_LOOK_SECONDS = 1.0  # Between two looks for nodes that hang.


class _End(NamedTuple):
  """Why the program ends.

  Attributes:
    code: its exit code.
    culprit: the node that failed, if any.
    restart: whether the program restarts.
  """

  code: int
  culprit: Optional[node_state.Node] = None
  restart: bool = False

  @property
  def finished(self) -> bool:
    """Whether the program ends because it is over."""
    return not self.code and not self.restart


class Supervisor:
  """Starts the nodes of one program, watches them, and stops them."""

  def __init__(
    self,
    program: lp.Program,
    engine: base.Engine,
    queue: events.EventQueue,
    log_folder: pathlib.Path,
    *,
    main_label: str,
    checked_labels: Collection[str],
    grace_seconds: float,
    policy: restarts.RestartPolicy,
    record: restarts.Record,
    clock: Callable[[], float] = time.monotonic,
  ):
    """Starts nothing yet.

    Args:
      program: see `launcher.launch`.
      engine: the engine that runs the nodes.
      queue: the queue of the events of the engine and of the signals.
      log_folder: the folder for log files, which need not exist.
      main_label: see `launcher.launch`.
      checked_labels: see `launcher.launch`.
      grace_seconds: see `launcher.launch`.
      policy: which deaths the program survives.
      record: of the run, whose program may have restarted.
      clock: a function that returns seconds.
    """
    self._program = program
    self._engine = engine
    self._queue = queue
    self._log_folder = log_folder
    self._main_label = main_label
    self._timeouts = shutdown.ShutdownTimeouts(grace_seconds, checked_labels)
    self._policy = policy
    self._allowance = record.program
    self._clock = clock
    self._terminal = terminal.Terminal(log_folder / 'launcher.log')
    labels = executables.titles(program)
    self._nodes = {
      title: node_state.Node(title, label, record, clock)
      for title, label in labels.items()
    }
    self._watchdog = heartbeats.Watchdog(policy.watchdog_seconds, labels, clock)
    self._executables: Dict[str, Any] = {}
    self._environments: Mapping[str, Mapping[str, str]] = {}
    self._interrupts: List[interrupts.Interrupt] = []
    self._stopping = False
    self._hurried = False  # By the user, who does not wait for nodes to stop.

  def run(
    self,
    environments: Mapping[str, Mapping[str, str]],
    ports: Mapping[str, int],
  ) -> Optional[int]:
    """Runs the program to its end.

    Args:
      environments: see `launcher.launch`.
      ports: see `launcher.launch`.

    Returns:
      The exit code, see `launcher.launch`; None if the program
      restarts.
    """
    self._environments = environments
    try:
      end = self._place()
      if end is None:
        self._start_all(ports)
        end = self._wait_for_end()
      end = self._stop(end)
      failures = self._failures_to_stop(end)
    finally:
      self._release()
    if end.restart and self._interrupts:
      end = self._interrupted(self._interrupts[-1])
    if end.culprit is not None and not end.restart:
      failures = [end.culprit.describe_end()]
    if failures:
      self._terminal.log('\n'.join(failures))
    if end.restart:
      return None
    code = end.code or (1 if failures else 0)
    if self._engine.in_this_process and self._running():
      self._terminal.log(
        'Some nodes did not stop in time: the process ends with them.'
      )
      os._exit(code)
    return code

  def _place(self) -> Optional[_End]:
    """Finds a place for every node.

    Returns:
      The end of the program if it ends before every node has a place, else
      None.
    """
    executables.prepare(
      self._program, in_this_process=self._engine.in_this_process
    )
    num_ports = executables.num_ports(self._program)
    for title, number in num_ports.items():
      self._engine.place(title, number)
    while any(node.addresses is None for node in self._nodes.values()):
      event = self._next()
      if isinstance(event, interrupts.Interrupt):
        return self._interrupted(event)
      if isinstance(event, events.NodeExited):
        node = self._nodes[event.title]
        if not (event.lost and self._allowance.acquire()):
          return _End(1, node)
        self._terminal.note(
          f'{node.describe_failure()} Rescheduling ({self._allowance}).'
        )
        node.addresses = node.ended = None
        self._engine.place(node.title, num_ports[node.title])
    return None

  def _start_all(self, ports: Mapping[str, int]) -> None:
    """Starts every node at its place."""
    addresses = {
      title: node.addresses or [] for title, node in self._nodes.items()
    }
    for label, port in ports.items():
      first = addresses[f'{label}/0']
      host, _, _ = first[0].rpartition(':')
      first[0] = f'{host}:{port}'
    servers = self._servers()
    if servers and any(node.host for node in self._nodes.values()):
      self._terminal.log(f'Listening without a password: {servers}.')
    self._executables = executables.make(self._program, addresses)
    for title in self._executables:
      self._start(self._nodes[title])

  def _start(self, node: node_state.Node) -> None:
    """Starts a node at its place, for the first time or again."""
    live = self._terminal.live
    variables = {
      progress.STATUS_VARIABLE: 'live' if live else 'plain',
      heartbeats.ATTEMPT_VARIABLE: str(node.num_starts),
      heartbeats.OLD_ATTEMPT_VARIABLE: str(node.num_starts),
      heartbeats.TITLE_VARIABLE: node.title,
      **self._environments.get(node.label, {}),
    }
    log, process = None, None
    try:
      process = self._engine.start(
        node.title, self._executables[node.title], variables
      )
    except OSError as error:
      reason = f'could not be started: {error}.'
      self._queue.post(events.NodeExited(node.title, 1, reason))
    if process is not None:
      path = self._log_folder / f'{node.title.replace("/", "-")}.log'
      log = terminal.NodeLog(path, process, live=live)
    node.mark_started(log)

  def _wait_for_end(self) -> _End:
    """Waits until the main node ends, a death is final, or the user stops."""
    while True:
      event = self._next(_LOOK_SECONDS)
      for title in self._watchdog.expired():
        self._watchdog.clear(title)
        self._nodes[title].hung_seconds = self._policy.watchdog_seconds
        self._engine.signal(title, signal.SIGKILL)
      self._start_pending()
      if isinstance(event, interrupts.Interrupt):
        return self._interrupted(event)
      if isinstance(event, events.NodeExited):
        node = self._nodes[event.title]
        if event.code or node.received_sigterm:
          end = self._handle_failure(node)
          if end is not None:
            return end
        elif node.label == self._main_label:
          return _End(0)
        else:  # Another one may wait for its place.
          self._engine.release(node.title)

  def _start_pending(self) -> None:
    """Restarts what is due, and tells once of each node that is late."""
    now = self._clock()
    for node in self._nodes.values():
      if node.due is not None and node.due <= now:
        self._start(node)
      late = now - node.started > self._policy.watchdog_seconds
      if node.runs and late and not (node.has_begun or node.is_late):
        node.is_late = True
        self._terminal.note(
          f'[{node.title}] has not begun after '
          f'{self._policy.watchdog_seconds:g} s: it may still compile, or wait '
          f'for a place, or not reach others ({self._servers()}).'
        )

  def _servers(self) -> str:
    """Returns the titles and the addresses of all nodes that listen."""
    return ', '.join(
      f'{node.title} at {" and ".join(node.addresses)}'
      for node in self._nodes.values()
      if node.addresses
    )

  def _handle_failure(self, node: node_state.Node) -> Optional[_End]:
    """Restarts a node that has failed; returns an end if the program ends."""
    if node.follows:
      self._start(node)
      return None
    assert node.ended is not None
    # Others know a node that listens by its address.
    has_lost_address = node.ended.lost and bool(node.addresses)
    alone = node.label in self._policy.labels and not has_lost_address
    allowance = node.allowance if alone else self._allowance
    if (
      node.failed_at_its_start
      or not (alone or self._policy.next_program)
      or not allowance.acquire()
    ):
      return _End(1, node)
    death = node.describe_failure()
    if not alone:
      self._terminal.note(
        f'{death} The program starts anew from its last checkpoint '
        f'({allowance}).'
      )
      return _End(1, node, restart=True)
    pause = node.next_backoff()
    when = f' in {pause:g} s' if pause else ''
    self._terminal.note(f'{death} It is started anew{when} ({allowance}).')
    for other in self._running():
      if other.label in self._policy.labels[node.label]:
        other.follows = True
        self._engine.signal(other.title, signal.SIGKILL)
    if not pause:
      self._start(node)
      return None
    node.due = self._clock() + pause
    if not node.addresses:  # Elsewhere it may do better.
      self._engine.place(node.title, 0)
    return None

  def _interrupted(self, interrupt: interrupts.Interrupt) -> _End:
    self._terminal.log(interrupt.message)
    return _End(interrupt.exit_code)

  def _stop(self, end: _End) -> _End:
    """Asks all nodes to stop; returns the end, which the user may change."""
    self._stopping = True
    for node in self._running():
      loses_nothing = node.label in self._policy.labels and not node.has_begun
      self._engine.signal(
        node.title, signal.SIGKILL if loses_nothing else signal.SIGTERM
      )
    start = self._clock()
    while not self._hurried:
      labels = {node.label for node in self._running()}
      seconds = self._timeouts.longest(
        labels, finished=end.finished, restart=end.restart
      )
      left = start - self._clock() + seconds
      if left <= 0:
        break
      event = self._next(left)
      if isinstance(event, interrupts.Interrupt):
        self._hurried = len(self._interrupts) > 1
        stopped = self._interrupted(event)
        end = end if end.culprit is not None and not end.restart else stopped
    return end

  def _failures_to_stop(self, end: _End) -> List[str]:
    """Returns what went wrong in checked nodes after they had to stop."""
    seconds = self._timeouts.of_checked(finished=end.finished)
    failures = [
      node.describe_stop(None if self._hurried else seconds)
      for node in self._nodes.values()
      if node.label in self._timeouts.checked_labels and node is not end.culprit
    ]
    return list(filter(None, failures))

  def _release(self) -> None:
    """Ends whatever still runs, and takes the rest of its output."""
    for node in self._running():
      self._engine.signal(node.title, signal.SIGKILL)
    for title in self._nodes:
      self._engine.release(title)
    self._engine.close()
    while self._next(0) is not None:
      pass
    for node in self._nodes.values():
      if node.log is not None:
        node.log.close()
    self._terminal.end_status()

  def _running(self) -> List[node_state.Node]:
    return [node for node in self._nodes.values() if node.runs]

  def _next(self, timeout: Optional[float] = None) -> Any:
    """Takes the next event; passes on what nodes print and what they wait for.

    Args:
      timeout: seconds to wait at most; None waits for ever.

    Returns:
      The event; None if none came in time.
    """
    event = self._queue.get(timeout)
    if isinstance(event, interrupts.Interrupt):
      self._interrupts.append(event)
    if event is None or isinstance(event, interrupts.Interrupt):
      return event
    node = self._nodes[event.title]
    if isinstance(event, events.NodeScheduled):
      if node.log is not None and event.host != node.host:
        self._terminal.note(f'[{node.title}] moved to {event.host}.')
      node.addresses, node.host = event.addresses, event.host
    elif isinstance(event, events.NodePending):
      self._terminal.note(f'[{node.title}] waits for a place: {event.reason}')
    elif isinstance(event, events.Output) and node.log is not None:
      self._show(node, node.log.add(event.data, event.is_error))
    elif isinstance(event, events.Heartbeat):
      self._take_heartbeat(node, event.marks)
    elif isinstance(event, events.NodeExited):
      node.ended, node.due = event, None
      self._watchdog.clear(node.title)
      if node.log is not None:
        self._show(node, node.log.finish())
    return event

  def _take_heartbeat(self, node: node_state.Node, marks: bytes) -> None:
    """Records what a node has sent through its pipe for heartbeats."""
    if heartbeats.MARK in marks:
      node.record_heartbeat()
      self._watchdog.record(node.title)
    if heartbeats.STOP_MARK in marks and not self._stopping:
      node.received_sigterm = True
    if heartbeats.SAVED_MARK in marks:
      node.has_saved = True

  def _show(self, node: node_state.Node, lines: List[str]) -> None:
    """Shows lines of a node on the terminal."""
    # While the program stops, nodes complain in vain about servers that have
    # stopped before them.
    is_checked = node.label in self._timeouts.checked_labels
    speaks = is_checked or not self._stopping
    for line in lines:
      if speaks or line.startswith(progress.STATUS_MARK):
        self._terminal.show(node.title, line)
