"""NGU explores without rewards, in the real program of several processes."""

import pathlib
import signal
import subprocess
import sys
from typing import List

from bt_acme import config as config_lib
from experiments.demo import plan as plan_lib

_ROOT = pathlib.Path(__file__).resolve().parents[2]


def launch(plan: plan_lib.Plan, folder: pathlib.Path) -> int:
  """Runs `launch/run_ngu.py`, or resumes it, or finds that it has ended.

  Args:
    plan: has budget and settings.
    folder: of the demo.

  Returns:
    The exit code, 0 when the behavior is complete.
  """
  with subprocess.Popen(_command(plan, folder), cwd=_ROOT) as process:
    # Ctrl-C reaches the script as well as this process, SIGTERM does not.
    handlers = {
      signal.SIGINT: lambda *_: None,
      signal.SIGTERM: lambda signum, _: process.send_signal(signum),
    }
    before = {s: signal.signal(s, handle) for s, handle in handlers.items()}
    code = process.wait()
    for signum, handler in before.items():
      signal.signal(signum, handler)
  return code


def _command(plan: plan_lib.Plan, folder: pathlib.Path) -> List[str]:
  settings = plan.own_settings(config_lib.NGUConfig)
  return [
    sys.executable,
    str(_ROOT / 'launch' / 'run_ngu.py'),
    f'--preset={plan_lib.PRESET}',
    *(f'--{name}={value}' for name, value in settings.items()),
    f'--env={plan_lib.WORLD}',
    f'--max_actor_steps={plan.pretraining_steps}',
    # An evaluator plays for the rewards of a task, and here are none.
    '--num_evaluators=0',
    f'--seed={plan.seeds[0]}',
    f'--workdir={plan.pretraining_folder(folder)}',
  ]
