"""Loads runs and behaviors from disk."""

import pathlib
from typing import Sequence, Union

from bt_acme import behaviors
from bt_acme.api import runs
from bt_acme.config import run as run_config


def load_behavior(folder: Union[str, pathlib.Path]) -> behaviors.Exported:
  """Loads an exported behavior.

  The files are treated as untrusted: nothing in them is executed.

  Args:
    folder: the directory written by `Run.export`, the workdir of a
      pre-training run, which contains a behavior, or the name of a behavior
      that comes with the package (`bt_acme.behaviors.list`).

  Returns:
    The behavior.

  Raises:
    ValueError: if the directory is missing, incomplete or damaged.

  Example:
    ```python
    behavior = bt_acme.load_behavior('runs/explorer')
    bt = bt_acme.transfer(task, behavior, max_actor_steps=40_000)
    ```
  """
  exported = run_config.RunConfig(workdir=str(folder)).behavior_folder
  chosen = exported if pathlib.Path(exported).is_dir() else str(folder)
  return behaviors.Exported(chosen, setting='folder')


def load_run(
  folder: Union[str, pathlib.Path],
  behavior: Union[behaviors.Behavior, Sequence[behaviors.Behavior]] = (),
) -> runs.Run:
  """Loads a run without continuing it; `Run.resume` does.

  Args:
    folder: the workdir of a run in one process, or a directory written by
      `Run.save`. It becomes the workdir of the loaded run.
    behavior: the behaviors that were passed to `transfer`. Only needed for
      behaviors of your own: a run stores copies of exported behaviors.

  Returns:
    The run.

  Raises:
    ValueError: if the directory does not contain a run in one process, or if
      `behavior` differs from the behaviors of the run.

  Example:
    ```python
    run = bt_acme.load_run('runs/bt')
    run.resume(run.actor_steps + 10_000)
    ```
  """
  given = behavior if isinstance(behavior, (list, tuple)) else (behavior,)
  return runs.Run.load(folder, given)
