"""Exports policy snapshots during a run (`snapshot_steps`).

A snapshot is exported once the run passes its step, before the next checkpoint.
A run that resumes from a checkpoint therefore lacks only later snapshots, and
retains those that an earlier session exported after that checkpoint.
"""

import os
from collections.abc import Callable

from absl import logging

from bt_acme.config import run as run_config


def pending(run: run_config.RunConfig, actor_steps: int) -> list[int]:
  """Returns the steps of the snapshots that still have to be exported.

  Args:
    run: the run.
    actor_steps: the number of actor steps at which the run starts or resumes.
      Logs a warning for each missing snapshot of an earlier step.
  """
  missing = [
    s for s in run.snapshots if not os.path.isdir(run.snapshot_folder(s))
  ]
  for step in missing:
    if step <= actor_steps:
      logging.warning(
        'snapshot_steps=%s: the run is already past %d steps. Skipping %s.',
        *(run.snapshot_steps, step, run.snapshot_folder(step)),
      )
  return [s for s in missing if s > actor_steps]


def export_due(
  run: run_config.RunConfig,
  steps: list[int],
  actor_steps: int,
  export: Callable[[str], None],
) -> None:
  """Exports the behavior for each snapshot step that has been reached.

  Args:
    run: the run.
    steps: the pending steps; exported ones are removed from this list.
    actor_steps: the number of actor steps taken so far.
    export: exports the behavior to a directory. If it raises an error, that
      snapshot stays pending.
  """
  while steps and steps[0] <= actor_steps:
    export(run.snapshot_folder(steps[0]))
    del steps[0]
