"""Behaviors to transfer, by name or by directory: `--behavior`."""

import dataclasses
import os
import pathlib
from typing import List, Tuple, Union

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
    bank: Directory of a bank, whose behaviors are transferred after those of
      `behavior`, in alphabetical order (see bt_acme.Bank).
  """

  behavior: str = ''
  behavior_weights: str = ''
  bank: str = ''

  def __post_init__(self) -> None:
    checks.check(self)

  def expanded(self) -> 'BehaviorsConfig':
    """Returns these settings with the bank's behaviors in `behavior`.

    Raises:
      ValueError: if the bank has no behaviors.
    """
    if not self.bank:
      return self
    checks.require(
      ',' not in self.bank,
      f'bank={self.bank!r} contains a comma. Rename the directory.',
    )
    check_bank(self.bank)
    own = [os.path.join(self.bank, name) for name in in_bank(self.bank)]
    behavior = ','.join([*([self.behavior] if self.behavior else []), *own])
    return dataclasses.replace(self, behavior=behavior, bank='')

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


def in_bank(folder: Union[str, pathlib.Path]) -> List[str]:
  """Returns the names of the behaviors in a bank, in alphabetical order."""
  if not os.path.isdir(folder):
    return []
  found = pathlib.Path(folder).glob('*/behavior.json')
  return sorted(path.parent.name for path in found)


def check_bank(folder: Union[str, pathlib.Path]) -> None:
  """Raises ValueError if a bank has no behaviors."""
  checks.require(
    bool(in_bank(folder)),
    f'bank={str(folder)!r} contains no behaviors. Add one with '
    'bt_acme.Bank.add, or correct the directory.',
  )


def make(
  names: str, transfer: config_lib.TransferConfig
) -> Tuple[behaviors.Behavior, ...]:
  """Creates behaviors.

  Args:
    names: the value of the setting `behavior`.
    transfer: the settings of exported behaviors.

  Raises:
    ValueError: if `names` is empty, or a behavior cannot be loaded.
  """
  known = [*sorted(BUILT_IN), *pretrained.names()]
  checks.require(
    bool(names),
    "behavior='' is empty. Pass a directory that run_ngu.py "
    f'exported, or one of {known}.',
  )
  made: List[behaviors.Behavior] = []
  for name in map(str.strip, names.split(',')):
    if name in BUILT_IN:
      made.append(BUILT_IN[name]())
      continue
    checks.require(
      os.path.isdir(pretrained.resolve(name)),
      f'behavior={names!r}: {name!r} is neither a directory that run_ngu.py '
      f'exported nor one of {known}. Correct the name.',
    )
    made.append(
      behaviors.Exported(
        name,
        epsilon=transfer.behavior_epsilon,
        reward_input=transfer.behavior_reward_input,
      )
    )
  return tuple(made)
