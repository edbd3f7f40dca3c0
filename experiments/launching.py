"""Runs launch scripts as parts of experiments, in separate processes."""

import os
import pathlib
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Any

from bt_acme.runtime import interrupts

ROOT = pathlib.Path(__file__).resolve().parents[1]  # The repository's root.

# Runs a launch script with flags and returns its exit code.
Launch = Callable[[str, Sequence[str]], int]


def command_of(script: str, flags: Sequence[str]) -> list[str]:
  """Returns the arguments that execute a launch script in any directory."""
  return [sys.executable, str(ROOT / 'launch' / script), *flags]


def launch(script: str, flags: Sequence[str]) -> int:
  """Runs a launch script, which starts a run or resumes an existing one.

  Args:
    script: the name of a file in `launch/`.
    flags: the flags of the script. Paths must be absolute, because the script
      runs in the repository's root.

  Returns:
    The exit code of the script.
  """
  # Ctrl-C reaches both the script and this process; SIGTERM is forwarded.
  return execute(command_of(script, flags), ROOT, passed_on=[signal.SIGTERM])


def execute(
  command: Sequence[str],
  folder: pathlib.Path,
  report: Any = None,
  *,
  passed_on: Sequence[signal.Signals] = (signal.SIGINT, signal.SIGTERM),
) -> int:
  """Executes a command and forwards signals to it.

  Ctrl-C does not interrupt the execution.

  Args:
    command: the command; its scripts can import all of the repository.
    folder: the directory in which it is executed.
    report: not used, because scripts report nothing.
    passed_on: the signals to forward.

  Returns:
    The exit code of the command.
  """
  del report
  path = [str(ROOT), os.environ.get('PYTHONPATH', '')]
  variables = {'PYTHONPATH': os.pathsep.join(filter(None, path))}
  process: subprocess.Popen | None = None
  early: list[signal.Signals] = []  # Signals from before the process exists.

  def pass_on(signum: signal.Signals) -> None:
    if signum in passed_on:
      process.send_signal(signum) if process else early.append(signum)

  with interrupts.handled({signal.SIGINT, *passed_on}, pass_on):
    process = subprocess.Popen(
      command, cwd=folder, env={**os.environ, **variables}
    )
    for signum in early:
      process.send_signal(signum)
    return process.wait()
