"""The run of the demo that is a program of several processes.

Replay server, actors, learner and coordinator are processes of their own.
"""

import pathlib
from typing import Dict, List, NamedTuple, Sequence

from bt_acme import assembly
from bt_acme import config as config_lib
from bt_acme.cli import evaluation
from bt_acme.evaluation import logs
from experiments import launching
from experiments.demo import plan as plan_lib


class Learned(NamedTuple):
  """What a run that learned the task has come to.

  Attributes:
    agent: the agent.
    variables: its parameters.
    episodes: metrics of each episode of training, by `actor_steps`.
  """

  agent: assembly.Agent
  variables: assembly.Variables
  episodes: Sequence[Dict[str, float]]


def launch(plan: plan_lib.Plan, folder: pathlib.Path) -> int:
  """Runs `launch/run_bt.py`, or resumes it, or finds that it has ended.

  Args:
    plan: has budget and settings.
    folder: of the demo; the behavior is there.

  Returns:
    The exit code, 0 when the run has ended.
  """
  return launching.launch('run_bt.py', _flags(plan, folder))


def read(plan: plan_lib.Plan, folder: pathlib.Path) -> Learned:
  """Reads what the run that has ended has left."""
  workdir = str(_workdir(plan, folder))
  loaded = evaluation.load(evaluation.EvaluationConfig(workdir=workdir))
  episodes = sorted(
    logs.read_rows(workdir, 'actor'), key=lambda row: row['actor_steps']
  )
  return Learned(loaded.agent, loaded.variables, episodes)


def _workdir(plan: plan_lib.Plan, folder: pathlib.Path) -> pathlib.Path:
  return folder / f'program_{plan.launched.seed}'


def _flags(plan: plan_lib.Plan, folder: pathlib.Path) -> List[str]:
  settings = plan.own_settings(config_lib.BTConfig)
  seed = plan.launched.seed
  return [
    f'--preset={plan_lib.PRESET}',
    *(f'--{name}={value}' for name, value in settings.items()),
    f'--env={plan_lib.TASK}',
    f'--behavior={plan.behavior_folder(seed, folder)}',
    f'--max_actor_steps={plan.task_steps}',
    '--num_evaluators=0',  # The demo plays the task itself, after the end.
    f'--seed={seed}',
    f'--workdir={_workdir(plan, folder)}',
  ]
