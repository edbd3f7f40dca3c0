"""Engine that runs nodes as processes of this machine (`local_mp`).

Every process has its own session, so that Ctrl-C reaches only the launcher. The
kernel kills the processes as soon as the launcher is gone. All processes of a
program share a private network that nothing else can reach, unless the user
opens the ports or the system forbids network namespaces.
"""

import os
import resource
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from typing import IO, Any

from bt_acme.runtime import environment_variables, events, output
from bt_acme.runtime.engines import base, node_process, private_network

# Executes a command that the kernel kills when its parent exits. This comes
# last, because entering a namespace would cancel the setting.
_KILLED_WITH_PARENT = """
import ctypes, os, signal, sys
PR_SET_PDEATHSIG = 1
ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
if os.getppid() == int(sys.argv[1]):
  os.execv(sys.argv[2], sys.argv[2:])
"""

# Time for SIGKILL to end a process, whose output `node_process` reads for half
# as long. A process that waits for a dead disk takes longer: it is left behind.
_EXIT_SECONDS = 10.0

# The launcher, not the process itself, kills a node that does not stop.
NO_NOTICE = ('--lp_termination_notice_secs=-1',)


def killed_with(parent: str, namespaces: Sequence[int] = ()) -> tuple[str, ...]:
  """Returns the prefix of a command that is killed when its parent exits.

  Args:
    parent: the PID of the parent.
    namespaces: file descriptors of namespaces to enter, in this order.
  """
  code = private_network.ENTER + _KILLED_WITH_PARENT
  return (
    *(sys.executable, '-IS', '-c', code),
    *(','.join(map(str, namespaces)), parent),
  )


class Processes(base.Engine):
  """Runs every node in its own process."""

  def __init__(self, queue: events.EventQueue, *, open_ports: bool = False):
    """Initializes the engine and its private network.

    Args:
      queue: see `base.Engine`.
      open_ports: whether to use this machine's network instead, so that other
        programs can connect to the nodes.
    """
    super().__init__(queue)
    # Each node needs five files, and many systems allow only 1,024 at first.
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    self._namespaces = () if open_ports else private_network.make()
    if not self._namespaces and not open_ports:
      output.show(
        'Warning: this system forbids network namespaces, so the ports of the '
        'nodes can be reached from outside the run without a password. Use a '
        'private network (see SECURITY.md).'
      )
    # By title, each process and the thread that follows it.
    self._processes: dict[str, tuple[subprocess.Popen, threading.Thread]] = {}

  def start(
    self, title: str, executable: Any, environment: Mapping[str, str]
  ) -> str:
    """Starts a process; see `base.Engine`."""
    self.release(title)  # The remains of the previous attempt.
    process, pipes = node_process.start(
      [
        *killed_with(str(os.getpid()), self._namespaces),
        *executable.command_as_list,
        *NO_NOTICE,
      ],
      {**os.environ, **environment_variables.NO_PROXY, **environment},
      inherited=self._namespaces,
    )
    thread = threading.Thread(
      target=self._follow, args=(title, process, pipes), daemon=True
    )
    self._processes[title] = process, thread
    thread.start()
    return f'process {process.pid}'

  def signal(self, title: str, signum: int) -> None:
    """Sends a signal; see `base.Engine`."""
    if title in self._processes:
      process, _ = self._processes[title]
      # The PID of an exited process may have been reused.
      if process.returncode is None:
        node_process.send(process, signum)

  def release(self, title: str) -> None:
    """Ends a process; see `base.Engine`."""
    self.signal(title, signal.SIGKILL)
    if title in self._processes:
      self._processes[title][1].join(_EXIT_SECONDS)
      del self._processes[title]

  def close(self) -> None:
    """Closes the private network."""
    for descriptor in self._namespaces:
      os.close(descriptor)

  def _follow(
    self, title: str, process: subprocess.Popen, pipes: Mapping[str, IO[bytes]]
  ) -> None:
    """Posts the output of a process, and finally its exit."""

    def post(event: events.Event) -> None:
      # The process may have been left behind.
      if process in self._processes.get(title, ()):
        self._queue.put(event)

    for stream, data in node_process.follow(process, pipes):
      post(events.Output(title, stream, data))
    post(events.NodeExited(title, process.returncode))
