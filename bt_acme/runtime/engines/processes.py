"""Engine that runs nodes as processes of this machine (`local_mp`).

Every process has its own session, so that Ctrl-C reaches only the launcher. The
kernel kills the processes as soon as the launcher is gone. All processes of a
program share a private network that nothing else can reach, unless the user
opens the ports or the system forbids network namespaces.
"""

import functools
import os
import signal
import subprocess
import sys
from typing import Any, Dict, List, Mapping, Sequence, Tuple

from bt_acme.runtime import events
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

# The launcher, not the process itself, kills a node that does not stop.
NO_NOTICE = ('--lp_termination_notice_secs=-1',)


def killed_with(parent: str, namespaces: Sequence[int] = ()) -> Tuple[str, ...]:
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
    self._namespaces = () if open_ports else private_network.make()
    if not self._namespaces and not open_ports:
      print(
        'Warning: this system forbids network namespaces, so the ports of the '
        'nodes can be reached from outside the run without a password. Use a '
        'private network (see SECURITY.md).',
        flush=True,
      )
    self._processes: Dict[str, subprocess.Popen] = {}
    # By title, the pipes of the processes whose exit has not been posted.
    self._pipes: Dict[str, List[events.PipeReader]] = {}
    queue.on_signal(signal.SIGCHLD, self._reap)

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
      {**os.environ, **environment},
      inherited=self._namespaces,
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
    """Sends a signal; see `base.Engine`."""
    # The PID of an exited process may have been reused.
    if title in self._pipes:
      node_process.send(self._processes[title], signum)

  def release(self, title: str) -> None:
    """Ends a process; see `base.Engine`."""
    self.signal(title, signal.SIGKILL)
    process = self._processes.pop(title, None)
    if process is not None:
      process.wait()
      self._close_pipes(title)

  def close(self) -> None:
    """Closes the private network."""
    for descriptor in self._namespaces:
      os.close(descriptor)

  def _reap(self) -> None:
    """Posts the exit of every process that has exited."""
    for title, process in self._processes.items():
      if title in self._pipes and process.poll() is not None:
        self.signal(title, signal.SIGKILL)  # Kills its child processes.
        self._close_pipes(title)
        self._queue.post(events.NodeExited(title, process.returncode))

  def _post(self, title: str, stream: str, data: bytes) -> None:
    self._queue.post(events.from_pipe(title, stream, data))

  def _close_pipes(self, title: str) -> None:
    """Reads the rest of an exited process's pipes, and closes them."""
    for pipe in self._pipes.pop(title, ()):
      pipe.close()
