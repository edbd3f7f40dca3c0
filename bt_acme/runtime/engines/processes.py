"""Nodes as processes of this machine (`local_mp`).

Every process has a session of its own, so that Ctrl-C reaches the launcher
alone. The kernel kills it as soon as the launcher is gone. All processes of a
program share a network that nothing else can reach, unless the user wants
otherwise or the system has none.
"""

import contextlib
import functools
import os
import signal
import subprocess
import sys
from typing import Any, Dict, Mapping, Sequence, Set, Tuple

from bt_acme.runtime import events
from bt_acme.runtime.engines import base, private_network

_READ_SIZE = 1 << 16
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
    self._ended: Set[str] = set()  # Titles of processes whose end was posted.
    # By title, the open pipes: whether each is standard error.
    self._pipes: Dict[str, Dict[int, bool]] = {}
    queue.on_signal(signal.SIGCHLD, self._reap)

  def start(
    self, title: str, executable: Any, environment: Mapping[str, str]
  ) -> str:
    self.release(title)  # What is left of its life before.
    namespaces = self._network.descriptors if self._network else ()
    process = subprocess.Popen(
      [
        *dying_with(str(os.getpid()), namespaces),
        *executable.command_as_list,
        *NO_NOTICE,
      ],
      stdin=subprocess.DEVNULL,
      stdout=subprocess.PIPE,
      stderr=subprocess.PIPE,
      bufsize=0,
      start_new_session=True,
      pass_fds=namespaces,
      env={**os.environ, 'PYTHONUNBUFFERED': '1', **environment},
    )
    assert process.stdout is not None and process.stderr is not None
    self._processes[title] = process
    self._pipes[title] = {
      process.stdout.fileno(): False,
      process.stderr.fileno(): True,
    }
    for descriptor in self._pipes[title]:
      os.set_blocking(descriptor, False)
      self._queue.watch(
        descriptor, functools.partial(self._read, title, descriptor)
      )
    return f'process {process.pid}'

  def signal(self, title: str, signum: int) -> None:
    process = self._processes.get(title)
    if process is None:  # It could not be started.
      return
    if signum == signal.SIGKILL:
      with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    else:
      process.send_signal(signum)

  def release(self, title: str) -> None:
    if title not in self._processes:
      return
    # What has ended was killed then. Its number may be another's by now.
    if title not in self._ended:
      self.signal(title, signal.SIGKILL)
    process = self._processes.pop(title)
    process.wait()
    self._drain(title)
    for descriptor in list(self._pipes[title]):
      self._close_pipe(title, descriptor)
    self._ended.discard(title)
    assert process.stdout is not None and process.stderr is not None
    process.stdout.close()
    process.stderr.close()

  def close(self) -> None:
    if self._network is not None:
      self._network.close()

  def _reap(self) -> None:
    """Posts the end of every process that has ended."""
    for title, process in self._processes.items():
      if title not in self._ended and process.poll() is not None:
        self._ended.add(title)
        self.signal(title, signal.SIGKILL)  # With what it started.
        self._drain(title)
        self._queue.post(events.NodeExited(title, process.returncode))

  def _drain(self, title: str) -> None:
    """Reads what a process that has ended left in its pipes."""
    for descriptor in list(self._pipes[title]):
      while self._read(title, descriptor):
        pass

  def _read(self, title: str, descriptor: int) -> bool:
    """Posts what a process printed; returns whether there may be more."""
    try:
      data = os.read(descriptor, _READ_SIZE)
    except BlockingIOError:
      return False
    if not data:
      self._close_pipe(title, descriptor)
      return False
    is_error = self._pipes[title][descriptor]
    self._queue.post(events.Output(title, data, is_error))
    return True

  def _close_pipe(self, title: str, descriptor: int) -> None:
    self._queue.unwatch(descriptor)
    del self._pipes[title][descriptor]
