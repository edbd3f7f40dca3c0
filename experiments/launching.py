"""Runs launch scripts as parts of experiments, in separate processes."""

import signal
import subprocess
import sys
from typing import Callable, Sequence

from experiments.harness import pool

# Runs a launch script with flags and returns its exit code.
Launch = Callable[[str, Sequence[str]], int]


def launch(script: str, flags: Sequence[str]) -> int:
  """Runs a launch script, which starts a run or resumes an existing one.

  Args:
    script: the name of a file in `launch/`.
    flags: the flags of the script. Paths must be absolute, because the script
      runs in the repository's root.

  Returns:
    The exit code of the script.
  """
  command = [sys.executable, str(pool.ROOT / 'launch' / script), *flags]
  # Ctrl-C reaches both the script and this process; SIGTERM is forwarded.
  process = subprocess.Popen(command, cwd=pool.ROOT)
  return pool.wait_for(process, passed_on=[signal.SIGTERM])
