"""Nodes as processes of this machine (`local_mp`).

Every process has a session of its own, so that Ctrl-C reaches the launcher
alone. The kernel kills it as soon as the launcher is gone. All processes of a
program share a network that nothing else can reach, unless the user wants
otherwise or the system has none.
"""

import functools
import os
import signal
import subprocess
import sys
from typing import Any, Dict, List, Mapping, Sequence, Tuple

from bt_acme.runtime import events
from bt_acme.runtime.engines import base, node_process, private_network

# Executes a command that the kernel kills when its parent dies. It comes last:
# to enter a namespace would take the signal back.
_DIES_WITH_PARENT = """
import ctypes, os, signal, sys
PR_SET_PDEATHSIG = 1
ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
if os.getppid() == int(sys.argv[1]):
  os.execv(sys.argv[2], sys.argv[2:])
"""

# The launcher, not the process itself, kills a node that stays.
NO_NOTICE = ('--lp_termination_notice_secs=-1',)


def dying_with(parent: str, namespaces: Sequence[int] = ()) -> Tuple[str, ...]:
  """Returns what stands before a command so that it dies with its parent.

  Args:
    parent: the number of the parent's process.
    namespaces: file descriptors of namespaces that it enters, in this order.
  """
  code = private_network.ENTER + _DIES_WITH_PARENT
  return (
    *(sys.executable, '-IS', '-c', code),
    *(','.join(map(str, namespaces)), parent),
  )


class Processes(base.Engine):
  """Runs every node in a process of its own."""

  def __init__(self, queue: events.EventQueue, *, open_ports: bool = False):
    """Makes the processes' network.

    Args:
      queue: see `base.Engine`.
      open_ports: whether they share this machine's network instead, so that
        others can connect to them.
    """
    super().__init__(queue)
    self._network = None if open_ports else private_network.make()
    if self._network is None and not open_ports:
      print(
        'Warning: this system allows no network namespace, so that the ports '
        'of the nodes can be reached from outside of the run, without a '
        'password: use a private network (SECURITY.md).',
        flush=True,
      )
    self._processes: Dict[str, subprocess.Popen] = {}
    # By title, the pipes of the processes whose end was not posted yet.
    self._pipes: Dict[str, List[events.PipeReader]] = {}
    queue.on_signal(signal.SIGCHLD, self._reap)

  def start(
    self, title: str, executable: Any, environment: Mapping[str, str]
  ) -> str:
    self.release(title)  # What is left of its previous attempt.
    namespaces = self._network.descriptors if self._network else ()
    process, pipes = node_process.start(
      [
        *dying_with(str(os.getpid()), namespaces),
        *executable.command_as_list,
        *NO_NOTICE,
      ],
      {**os.environ, **environment},
      inherited=namespaces,
    )
    self._processes[title] = process
    self._pipes[title] = [
      events.PipeReader(
        self._queue, pipe, functools.partial(self._post, title, stream)
      )
      for stream, pipe in pipes.items()
    ]
    return f'process {process.pid}'

  def signal(self, title: str, signum: int) -> None:
    # Once it has exited, its number may be another's.
    if title in self._pipes:
      node_process.send(self._processes[title], signum)

  def release(self, title: str) -> None:
    self.signal(title, signal.SIGKILL)
    process = self._processes.pop(title, None)
    if process is not None:
      process.wait()
      self._close_pipes(title)

  def close(self) -> None:
    if self._network is not None:
      self._network.close()

  def _reap(self) -> None:
    """Posts the end of every process that has exited."""
    for title, process in self._processes.items():
      if title in self._pipes and process.poll() is not None:
        self.signal(title, signal.SIGKILL)  # With what it started.
        self._close_pipes(title)
        self._queue.post(events.NodeExited(title, process.returncode))

  def _post(self, title: str, stream: str, data: bytes) -> None:
    self._queue.post(events.from_pipe(title, stream, data))

  def _close_pipes(self, title: str) -> None:
    """Takes what a process that has ended left in its pipes."""
    for pipe in self._pipes.pop(title, ()):
      pipe.close()
