"""Exports policy snapshots during a run (`snapshot_steps`).

A snapshot is exported once the run passes its step, before the next checkpoint.
A run that resumes from a checkpoint therefore lacks only later snapshots, and
retains those that an earlier session exported after that checkpoint.
"""

import pathlib
from typing import Callable

from absl import logging

from bt_acme.config import run as run_config


class Snapshots:
  """The pending policy snapshots of a run."""

  def __init__(self, run: run_config.RunConfig, actor_steps: int):
    """Initializes the snapshots that still have to be exported.

    Args:
      run: the run.
      actor_steps: the number of actor steps at which the run starts or resumes.
    """
    self._run = run
    missing = [s for s in run.snapshots if not self._folder(s).is_dir()]
    self._ahead = [s for s in missing if s > actor_steps]
    for passed in missing[: len(missing) - len(self._ahead)]:
      logging.warning(
        'snapshot_steps=%s: the run is already past %d steps. Skipping %s.',
        run.snapshot_steps,
        passed,
        self._folder(passed),
      )

  def export_due(self, actor_steps: int, export: Callable[[str], None]) -> None:
    """Exports the behavior for each snapshot step that has been reached.

    Args:
      actor_steps: the number of actor steps taken so far.
      export: exports the behavior to a directory. If it raises an error, that
        snapshot stays pending.
    """
    while self._ahead and self._ahead[0] <= actor_steps:
      export(str(self._folder(self._ahead[0])))
      del self._ahead[0]

  def _folder(self, actor_steps: int) -> pathlib.Path:
    return pathlib.Path(self._run.snapshot_folder(actor_steps))
