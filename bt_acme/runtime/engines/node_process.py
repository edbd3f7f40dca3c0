"""Starts, follows and signals a node's process, on this or another machine.

This module imports only the standard library, because `ray_driver` sends it to
machines where nothing else is installed.
"""

import contextlib
import math
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import IO, Any

# Environment variable with the file descriptor of the process's heartbeat pipe.
PIPE_VARIABLE = 'BT_ACME_HEARTBEATS'
_READ_SIZE = 1 << 16
# Between two checks whether the process has exited although its pipes are open.
_LOOK_SECONDS = 0.5
_DRAIN_SECONDS = 5.0  # Time to read the rest after the process has exited.


def start(
  command: list[str],
  environment: Mapping[str, str],
  *,
  inherited: Sequence[int] = (),
  **options: Any,
) -> tuple[subprocess.Popen, dict[str, IO[bytes]]]:
  """Starts a process in its own session.

  Args:
    command: the words of the command.
    environment: all environment variables, except those that are added here.
    inherited: file descriptors that the process inherits.
    **options: additional arguments of `subprocess.Popen`.

  Returns:
    The process, and the pipes from it: `stdout`, `stderr` and `heartbeats`.

  Raises:
    OSError: if the process cannot be started.
  """
  reader, writer = os.pipe()
  try:
    process = subprocess.Popen(
      command,
      stdin=subprocess.DEVNULL,
      stdout=subprocess.PIPE,
      stderr=subprocess.PIPE,
      bufsize=0,
      start_new_session=True,
      pass_fds=(*inherited, writer),
      env={**environment, 'PYTHONUNBUFFERED': '1', PIPE_VARIABLE: str(writer)},
      **options,
    )
  except OSError:
    os.close(reader)
    raise
  finally:
    os.close(writer)
  assert process.stdout is not None and process.stderr is not None
  pipes = {
    'stdout': process.stdout,
    'stderr': process.stderr,
    'heartbeats': os.fdopen(reader, 'rb', 0),
  }
  return process, pipes


def follow(
  process: subprocess.Popen, pipes: Mapping[str, IO[bytes]]
) -> Iterator[tuple[str, bytes]]:
  """Yields what a process writes until it exits, then ends its session.

  Args:
    process: the process, which leads a session of its own.
    pipes: the pipes from the process by name; they are closed at the end.

  Yields:
    The name of a pipe, and the bytes read from it.
  """
  with contextlib.ExitStack() as stack:
    selector = stack.enter_context(selectors.DefaultSelector())
    for name, pipe in pipes.items():
      stack.enter_context(pipe)
      selector.register(pipe, selectors.EVENT_READ, name)
    has_exited, deadline = False, math.inf
    while selector.get_map() and time.monotonic() < deadline:
      ready = selector.select(0 if has_exited else _LOOK_SECONDS)
      for key, _ in ready:
        data = os.read(key.fd, _READ_SIZE)
        if data:
          yield key.data, data
        else:
          selector.unregister(key.fileobj)
      if has_exited and not ready:
        break  # A child process in a session of its own keeps a pipe open.
      if not has_exited and process.poll() is not None:
        # Such a child process may also write without a pause.
        has_exited, deadline = True, time.monotonic() + _DRAIN_SECONDS
        send(process, signal.SIGKILL)
  process.wait()
  send(process, signal.SIGKILL)  # Kills the child processes.


def send(process: subprocess.Popen, signum: int) -> None:
  """Sends a signal to a process; SIGKILL goes to its whole session."""
  if signum == signal.SIGKILL:
    with contextlib.suppress(ProcessLookupError):
      os.killpg(process.pid, signum)
  else:
    process.send_signal(signum)
