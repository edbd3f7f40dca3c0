"""Runs a launch script as an experiment's part, in processes of its own."""

import signal
import subprocess
import sys
from typing import Sequence

from experiments.harness import pool


def launch(script: str, flags: Sequence[str]) -> int:
  """Runs a script, which resumes its run or finds that it has ended.

  Args:
    script: the name of a file in `launch/`.
    flags: its flags. Paths must be absolute, because the script runs in the
      repository's root.

  Returns:
    The script's exit code.
  """
  command = [sys.executable, str(pool.ROOT / 'launch' / script), *flags]
  # Ctrl-C reaches the script as well as this process, SIGTERM does not.
  process = subprocess.Popen(command, cwd=pool.ROOT)
  return pool.wait_for(process, passed_on=[signal.SIGTERM])
