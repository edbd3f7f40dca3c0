"""Supervises the nodes of a program, and leaves no process behind.

Launchpad's own local launchers ignore exit codes, hold back a process's output
until the process exits, and kill themselves if a node does not stop in time.
The supervisor behaves as follows on every engine:

- The program succeeds when its main node (`Rules.main_label`) does.
- When a node fails, the node or the whole program restarts, as often as the
  `Rules` allow. A node that sends no heartbeat for too long is killed, which
  counts as a failure. The timeout starts with the node's first heartbeat, so
  that it may take as long as it needs to compile.
- Any other failure ends the program, and the node's traceback is printed last.
- Ctrl-C gives every node `grace_seconds` to stop; a second Ctrl-C kills all
  nodes immediately. Nodes of `Rules.restarted_labels` that have not sent a
  heartbeat yet are killed by the first Ctrl-C.
"""

import collections
import dataclasses
import math
import os
import pathlib
import queue as queue_lib
import signal
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

import launchpad as lp

from bt_acme.runtime import (
  events,
  executables,
  heartbeats,
  interrupts,
  progress,
  terminal,
)
from bt_acme.runtime import supervised_nodes as node_lib
from bt_acme.runtime.engines import base

_LOOK_SECONDS = 1.0  # Maximum time between two checks for hung nodes.
# When a server hangs, the nodes that wait for it hang as well. Each label's
# timeout exceeds that of the previous label by this much, so that the hang is
# attributed to the server.
_SECONDS_AFTER_SERVERS = 4 * heartbeats.PERIOD
# A killed node is lost if its engine has not posted its exit by then.
_KILL_SECONDS = 60.0
# Shutdown timeout in seconds, before the program restarts, of nodes that have
# nothing to save.
_FLUSH_SECONDS = 1.0
# Extends the shutdown timeout of nodes with something to save after a program
# has completed: no user is waiting then, and a busy machine is slow.
_FINAL_SAVE_FACTOR = 6


class Rules(NamedTuple):
  """How a program ends, and the node failures from which it recovers.

  By default it recovers from none.

  Attributes:
    main_label: the program ends when the node with this label exits.
    checked_labels: the labels of nodes whose failure fails the program even
      during shutdown. Other nodes may fail then, because their servers stop as
      well.
    grace_seconds: the seconds between the request to stop and SIGKILL. When the
      program completes, nodes of `checked_labels` have six times as long.
    max_restarts_per_hour: the maximum number of restarts per hour, of each node
      and of the program as a whole.
    restarted_labels: the labels of nodes that restart while the others keep
      running, each with the labels of the nodes that must restart with it.
      Before their first heartbeat these nodes have nothing to lose, so a
      program that stops kills them immediately.
    next_program: makes the program to restart after any other node has failed;
      called when all nodes of the previous program have exited.
    watchdog_seconds: a node that sends no heartbeat for this long is hung.
  """

  main_label: str = 'coordinator'
  checked_labels: Collection[str] = ()
  grace_seconds: float = 10.0
  max_restarts_per_hour: int = 0
  restarted_labels: Mapping[str, Sequence[str]] = {}
  next_program: Callable[[], lp.Program] | None = None
  watchdog_seconds: float = math.inf


class _End(NamedTuple):
  """The reason why a program ends.

  Attributes:
    code: its exit code; 0 if it has completed, None if it restarts.
    culprit: the node that failed, if any.
  """

  code: int | None
  culprit: node_lib.NodeState | None = None


@dataclasses.dataclass(eq=False)
class Supervisor:
  """Runs a program, watches its nodes, and restarts them after failures.

  Attributes:
    make_engine: makes the engine of a program.
    queue: the queue into which the engine and `interrupts` put events.
    workdir: see `launcher.launch`, like the following attributes.
    rules: see above.
    environments: environment variables by label.
    ports: the port of each label's first node, by label.
    clock: a function that returns seconds.
  """

  make_engine: Callable[[], base.Engine]
  queue: events.EventQueue
  workdir: str | pathlib.Path
  rules: Rules
  environments: Mapping[str, Mapping[str, str]]
  ports: Mapping[str, int]
  clock: Callable[[], float] = time.monotonic

  def __post_init__(self) -> None:
    self._log_folder = pathlib.Path(self.workdir) / 'processes'
    self._terminal = terminal.Terminal(self._log_folder / 'launcher.log')
    # By title, across all programs of the run; '' is the program as a whole.
    self._budgets: dict[str, node_lib.RestartBudget] = collections.defaultdict(
      lambda: node_lib.RestartBudget(self.rules.max_restarts_per_hour)
    )
    self._budget = self._budgets['']

  def run(self, program: lp.Program) -> int:
    """Runs a program, and restarts it as often as the rules allow.

    Args:
      program: see `launcher.launch`.

    Returns:
      The exit code, see `launcher.launch`.
    """
    while (code := self._run_once(program)) is None:
      assert self.rules.next_program is not None
      program = self.rules.next_program()
    return code

  def _run_once(self, program: lp.Program) -> int | None:
    """Runs a program until it ends; returns None if it has to restart."""
    self._program = program
    self._engine = self.make_engine()
    self._num_ports = executables.prepare(
      program, in_this_process=self._engine.in_this_process
    )
    self._nodes: dict[str, node_lib.NodeState] = {}
    labels = list(program.groups)
    for title in self._num_ports:
      node = node_lib.NodeState(title, self._budgets[title])
      # Servers come first: a node may wait for nodes of earlier labels.
      after_servers = labels.index(node.label) * _SECONDS_AFTER_SERVERS
      node.timeout = self.rules.watchdog_seconds + after_servers
      self._nodes[title] = node
    self._looked = self.clock()
    self._executables: dict[str, Any] = {}
    self._interrupts: list[signal.Signals] = []
    self._stopping = False
    try:
      for title, number in self._num_ports.items():
        self._engine.place(title, number)
      end = self._stop(self._wait_for_end())
      failures = self._failures_to_stop(end)
    finally:
      self._release()
    if end.code is None and self._interrupts:
      end = self._interrupted(self._interrupts[-1])
    code = end.code
    if end.culprit is not None and code is not None:
      failures = [end.culprit.describe_end()]
    if failures:
      self._terminal.log('\n'.join(failures))
      code = 1 if code == 0 else code
    if code is not None and self._engine.in_this_process and self._running():
      self._terminal.log(
        'Some nodes did not stop in time. Exiting the process to end them.'
      )
      os._exit(code)
    return code

  def _start_all(self) -> None:
    """Starts every node on the machine where it is scheduled."""
    addresses = {
      title: node.addresses or [] for title, node in self._nodes.items()
    }
    for label, port in self.ports.items():
      first = addresses[f'{label}/0']
      host, _, _ = first[0].rpartition(':')
      first[0] = f'{host}:{port}'
    servers = self._servers()
    if servers and any(node.host for node in self._nodes.values()):
      self._terminal.print_above(f'Listening without a password: {servers}.')
    self._executables = executables.make(self._program, addresses)
    for title in self._executables:
      self._start(self._nodes[title])

  def _start(self, node: node_lib.NodeState) -> None:
    """Starts or restarts a node, possibly on another machine."""
    before = node.ended
    # After a failed start, the node may succeed on another machine.
    if before and not node.addresses and (before.lost or node.heard is None):
      self._engine.place(node.title, 0)
    live = self._terminal.live
    variables = {
      progress.STATUS_VARIABLE: 'live' if live else 'plain',
      heartbeats.ATTEMPT_VARIABLE: str(node.num_starts),
      heartbeats.OLD_ATTEMPT_VARIABLE: str(node.num_starts),
      heartbeats.TITLE_VARIABLE: node.title,
      **self.environments.get(node.label, {}),
    }
    log, process = None, None
    try:
      process = self._engine.start(
        node.title, self._executables[node.title], variables
      )
    except OSError as error:
      reason = f'could not be started: {error}.'
      self.queue.put(events.NodeExited(node.title, 1, reason))
    if process is not None:
      path = self._log_folder / f'{node.title.replace("/", "-")}.log'
      log = terminal.NodeLog(path, process, live=live)
    node.mark_started(log)
    node.late_at = self.clock() + self.rules.watchdog_seconds

  def _wait_for_end(self) -> _End:
    """Waits for the exit of the main node, a final failure, or a signal.

    Starts all nodes as soon as every node is scheduled.
    """
    while True:
      event = self._next(_LOOK_SECONDS)
      self._watch()
      if isinstance(event, signal.Signals):
        return self._interrupted(event)
      if isinstance(event, events.NodeExited):
        node = self._nodes[event.title]
        if node.ended and node.ended.code:
          end = self._handle_failure(node)
          if end is not None:
            return end
        elif node.label == self.rules.main_label:
          return _End(0)
        else:  # Another node may be waiting for this slot.
          self._engine.release(node.title)
      if self._executables:
        self._start_due()
      elif all(node.addresses is not None for node in self._nodes.values()):
        self._start_all()

  def _watch(self) -> None:
    """Kills the nodes that have sent no heartbeat for too long.

    Posts the exit of each killed node of which the engine knows nothing.
    """
    now = self.clock()
    gap = now - self._looked
    if gap < heartbeats.PERIOD:
      return
    self._looked = now
    # If this process was suspended, it has yet to read events of that time.
    missed = gap if gap > _SECONDS_AFTER_SERVERS else 0.0
    for node in self._running():
      if node.killed is not None:
        node.killed += missed
        if now - node.killed > _KILL_SECONDS:
          node.killed = math.inf
          self.queue.put(
            events.NodeExited(node.title, -signal.SIGKILL, lost=True)
          )
      elif node.heard is not None:
        node.heard += missed
        if now - node.heard > node.timeout:
          node.why_killed = (
            f'sent no heartbeat for {self.rules.watchdog_seconds:g} s and was '
            'killed.'
          )
          self._kill(node)

  def _kill(self, node: node_lib.NodeState) -> None:
    node.killed = self.clock()
    self._engine.signal(node.title, signal.SIGKILL)

  def _start_due(self) -> None:
    """Restarts nodes after their backoff, and reports each late node once."""
    now = self.clock()
    for node in self._nodes.values():
      if node.due is not None and node.due <= now:
        self._start(node)
      if node.runs and node.heard is None and now > node.late_at:
        node.late_at = math.inf
        self._terminal.log(
          f'[{node.title}] no heartbeat after '
          f'{self.rules.watchdog_seconds:g} s. The node may be compiling, '
          'waiting for work (an evaluation, a filled replay) or for a slot, or '
          f'unable to reach other nodes ({self._servers()}).'
        )

  def _servers(self) -> str:
    """Returns the titles and addresses of all nodes that listen on a port."""
    return ', '.join(
      f'{node.title} at {" and ".join(node.addresses)}'
      for node in self._nodes.values()
      if node.addresses
    )

  def _handle_failure(self, node: node_lib.NodeState) -> _End | None:
    """Restarts a failed node; returns the end if the program has to end."""
    assert node.ended is not None
    if not self._executables:  # No node has been started.
      return self._reschedule(node, node.ended)
    if node.follows:
      node.due = self.clock()
      return None
    # Other nodes would still use the old address of a node that listens.
    has_lost_address = node.ended.lost and bool(node.addresses)
    labels = self.rules.restarted_labels
    alone = node.label in labels and not has_lost_address
    budget = node.budget if alone else self._budget
    # A restart would only repeat an error at the start of a first attempt.
    failed_at_its_start = node.ended.code > 0 and not node.budget.has_worked
    if (
      failed_at_its_start
      or not (alone or self.rules.next_program)
      or not budget.acquire(self.clock())
    ):
      return _End(1, node)
    failure = node.describe_failure()
    if not alone:
      self._terminal.log(
        f'{failure} Restarting the program from its last checkpoint ({budget}).'
      )
      return _End(None, node)
    pause = node.next_backoff()
    when = f' in {pause:g} s' if pause else ''
    self._terminal.log(f'{failure} Restarting{when} ({budget}).')
    for other in self._running():
      if other.label in labels[node.label]:
        other.follows = True
        self._kill(other)
    node.due = self.clock() + pause
    return None

  def _reschedule(
    self, node: node_lib.NodeState, ended: events.NodeExited
  ) -> _End | None:
    """Schedules a node again whose slot was lost before the start."""
    if not (ended.lost and self._budget.acquire(self.clock())):
      return _End(1, node)
    self._terminal.log(
      f'{node.describe_failure()} Rescheduling ({self._budget}).'
    )
    node.addresses = node.ended = None
    self._engine.place(node.title, self._num_ports[node.title])
    return None

  @property
  def _hurried(self) -> bool:
    """Whether the user has asked to kill all nodes immediately."""
    return signal.SIGINT in self._interrupts[1:]

  def _interrupted(self, signum: signal.Signals) -> _End:
    what = 'stopping. Ctrl-C now kills everything immediately.'
    if self._hurried:
      what = 'killing everything.'
    self._terminal.print_above(f'{signum.name}: {what}')
    return _End(interrupts.exit_code(signum))

  def _stop(self, end: _End) -> _End:
    """Stops all nodes; returns the end, which an interrupt may change."""
    self._stopping = True
    for node in self._running():
      is_restarted = node.label in self.rules.restarted_labels
      loses_nothing = is_restarted and node.heard is None
      signum = signal.SIGKILL if loses_nothing else signal.SIGTERM
      self._engine.signal(node.title, signum)
    start = self.clock()
    while not self._hurried:
      grace = [self._grace(node.label, end) for node in self._running()]
      left = start - self.clock() + max(grace, default=0.0)
      if left <= 0:
        break
      event = self._next(left)
      if isinstance(event, signal.Signals):
        stopped = self._interrupted(event)
        end = end if end.culprit is not None and end.code else stopped
    return end

  def _grace(self, label: str, end: _End) -> float:
    """Returns the seconds that nodes of a label have to stop."""
    if label in self.rules.checked_labels:  # They have something to save.
      factor = _FINAL_SAVE_FACTOR if end.code == 0 else 1
      return factor * self.rules.grace_seconds
    return _FLUSH_SECONDS if end.code is None else self.rules.grace_seconds

  def _failures_to_stop(self, end: _End) -> list[str]:
    """Returns the errors of checked nodes during the shutdown."""
    failures = []
    for node in self._nodes.values():
      if node.label in self.rules.checked_labels and node is not end.culprit:
        seconds = None if self._hurried else self._grace(node.label, end)
        failures.append(node.describe_stop(seconds))
    return [failure for failure in failures if failure]

  def _release(self) -> None:
    """Kills all remaining nodes, and handles the rest of their output."""
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

  def _running(self) -> list[node_lib.NodeState]:
    return [node for node in self._nodes.values() if node.runs]

  def _next(self, timeout: float) -> Any:
    """Returns the next event, after it has updated the node and the terminal.

    Args:
      timeout: maximum wait in seconds.

    Returns:
      The event; None after a timeout.
    """
    try:
      event = self.queue.get(timeout=timeout)
    except queue_lib.Empty:
      return None
    if isinstance(event, signal.Signals):
      self._interrupts.append(event)
    else:
      self._update(event)
    return event

  def _update(self, event: events.Event) -> None:
    """Updates the node of an event, and the terminal."""
    node = self._nodes[event.title]
    if isinstance(event, events.NodeScheduled):
      if node.log is not None and event.host != node.host:
        self._terminal.log(f'[{node.title}] moved to {event.host}.')
      node.addresses, node.host = event.addresses, event.host
    elif isinstance(event, events.NodePending):
      self._terminal.log(
        f'[{node.title}] waiting to be scheduled: {event.reason}'
      )
    elif isinstance(event, events.Output) and event.stream == 'heartbeats':
      if heartbeats.MARK in event.data:
        node.record_heartbeat(self.clock())
      if heartbeats.STOP_MARK in event.data and not self._stopping:
        node.received_sigterm = True
      node.has_saved |= heartbeats.SAVED_MARK in event.data
    elif isinstance(event, events.Output) and node.log is not None:
      self._show(node, node.log.add(event.data, event.stream == 'stderr'))
    elif isinstance(event, events.NodeExited):
      node.mark_exited(event)
      if node.log is not None:
        self._show(node, node.log.finish())

  def _show(self, node: node_lib.NodeState, lines: list[str]) -> None:
    """Prints lines of a node on the terminal."""
    # During shutdown, nodes log harmless errors about servers that have already
    # stopped.
    is_shown = node.label in self.rules.checked_labels or not self._stopping
    for line in lines:
      if is_shown or line.startswith(progress.STATUS_MARK):
        self._terminal.show(node.title, line)
