"""`--behavior`: the behaviors to transfer, by name or by folder."""

import dataclasses
import os
from typing import List, Tuple

from bt_acme import behaviors
from bt_acme import config as config_lib
from bt_acme.config import checks

BUILT_IN = {
  'action_repeat': behaviors.ActionRepeat,
  'uniform': behaviors.Uniform,
}


@dataclasses.dataclass(frozen=True)
class BehaviorsConfig:
  """The behaviors that the agent brings along."""

  behavior: str = checks.setting(
    '',
    'The behaviors to transfer, separated by commas: folders that run_ngu.py '
    'exported, `action_repeat` (which repeats one random action for a whole '
    'flight) or `uniform` (which acts at random).',
  )
  behavior_weights: str = checks.setting(
    '',
    'A flight draws its behavior in proportion to these weights, one for each '
    'behavior, separated by commas. Without weights all are equally likely.',
  )

  def __post_init__(self) -> None:
    checks.check(self)

  @property
  def weights(self) -> Tuple[float, ...]:
    """The numbers that `behavior_weights` lists."""
    if not self.behavior_weights:
      return ()
    try:
      return tuple(float(w) for w in self.behavior_weights.split(','))
    except ValueError as error:
      raise ValueError(
        f'behavior_weights={self.behavior_weights!r} must be numbers separated '
        'by commas.'
      ) from error


def make(
  config: BehaviorsConfig, transfer: config_lib.TransferConfig
) -> List[behaviors.Behavior]:
  """Makes the behaviors that `behavior` names.

  Args:
    config: which behaviors to make.
    transfer: how an exported behavior acts.

  Raises:
    ValueError: if it names none, or one that cannot be loaded.
  """
  if not config.behavior:
    raise ValueError(
      "behavior='' names nothing to transfer: give a folder that run_ngu.py "
      f'exported, or one of {sorted(BUILT_IN)}.'
    )
  return [
    _make_one(name.strip(), config, transfer)
    for name in config.behavior.split(',')
  ]


def _make_one(
  name: str, config: BehaviorsConfig, transfer: config_lib.TransferConfig
) -> behaviors.Behavior:
  if name in BUILT_IN:
    return BUILT_IN[name]()
  if os.path.isdir(name):
    return behaviors.Exported(
      name,
      epsilon=transfer.behavior_epsilon,
      reward_input=transfer.behavior_reward_input,
    )
  raise ValueError(
    f'behavior={config.behavior!r}: {name!r} is neither a folder that '
    f'run_ngu.py exported nor one of {sorted(BUILT_IN)}.'
  )
