"""The intrinsic rewards by name (`IntrinsicConfig.intrinsic_reward`).

To add a reward, write a file in this directory, register it in the table below,
and add its name to the choices of `IntrinsicConfig.intrinsic_reward`.
"""

from typing import Mapping

from bt_acme import config as config_lib
from bt_acme.core.intrinsic import reward as reward_lib
from bt_acme.core.intrinsic.rewards import constant, ngu, rnd

BY_NAME: Mapping[str, reward_lib.Reward] = {
  'ngu': ngu.REWARD,
  'rnd': rnd.REWARD,
  'constant': constant.REWARD,
}


def for_config(config: config_lib.IntrinsicConfig) -> reward_lib.Reward:
  """Returns the configured reward."""
  return BY_NAME[config.intrinsic_reward]
