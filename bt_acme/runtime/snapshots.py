"""Behaviors that a run exports on its way: `snapshot_steps`.

A snapshot is exported when the run's count passes its steps, and before the
next checkpoint. A run that goes on from a checkpoint therefore lacks only those
that lie ahead of it, and keeps those that an earlier session exported since.
"""

import pathlib
from typing import Callable

from absl import logging

from bt_acme.config import run as run_config


class Snapshots:
  """Knows which snapshots of a run are due."""

  def __init__(self, run: run_config.RunConfig, actor_steps: int):
    """Looks for what there is.

    Args:
      run: the run.
      actor_steps: the number of actor steps from which it goes on.
    """
    self._run = run
    missing = [s for s in run.snapshots if not self._folder(s).is_dir()]
    self._ahead = [s for s in missing if s > actor_steps]
    for passed in missing[: len(missing) - len(self._ahead)]:
      logging.warning(
        'snapshot_steps=%s: the run has passed %d steps before, so that there '
        'will be no %s.',
        run.snapshot_steps,
        passed,
        self._folder(passed),
      )

  def export_due(self, actor_steps: int, export: Callable[[str], None]) -> None:
    """Exports the behavior to each folder that is due now.

    Args:
      actor_steps: the number of actor steps that have been taken.
      export: exports the behavior to a folder. If it raises an error, that
        folder stays due.
    """
    while self._ahead and self._ahead[0] <= actor_steps:
      export(str(self._folder(self._ahead[0])))
      del self._ahead[0]

  def _folder(self, actor_steps: int) -> pathlib.Path:
    return pathlib.Path(self._run.snapshot_folder(actor_steps))
