"""Configurations of the three agents: groups of settings and their defaults.

The defaults follow the paper (Campos et al. 2021, arXiv:2102.13515, App. A) and
the papers on which it builds (R2D2, NGU, Agent57). If the paper does not
specify a value, the help of the setting says so.
"""

import dataclasses
from collections.abc import Mapping

from bt_acme.config import checks, names
from bt_acme.config.acting import ActingConfig
from bt_acme.config.intrinsic import IntrinsicConfig
from bt_acme.config.learner import LearnerConfig, NGULearnerConfig
from bt_acme.config.network import NetworkConfig
from bt_acme.config.replay import ReplayConfig
from bt_acme.config.transfer import TransferConfig


@dataclasses.dataclass(frozen=True)
class R2D2Config:
  """R2D2, which learns a task with Peng's Q(lambda).

  Example:
    ```python
    from bt_acme import config

    config.R2D2Config(learner=config.LearnerConfig(discount=0.997))
    ```
  """

  network: NetworkConfig = NetworkConfig()
  replay: ReplayConfig = ReplayConfig()
  learner: LearnerConfig = LearnerConfig()
  acting: ActingConfig = ActingConfig()

  def __post_init__(self) -> None:
    checks.require_order(names.flat(self), 'batch_size', 'max_replay_size')


@dataclasses.dataclass(frozen=True)
class NGUConfig(R2D2Config):
  """NGU, for pre-training: R2D2 with Retrace and an intrinsic reward.

  Example:
    ```python
    from bt_acme import config

    config.NGUConfig(intrinsic=config.IntrinsicConfig(intrinsic_reward='rnd'))
    ```
  """

  learner: LearnerConfig = NGULearnerConfig()
  intrinsic: IntrinsicConfig = IntrinsicConfig()

  def __post_init__(self) -> None:
    super().__post_init__()
    checks.require(
      isinstance(self.learner, NGULearnerConfig),
      'learner=LearnerConfig(...) has the loss and the trace decay of R2D2. '
      'Use NGULearnerConfig, which has those of NGU.',
    )
    checks.require_order(names.flat(self), 'num_neighbors', 'memory_capacity')


@dataclasses.dataclass(frozen=True)
class BTConfig(R2D2Config):
  """R2D2 with behavior transfer.

  Example:
    ```python
    from bt_acme import config

    config.BTConfig(transfer=config.TransferConfig(flight_exponent=1.5))
    ```
  """

  transfer: TransferConfig = TransferConfig()


# Keys are the names stored in workdirs and exported behaviors.
AGENTS: Mapping[str, type[R2D2Config]] = {
  config_class.__name__: config_class
  for config_class in (R2D2Config, NGUConfig, BTConfig)
}
