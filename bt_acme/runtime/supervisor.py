"""Watches the nodes of a program, and leaves no process behind.

Launchpad's own local launchers read no exit codes, hold a process's output back
until the process ends, and kill themselves if a node does not stop in time.
Here, on whatever engine the nodes run:

- the program succeeds when its main node (of `main_label`) does;
- a node that fails ends the program, and its traceback is printed last;
- Ctrl-C gives every node `grace_seconds` to stop, and a second one none.
"""

import os
import pathlib
import signal
import time
from typing import Any, Collection, List, Mapping, NamedTuple, Optional

import launchpad as lp

from bt_acme.runtime import events, executables, interrupts, progress, terminal
from bt_acme.runtime.engines import base


class _Node:
  """One node of the program."""

  def __init__(self, title: str, label: str):
    self.title = title
    self.label = label
    self.addresses: Optional[List[str]] = None  # None until it has a place.
    self.started = False
    # None if the node prints to this process's output.
    self.log: Optional[terminal.NodeLog] = None
    self.ended: Optional[events.Ended] = None

  @property
  def runs(self) -> bool:
    """Whether it was started and has not ended."""
    return self.started and self.ended is None

  def describe_end(self) -> str:
    """Says what happened, where to read on, and the traceback, if any."""
    assert self.ended is not None
    how = self.ended.reason or _describe_code(self.ended.code)
    lines = [self.ended.traceback] if self.ended.traceback else []
    if self.log is not None:
      how += f' Its whole output: {self.log.path}'
      lines += self.log.report()
    return '\n'.join([f'error: {self.title} {how}', *lines])


def _describe_code(code: int) -> str:
  if code == -signal.SIGKILL:
    return 'was killed (SIGKILL): is the machine out of memory?'
  if code < 0:
    return f'died of {signal.Signals(-code).name}.'
  return f'failed with exit code {code}.'


class _End(NamedTuple):
  """Why the program ends: its exit code, and the node that failed, if any."""

  code: int
  culprit: Optional[_Node] = None


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
    """
    self._program = program
    self._engine = engine
    self._queue = queue
    self._log_folder = log_folder
    self._main_label = main_label
    self._checked_labels = checked_labels
    self._grace_seconds = grace_seconds
    self._terminal = terminal.Terminal()
    self._nodes = {
      title: _Node(title, label)
      for title, label in executables.titles(program).items()
    }
    self._stopping = False

  def run(
    self,
    environments: Mapping[str, Mapping[str, str]],
    ports: Mapping[str, int],
  ) -> int:
    """Runs the program to its end.

    Args:
      environments: see `launcher.launch`.
      ports: see `launcher.launch`.

    Returns:
      The exit code, see `launcher.launch`.
    """
    failures: List[str] = []
    try:
      end = self._place()
      if end is None:
        self._start(environments, ports)
        end = self._wait_for_end()
      failures = self._stop()
    finally:
      self._release()
    if end.culprit is not None:
      failures = [end.culprit.describe_end()]
    if failures:
      self._terminal.log('\n'.join(failures))
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
    for title, num_ports in executables.num_ports(self._program).items():
      self._engine.place(title, num_ports)
    while any(node.addresses is None for node in self._nodes.values()):
      event = self._next()
      if isinstance(event, interrupts.Interrupt):
        return self._interrupted(event)
      if isinstance(event, events.Ended):
        return _End(1, self._nodes[event.title])
    return None

  def _start(
    self,
    environments: Mapping[str, Mapping[str, str]],
    ports: Mapping[str, int],
  ) -> None:
    """Starts every node at its place."""
    addresses = {
      title: list(node.addresses or ()) for title, node in self._nodes.items()
    }
    for label, port in ports.items():
      first = addresses[f'{label}/0']
      host, _, _ = first[0].rpartition(':')
      first[0] = f'{host}:{port}'
    live = self._terminal.live
    status = {progress.STATUS_VARIABLE: 'live' if live else 'plain'}
    commands = executables.make(self._program, addresses)
    for title, executable in commands.items():
      node = self._nodes[title]
      variables = {**status, **environments.get(node.label, {})}
      process = self._engine.start(title, executable, variables)
      node.started = True
      if process is not None:
        path = self._log_folder / f'{title.replace("/", "-")}.log'
        node.log = terminal.NodeLog(path, process, live=live)

  def _wait_for_end(self) -> _End:
    """Waits until the main node ends, a node fails, or the user stops."""
    while True:
      event = self._next()
      if isinstance(event, interrupts.Interrupt):
        return self._interrupted(event)
      if isinstance(event, events.Ended):
        node = self._nodes[event.title]
        if event.code:
          return _End(1, node)
        if node.label == self._main_label:
          return _End(0)

  def _interrupted(self, interrupt: interrupts.Interrupt) -> _End:
    self._terminal.log(interrupt.message)
    return _End(interrupt.exit_code)

  def _stop(self) -> List[str]:
    """Asks all nodes to stop; returns what went wrong in checked nodes."""
    self._stopping = True
    for node in self._running():
      self._engine.signal(node.title, signal.SIGTERM)
    deadline = time.monotonic() + self._grace_seconds
    interrupted = False
    while self._running() and not interrupted:
      left = deadline - time.monotonic()
      if left <= 0:
        break
      interrupted = isinstance(self._next(left), interrupts.Interrupt)
    failures = []
    for node in self._nodes.values():
      if node.label not in self._checked_labels:
        continue
      if node.runs and not interrupted:
        failures.append(
          f'error: {node.title} did not stop within {self._grace_seconds:g} s '
          'and was killed: what it had yet to save is lost.'
        )
      elif node.ended and node.ended.code not in (0, -signal.SIGTERM):
        failures.append(node.describe_end())
    return failures

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

  def _running(self) -> List[_Node]:
    return [node for node in self._nodes.values() if node.runs]

  def _next(self, timeout: Optional[float] = None) -> Any:
    """Takes the next event; passes on what nodes print and what they wait for.

    Args:
      timeout: seconds to wait at most; None waits for ever.

    Returns:
      The event; None if none came in time.
    """
    event = self._queue.get(timeout)
    if event is None or isinstance(event, interrupts.Interrupt):
      return event
    node = self._nodes[event.title]
    if isinstance(event, events.Placed):
      node.addresses = event.addresses
    elif isinstance(event, events.Waiting):
      self._terminal.log(f'[{node.title}] waits for a place: {event.reason}')
    elif isinstance(event, events.Output) and node.log is not None:
      self._show(node, node.log.add(event.data, event.is_error))
    elif isinstance(event, events.Ended):
      node.ended = event
      if node.log is not None:
        self._show(node, node.log.finish())
    return event

  def _show(self, node: _Node, lines: List[str]) -> None:
    """Shows lines of a node on the terminal."""
    # While the program stops, nodes complain in vain about servers that have
    # stopped before them.
    speaks = not self._stopping or node.label in self._checked_labels
    for line in lines:
      if speaks or line.startswith(progress.STATUS_MARK):
        self._terminal.show(node.title, line)
