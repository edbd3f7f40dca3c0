"""Starts and signals the process of a node, on this or another machine.

This module imports only the standard library, because `ray_driver` sends it to
machines where nothing else is installed.
"""

import contextlib
import os
import signal
import subprocess
from typing import IO, Any, Dict, List, Mapping, Sequence, Tuple

# Environment variable with the file descriptor of the process's heartbeat pipe.
PIPE_VARIABLE = 'BT_ACME_HEARTBEATS'


def start(
  command: List[str],
  environment: Mapping[str, str],
  *,
  inherited: Sequence[int] = (),
  **options: Any,
) -> Tuple[subprocess.Popen, Dict[str, IO[bytes]]]:
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
      env={
        **environment,
        'PYTHONUNBUFFERED': '1',
        PIPE_VARIABLE: str(writer),
      },
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


def send(process: subprocess.Popen, signum: int) -> None:
  """Sends a signal to a process; SIGKILL goes to its whole session."""
  if signum == signal.SIGKILL:
    with contextlib.suppress(ProcessLookupError):
      os.killpg(process.pid, signum)
  else:
    process.send_signal(signum)
