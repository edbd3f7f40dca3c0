"""Runs a launch script as an experiment's part, in processes of its own."""

import pathlib
import signal
import subprocess
import sys
from typing import Sequence

_ROOT = pathlib.Path(__file__).resolve().parents[1]


def launch(script: str, flags: Sequence[str]) -> int:
  """Runs a script, which resumes its run or finds that it has ended.

  Args:
    script: the name of a file in `launch/`.
    flags: its flags. Paths must be absolute, because the script runs in the
      repository's root.

  Returns:
    The script's exit code.
  """
  command = [sys.executable, str(_ROOT / 'launch' / script), *flags]
  with subprocess.Popen(command, cwd=_ROOT) as process:
    # Ctrl-C reaches the script as well as this process, SIGTERM does not.
    handlers = {
      signal.SIGINT: lambda *_: None,
      signal.SIGTERM: lambda signum, _: process.send_signal(signum),
    }
    before = {s: signal.signal(s, handle) for s, handle in handlers.items()}
    code = process.wait()
    for signum, handler in before.items():
      signal.signal(signum, handler)
  return code
