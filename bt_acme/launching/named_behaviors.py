"""Behaviors to transfer, by name or by directory: `--behavior`."""

import dataclasses
import os
import pathlib
from typing import Any

from bt_acme import behaviors
from bt_acme import config as config_lib
from bt_acme.behaviors import lookup
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

  def listed(self) -> list[Any]:
    """Returns `behavior`, if given, and the bank's behaviors, for `make`.

    Raises:
      ValueError: if the bank has no behaviors.
    """
    if not self.bank:
      return [self.behavior]
    return [*filter(None, [self.behavior]), *load_bank(self.bank)]

  @property
  def weights(self) -> tuple[float, ...]:
    """The numbers in `behavior_weights`."""
    return checks.numbers_in('behavior_weights', self.behavior_weights, float)


def load_bank(folder: str | pathlib.Path) -> list[behaviors.Exported]:
  """Returns the behaviors in a bank, in alphabetical order.

  Raises:
    ValueError: if there are none, or if one of them cannot be loaded.
  """
  names = lookup.found_in(folder)
  checks.require(
    bool(names),
    f'bank={str(folder)!r} contains no behaviors. Add one with '
    'bt_acme.Bank.add, or correct the directory.',
  )
  return [
    behaviors.Exported(os.path.join(folder, name), setting='bank')
    for name in names
  ]


def make(
  given: Any, transfer: config_lib.TransferConfig
) -> tuple[behaviors.Behavior, ...]:
  """Creates behaviors.

  Args:
    given: a behavior, its name, directory or address, several of these in a
      text, separated by commas, or a list of all these.
    transfer: the settings of exported behaviors.

  Raises:
    ValueError: if `given` contains anything else, or a behavior cannot be
      loaded.
  """
  if isinstance(given, (list, tuple)):
    return tuple(made for each in given for made in make(each, transfer))
  if isinstance(given, behaviors.Exported):
    acting = given.acting(
      epsilon=transfer.behavior_epsilon,
      reward_input=transfer.behavior_reward_input,
    )
    return (acting,)
  if isinstance(given, behaviors.Behavior):
    # A run records such a behavior by its name.
    checks.check_value('name', given.name, checks.setting(''))
    checks.require(
      BUILT_IN.get(given.name, type(given)) is type(given),
      f'name={given.name!r} is that of a built-in behavior. Choose another '
      'name.',
    )
    return (given,)
  checks.require(
    isinstance(given, (str, pathlib.Path)),
    f'behavior={given!r} is not a behavior. Pass the result of Run.export for '
    'a run, Bank.behaviors() for a bank among others, or '
    'bt_acme.behaviors.FromCallable for a function.',
  )
  texts = given.split(',') if isinstance(given, str) else [str(given)]
  return make([load(text.strip()) for text in texts], transfer)


def load(name: str) -> behaviors.Behavior:
  """Returns the behavior with a name, directory or address.

  An exported behavior still has its own settings; `make` replaces them.
  """
  if name in BUILT_IN:
    return BUILT_IN[name]()
  checks.require(
    bool(name) and os.path.isdir(lookup.resolve(name)),
    f'behavior={name!r} is neither a directory that run_ngu.py exported nor '
    f'one of {[*sorted(BUILT_IN), *lookup.names()]}. Correct the name.',
  )
  return behaviors.Exported(name)
