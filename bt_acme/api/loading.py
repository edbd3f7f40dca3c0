"""Reads what earlier runs have left behind."""

import pathlib
from typing import Sequence, Union

from bt_acme import assembly, behaviors
from bt_acme import config as config_lib
from bt_acme.api import runs
from bt_acme.config import run as run_config
from bt_acme.runtime import in_process_program
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
    behavior: what a run of `transfer` transfers, as it was given then.

  Raises:
    ValueError: if the folder holds no such run, or if the behaviors are others.
  """
  identity = dict(workdir_lib.read_identity(str(folder)))
  if identity.pop('engine', '') != in_process_program.ENGINE['engine']:
    raise ValueError(
      f'folder={str(folder)!r} holds a run of many processes: play it with '
      'launch/evaluate.py, or load the behavior that it exported.'
    )
  given = behavior if isinstance(behavior, (list, tuple)) else (behavior,)
  transferred = tuple(given)
  given_names = [each.name for each in transferred]
  recorded = identity.get('behaviors', [])
  if given_names != recorded:
    raise ValueError(
      f'behavior={given_names}, but the run in {str(folder)!r} transfers '
      f'{recorded}: give the behaviors of that run, in that order.'
    )
  config = config_lib.from_dict(
    config_lib.AGENTS[identity.pop('agent')], identity.pop('config')
  )
  run = run_config.RunConfig(**{**identity.pop('run'), 'workdir': str(folder)})
  agent = assembly.Agent(
    config,
    assembly.spec_by_name(run.env, num_stacked=run.num_stacked),
    transferred,
    tuple(identity.get('behavior_weights', ())),
  )
  return runs.Run(
    runs.Request(agent, run, None, identity, 'auto'), continues=False
  )
