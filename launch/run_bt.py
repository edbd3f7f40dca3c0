"""Learns a task with R2D2 and Behavior Transfer.

  python launch/run_bt.py --behavior=runs/ngu/behavior \
    --env=MiniGrid-MultiRoom-N4-S5-v0 --preset=minigrid \
    --max_actor_steps=100000 --workdir=runs/bt

With --behavior=action_repeat and --extra_action=false this is ez-greedy R2D2.
Ctrl-C ends a run, and the same command resumes it.
"""

import dataclasses
from typing import List, Tuple

from bt_acme import behaviors
from bt_acme import config as config_lib
from bt_acme import flags
from bt_acme import run_config
from bt_acme import run_script
from bt_acme.agents import BTBuilder
from bt_acme.agents import R2D2Builder

_BUILT_IN = {
  'action_repeat': behaviors.ActionRepeat,
  'uniform': behaviors.Uniform,
}


@dataclasses.dataclass(frozen=True)
class BehaviorsConfig:
  """What the agent brings along.

  Attributes:
    behavior: folders that run_ngu.py exported, separated by commas; or
      `action_repeat` (one random action a flight) or `uniform`.
    behavior_weights: with which a flight draws one of several, separated by
      commas; uniform if empty.
  """

  behavior: str = ''
  behavior_weights: str = ''


@dataclasses.dataclass(frozen=True)
class Settings(config_lib.BTConfig):
  """All settings of this script."""

  run: run_config.RunConfig = run_config.RunConfig(workdir='runs/bt')
  behaviors: BehaviorsConfig = BehaviorsConfig()
  weights: run_script.WeightsConfig = run_script.WeightsConfig()


def make_behaviors(
  names: str, transfer: config_lib.TransferConfig
) -> List[behaviors.Behavior]:
  """The behaviors that --behavior names."""
  if not names:
    raise ValueError(
      "behavior='' names nothing to transfer: give a folder that run_ngu.py "
      f'exported, or one of {sorted(_BUILT_IN)}.'
    )
  return [
    _BUILT_IN[name]()
    if name in _BUILT_IN
    else behaviors.Exported(
      name,
      epsilon=transfer.behavior_epsilon,
      reward_input=transfer.behavior_reward_input,
    )
    for name in names.split(',')
  ]


def parse_weights(weights: str) -> Tuple[float, ...]:
  """The numbers that --behavior_weights lists."""
  try:
    return tuple(float(w) for w in weights.split(',') if w)
  except ValueError as error:
    raise ValueError(
      f'behavior_weights={weights!r} must be numbers separated by commas.'
    ) from error


def main(argv):
  del argv
  settings = run_script.settings(Settings)
  config = run_script.config_of(config_lib.BTConfig, settings)
  run = settings.run
  base = R2D2Builder(
    run_script.config_of(config_lib.R2D2Config, settings),
    run_script.environment_spec(run),
  )
  builder = BTBuilder(
    base,
    make_behaviors(settings.behaviors.behavior, config.transfer),
    config.transfer,
    behavior_weights=parse_weights(settings.behaviors.behavior_weights),
  )
  return run_script.launch(
    run,
    builder,
    initial_params=run_script.initial_params(
      settings.weights, builder.agent, run.seed
    ),
    identity={
      'behaviors': dataclasses.asdict(settings.behaviors),
      'weights': dataclasses.asdict(settings.weights),
    },
  )


if __name__ == '__main__':
  run_script.define(Settings)
  flags.run_main(main, Settings)
