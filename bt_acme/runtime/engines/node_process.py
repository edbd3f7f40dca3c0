"""A node's process and the pipes from it, on this machine or a cluster's.

It imports the standard library alone, because `ray_node` sends it to machines
that have nothing else.
"""

import contextlib
import os
import signal
import subprocess
from typing import IO, Any, Dict, List, Mapping, Sequence, Tuple

# This variable of the process holds the file descriptor of its pipe for
# heartbeats.
PIPE_VARIABLE = 'BT_ACME_HEARTBEATS'


def start(
  command: List[str],
  environment: Mapping[str, str],
  *,
  inherited: Sequence[int] = (),
  **options: Any,
) -> Tuple[subprocess.Popen, Dict[str, IO[bytes]]]:
  """Starts a process in a session of its own.

  Args:
    command: its words.
    environment: all of its variables, except those that are added here.
    inherited: file descriptors that it inherits.
    **options: more arguments of `subprocess.Popen`.

  Returns:
    The process, and the pipes from it: `stdout`, `stderr` and `heartbeats`.

  Raises:
    OSError: if it cannot be started.
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
  """Sends a signal to a process, or to its whole session if it kills."""
  if signum == signal.SIGKILL:
    with contextlib.suppress(ProcessLookupError):
      os.killpg(process.pid, signum)
  else:
    process.send_signal(signum)
