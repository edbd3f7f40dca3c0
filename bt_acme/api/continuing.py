"""Continual learning: a sequence of tasks, whose policies fill a bank."""

import pathlib
import re
from typing import Any, List, Sequence, Union

from bt_acme import config as config_lib
from bt_acme import environments
from bt_acme.api import banks, runs, training
from bt_acme.config import checks, names

PathLike = Union[str, pathlib.Path]


def continual(
  tasks: Sequence[str],
  bank: Union[banks.Bank, PathLike],
  *,
  max_actor_steps: int,
  workdir: PathLike,
  **settings: Any,
) -> List[runs.Run]:
  """Learns tasks one after the other; each policy joins the bank.

  Each run transfers the behaviors that are in the bank when it starts. With an
  empty bank, the first run is one of `train`. The same call continues after an
  interrupt: finished tasks are not repeated.

  Args:
    tasks: the names of the environments, in this order. All need equal
      observation shapes and actions. A task may appear again.
    bank: the bank, or its directory.
    max_actor_steps: the budget of each task.
    workdir: the directory of the workdirs of all runs.
    **settings: any other arguments of `transfer`.

  Returns:
    The runs of all tasks, or up to the one that was stopped.

  Raises:
    ValueError: if a task is unknown or a setting is invalid, or if the bank
      contains a behavior of the same name that these runs did not add.

  Example:
    ```python
    # Takes about four minutes on two cores.
    goals = [f'MiniGrid-FourRooms-v0:fixed=5:goal={k}' for k in range(2)]
    bt_acme.continual(
      goals,
      bt_acme.Bank('runs/goals'),
      max_actor_steps=40_000,
      workdir='runs/continual',
    )
    ```
  """
  checks.require(bool(tasks), 'tasks=[] is empty. Pass at least one task.')
  bank = bank if isinstance(bank, banks.Bank) else banks.Bank(bank)
  done: List[runs.Run] = []
  for number, task in enumerate(tasks):
    name = name_of(number, task)
    folder = pathlib.Path(workdir) / name
    if name in bank.names():
      done.append(_load(folder, name))
      continue
    run = _learn(task, bank, max_actor_steps, folder, settings)
    done.append(run)
    if run.actor_steps < max_actor_steps:
      break
    try:
      bank.add(run, name)
    except KeyboardInterrupt:  # The same call adds the policy.
      break
  return done


def start(settings: Any) -> int:
  """Runs `launch/run_continual.py` with its settings; returns the exit code.

  Raises:
    ValueError: if a setting does not fit continual learning.
  """
  run, given = settings.run, settings.behaviors
  for name in ('behavior', 'behavior_weights'):
    checks.require(
      not getattr(given, name),
      f'{name}={getattr(given, name)!r} does not fit a bank that grows. Remove '
      f'{name}.',
    )
  checks.require(
    run.lp_launch_type == 'in_process',
    f'lp_launch_type={run.lp_launch_type!r} is not supported, because tasks '
    "follow each other in one process. Choose 'in_process'.",
  )
  agent = names.part(settings, config_lib.BTConfig)
  continual(
    environments.names_in(run.env),
    given.bank,
    max_actor_steps=run.max_actor_steps,
    workdir=run.workdir,
    seed=run.seed,
    num_environments=run.num_actors * run.envs_per_actor,
    preset='paper',  # All settings are given.
    **{name: getattr(run, name) for name in training.RUN_SETTINGS},
    **{
      name: value
      for group in names.to_dict(agent).values()
      for name, value in group.items()
    },
  )
  return 0


def name_of(number: int, task: str) -> str:
  """Returns the name of a task's policy in the bank."""
  return f'{number:02d}-' + re.sub('[^0-9a-z]+', '-', task.lower()).strip('-')


def _load(folder: pathlib.Path, name: str) -> runs.Run:
  checks.require(
    folder.is_dir(),
    f'The bank contains {name!r}, but workdir={str(folder.parent)!r} has no '
    'such run. Use the workdir of the earlier call, or another bank.',
  )
  return runs.Run.load(folder)


def _learn(
  task: str,
  bank: banks.Bank,
  max_actor_steps: int,
  workdir: pathlib.Path,
  settings: Any,
) -> runs.Run:
  """Starts or resumes the run of one task."""
  if bank.names():
    return training.transfer(
      task, bank, max_actor_steps=max_actor_steps, workdir=workdir, **settings
    )
  of_transfer = {
    'behavior_weights',
    *names.settings_of(config_lib.BTConfig),
  } - set(names.settings_of(config_lib.R2D2Config))
  return training.train(
    task,
    max_actor_steps=max_actor_steps,
    workdir=workdir,
    **{k: v for k, v in settings.items() if k not in of_transfer},
  )
