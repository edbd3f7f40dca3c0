"""Reads what earlier runs have left behind."""

import pathlib
from typing import Sequence, Union

from bt_acme import behaviors
from bt_acme.api import runs
from bt_acme.config import run as run_config


def load_behavior(folder: Union[str, pathlib.Path]) -> behaviors.Exported:
  """Loads a behavior that a run has exported.

  Args:
    folder: the folder, or that of a run of `pretrain`, which holds one.

  Raises:
    ValueError: if the folder is missing, incomplete or damaged.
  """
  exported = run_config.RunConfig(workdir=str(folder)).behavior_folder
  chosen = exported if pathlib.Path(exported).is_dir() else str(folder)
  return behaviors.Exported(chosen, setting='folder')


def load_run(
  folder: Union[str, pathlib.Path],
  behavior: Union[behaviors.Behavior, Sequence[behaviors.Behavior]] = (),
) -> runs.Run:
  """Loads a run in one process; it takes no step until `resume` is called.

  Args:
    folder: its workdir, or what `Run.save` wrote. It becomes the run's workdir.
    behavior: what a run of `transfer` transfers, as it was given then. The run
      itself keeps exported ones, so that only those of your own are needed.

  Raises:
    ValueError: if the folder holds no such run, or if the behaviors are others.
  """
  given = behavior if isinstance(behavior, (list, tuple)) else (behavior,)
  return runs.Run.load(folder, given)
