"""NGU explores without rewards, in the real program of several processes."""

import pathlib
from typing import List

from bt_acme import config as config_lib
from experiments import launching
from experiments.demo import plan as plan_lib


def launch(plan: plan_lib.Plan, folder: pathlib.Path) -> int:
  """Runs `launch/run_ngu.py`, or resumes it, or finds that it has ended.

  Args:
    plan: has budget and settings.
    folder: of the demo.

  Returns:
    The exit code, 0 when the behavior is complete.
  """
  return launching.launch('run_ngu.py', _flags(plan, folder))


def _flags(plan: plan_lib.Plan, folder: pathlib.Path) -> List[str]:
  settings = plan.own_settings(config_lib.NGUConfig)
  return [
    f'--preset={plan_lib.PRESET}',
    *(f'--{name}={value}' for name, value in settings.items()),
    f'--env={plan_lib.WORLD}',
    f'--max_actor_steps={plan.pretraining_steps}',
    # An evaluator plays for the rewards of a task, and here are none.
    '--num_evaluators=0',
    f'--seed={plan.seeds[0]}',
    f'--workdir={plan.pretraining_folder(folder)}',
  ]
