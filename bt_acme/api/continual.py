"""Continual learning: a sequence of tasks, whose policies fill a bank."""

import inspect
import os
import pathlib
import re
import signal
from collections.abc import Mapping, Sequence
from typing import Any

from bt_acme import assembly, behaviors, environments
from bt_acme import config as config_lib
from bt_acme.api import banks, runs, training
from bt_acme.behaviors import exported_folder
from bt_acme.config import checks, names
from bt_acme.evaluation import tables
from bt_acme.launching import starting
from bt_acme.runtime import interrupts, output, resume_checks
from bt_acme.runtime import workdir as workdir_lib


def continual(
  tasks: Sequence[str],
  bank: banks.Bank | runs.PathLike,
  *,
  max_actor_steps: int,
  workdir: runs.PathLike,
  **settings: Any,
) -> list[runs.Run]:
  """Learns tasks one after the other; each policy joins the bank.

  Each run transfers the behaviors that are in the bank when it starts. With an
  empty bank, the first run is one of `train`. The same call continues after an
  interrupt (see `pretrain`): finished tasks are not repeated.

  Args:
    tasks: the names of the environments, in this order. All need equal
      observation shapes and actions. A task may appear again.
    bank: the bank, or its directory.
    max_actor_steps: the budget of each task.
    workdir: the directory of the workdirs of all runs.
    **settings: any other arguments of `transfer`. A callback that stops a run
      also ends the sequence, and the policy does not join the bank.

  Returns:
    The runs of all tasks, or up to the one that was stopped.

  Raises:
    ValueError: before anything starts, if a task is unknown, a setting is
      invalid or differs from that of a finished task, or tasks and bank do not
      fit together; also if the bank contains a behavior of the same name that
      these runs did not add.

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
  bank = bank if isinstance(bank, banks.Bank) else banks.Bank(bank)
  settings['max_actor_steps'] = max_actor_steps
  _check(tasks, bank, workdir, settings)
  folders = [
    pathlib.Path(workdir) / name_of(number, task)
    for number, task in enumerate(tasks)
  ]
  finished: dict[str, runs.Run] = {}
  for task, folder in zip(tasks, folders, strict=True):
    if folder.name in bank.names():
      finished[folder.name] = _finished(bank, folder, task, settings)
    else:
      _check_unused(bank, folder.name)
  done: list[runs.Run] = []
  for task, folder in zip(tasks, folders, strict=True):
    if folder.name in finished:
      done.append(finished[folder.name])
      continue
    done.append(_prepare(task, bank.behaviors(), folder, settings).resume())
    if done[-1].exit_code:
      break
    try:
      with interrupts.handled([signal.SIGINT], _interrupt):
        bank.add(done[-1], folder.name)
    except KeyboardInterrupt:  # The same call adds the policy.
      break
    except ValueError:
      _check_unused(bank, folder.name)  # Another run may share the bank.
      raise
  return done


def _interrupt(signum: signal.Signals) -> None:
  """Interrupts in launch scripts, too, whose handler ends them at once."""
  raise KeyboardInterrupt


def start(settings: Any) -> int:
  """Runs `launch/run_continual.py` with its settings; returns the exit code.

  Raises:
    ValueError: if a setting does not fit continual learning.
  """
  run, given = settings.run, settings.behaviors
  for name in ('behavior', 'behavior_weights'):
    _refuse(name, getattr(given, name))
  checks.require(
    run.lp_launch_type == 'in_process',
    f"lp_launch_type={run.lp_launch_type!r} is invalid. Use 'in_process'.",
  )
  agent = names.part(settings, config_lib.BTConfig)
  tasks = environments.names_in(run.env)
  try:
    done = continual(
      tasks,
      given.bank,
      max_actor_steps=run.max_actor_steps,
      workdir=run.workdir,
      seed=run.seed,
      num_environments=run.num_actors * run.envs_per_actor,
      preset='paper',  # All settings are given.
      **{name: getattr(run, name) for name in training.RUN_SETTINGS},
      **names.flat(agent),
    )
  except SystemExit:  # After a signal other than Ctrl-C.
    output.show('Stopped; state saved. Rerun the same command to resume.')
    raise
  last = done[-1]
  name = name_of(len(done) - 1, last.agent.spec.name)
  is_added = name in banks.Bank(given.bank).names()
  code = last.exit_code or (
    0 if is_added else interrupts.exit_code(signal.SIGINT)
  )
  if code:
    steps = tables.counted(last.actor_steps, 'actor step')
    output.show(
      f'Stopped after {steps} of task {len(done)} of {len(tasks)}; state '
      'saved. Rerun the same command to resume.'
    )
  else:
    learned = tables.counted(len(done), 'task')
    output.show(f'Learned {learned}. {given.bank} contains the policies.')
  return code


def name_of(number: int, task: str) -> str:
  """Returns the name of a task's policy in the bank."""
  return f'{number:02d}-' + re.sub('[^0-9a-z]+', '-', task.lower()).strip('-')


def _refuse(name: str, value: Any) -> None:
  checks.require(
    not value,
    f'{name}={value!r} does not fit a bank that grows. Remove {name}.',
  )


def _check(
  tasks: Sequence[str],
  bank: banks.Bank,
  workdir: runs.PathLike,
  settings: Mapping[str, Any],
) -> None:
  """Checks what would otherwise fail only after a task has been learned."""
  checks.require(
    isinstance(tasks, (list, tuple)) and bool(tasks),
    f'tasks={tasks!r} is not a list of tasks. Pass a list with at least one.',
  )
  for task in tasks:
    checks.require(
      isinstance(task, str) and ',' not in task,
      f'tasks contains {task!r}, which is not the name of one environment. '
      'Correct the name.',
    )
  for name in ('env', 'behavior', 'behavior_weights', 'behavior_roles'):
    _refuse(name, settings.get(name))
  checks.require(
    checks.path('workdir', workdir).resolve() != bank.folder.resolve(),
    f'workdir={str(workdir)!r} is the directory of the bank. Choose another.',
  )
  # The last run transfers the policies of all tasks before its own. Those of
  # finished tasks are in the bank; others stand for the rest.
  names_of = [name_of(number, task) for number, task in enumerate(tasks)]
  missing = set(names_of) - set(bank.names())
  policies: list[behaviors.Behavior] = []
  if missing:
    rest = [behaviors.ActionRepeat()] * (len(missing) - 1)
    policies = [*bank.behaviors(), *rest]
  _prepare(
    ','.join(tasks), policies or [behaviors.ActionRepeat()], workdir, settings
  )


def _check_unused(bank: banks.Bank, name: str) -> None:
  """Raises ValueError if a bank contains a name, which another run added."""
  checks.require(
    not os.path.lexists(bank.folder / name),
    f'bank={str(bank.folder)!r} already contains {name!r} of another run. '
    'Choose another bank.',
  )


def _finished(
  bank: banks.Bank, folder: pathlib.Path, task: str, settings: Mapping[str, Any]
) -> runs.Run:
  """Loads the run of a task whose policy is in the bank."""
  steps = workdir_lib.completed_steps(str(folder))
  if not steps:
    _check_unused(bank, folder.name)
  run = runs.load_run(folder)
  added = behaviors.Exported(str(bank.folder / folder.name), setting='bank')
  _, own = assembly.without_behaviors(run.agent, run.variables)
  # The recorded checksum may depend on the versions of Python and NumPy.
  if exported_folder.checksum(added.variables) != exported_folder.checksum(own):
    checks.require(
      added.actor_steps >= run.actor_steps,
      f'workdir={str(folder)!r} continued to {run.actor_steps} actor steps, '
      f'but its policy in the bank has {added.actor_steps}. Choose another '
      'bank.',
    )
    _check_unused(bank, folder.name)
  checks.require(
    steps >= settings['max_actor_steps'],
    f'The bank contains {folder.name!r}, which learned with max_actor_steps='
    f'{steps}, not with {settings["max_actor_steps"]}. Keep the budget, or use '
    'another bank and workdir.',
  )
  # The bank may contain more behaviors than when the run was started.
  same = _prepare(task, run.agent.behaviors, folder, settings)
  config, identity = same.agent.config, same._options['identity']
  recorded = workdir_lib.read_identity(str(folder))
  wanted = resume_checks.identity_of(
    same._config, config, {**identity, **starting.ENGINE}
  )
  resume_checks.check(str(folder), recorded, wanted, type(config))
  return run


def _prepare(
  env: str,
  behavior: Sequence[behaviors.Behavior],
  workdir: runs.PathLike,
  settings: Mapping[str, Any],
) -> runs.Run:
  """Returns a run of `transfer`, or of `train` if there is no behavior."""
  config_class = config_lib.BTConfig if behavior else config_lib.R2D2Config
  arguments = {**settings, 'env': env, 'behavior': behavior, 'workdir': workdir}
  if not behavior:
    of_transfer = config_lib.TransferConfig.__dataclass_fields__
    for name in ('behavior', 'behavior_weights', 'extra_init', *of_transfer):
      arguments.pop(name, None)
  call = inspect.signature(training.FUNCTIONS[config_class]).bind(**arguments)
  call.apply_defaults()
  return training.prepare(config_class, **call.arguments)
