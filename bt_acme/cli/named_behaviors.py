"""Behaviors to transfer, by name or by directory: `--behavior`."""

import dataclasses
import os
from typing import List, Tuple

from bt_acme import behaviors
from bt_acme import config as config_lib
from bt_acme.behaviors import pretrained
from bt_acme.config import checks

BUILT_IN = {
  'action_repeat': behaviors.ActionRepeat,
  'uniform': behaviors.Uniform,
}


@dataclasses.dataclass(frozen=True)
class BehaviorsConfig:
  """Settings of the behaviors to transfer.

  Attributes:
    behavior: Comma-separated behaviors to transfer: directories that run_ngu.py
      exported, names of behaviors that come with the package
      (`minigrid-explorer`), addresses of archives with their checksums
      (`https://HOST/NAME.tar.gz#sha256=DIGEST`), `action_repeat` (repeats one
      random action for a whole flight) or `uniform` (acts at random).
    behavior_weights: Comma-separated weights, one per behavior; a flight draws
      its behavior with a probability proportional to its weight. Empty makes
      all behaviors equally likely.
  """

  behavior: str = ''
  behavior_weights: str = ''

  def __post_init__(self) -> None:
    checks.check(self)

  @property
  def weights(self) -> Tuple[float, ...]:
    """The numbers in `behavior_weights`."""
    if not self.behavior_weights:
      return ()
    try:
      return tuple(float(w) for w in self.behavior_weights.split(','))
    except ValueError as error:
      raise ValueError(
        f'behavior_weights={self.behavior_weights!r} must be comma-separated '
        'numbers.'
      ) from error


def make(
  config: BehaviorsConfig, transfer: config_lib.TransferConfig
) -> List[behaviors.Behavior]:
  """Creates the behaviors listed in `config.behavior`.

  Args:
    config: the behaviors to create.
    transfer: the settings of exported behaviors.

  Raises:
    ValueError: if `behavior` is empty, or a behavior cannot be loaded.
  """
  if not config.behavior:
    raise ValueError(
      "behavior='' is empty. Pass a directory that run_ngu.py "
      f'exported, or one of {_names()}.'
    )
  return [
    _make_one(name.strip(), config, transfer)
    for name in config.behavior.split(',')
  ]


def _names() -> List[str]:
  return [*sorted(BUILT_IN), *pretrained.names()]


def _make_one(
  name: str, config: BehaviorsConfig, transfer: config_lib.TransferConfig
) -> behaviors.Behavior:
  if name in BUILT_IN:
    return BUILT_IN[name]()
  if os.path.isdir(pretrained.resolve(name)):
    return behaviors.Exported(
      name,
      epsilon=transfer.behavior_epsilon,
      reward_input=transfer.behavior_reward_input,
    )
  raise ValueError(
    f'behavior={config.behavior!r}: {name!r} is neither a directory that '
    f'run_ngu.py exported nor one of {_names()}. Correct the name.'
  )
