"""Reads what earlier runs have left behind."""

import dataclasses
import pathlib
from typing import Sequence, Union

from bt_acme import behaviors
from bt_acme.api import runs
from bt_acme.cli import recorded_agent
from bt_acme.cli import run as run_cli
from bt_acme.config import run as run_config
from bt_acme.runtime import workdir as workdir_lib


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
  workdir = str(folder)
  identity = workdir_lib.read_identity(workdir)
  if identity.get('engine') != run_cli.ENGINE['engine']:
    raise ValueError(
      f'folder={workdir!r} holds a run of many processes: play it with '
      'launch/evaluate.py, or load the behavior that it exported.'
    )
  given = behavior if isinstance(behavior, (list, tuple)) else (behavior,)
  agent = recorded_agent.make(workdir, identity, given)
  run = dataclasses.replace(
    workdir_lib.run_of(workdir, identity), lp_launch_type='in_process'
  )
  return runs.Run.load(
    runs.Request(agent, run, None, workdir_lib.extra(identity), 'auto')
  )
