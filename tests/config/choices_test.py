"""Tests that the choices of a setting match the code that reads it.

`bt_acme.config` does not import the code that it configures, so it contains its
own list of the names.
"""

from bt_acme.config import checks, names
from bt_acme.config.agent import NGUConfig
from bt_acme.core import targets
from bt_acme.core.intrinsic import rewards


def choices(setting):
  return checks.declaration_of(names.settings_of(NGUConfig)[setting]).choices


def test_losses():
  assert set(choices('loss')) == set(targets.TARGETS)


def test_intrinsic_rewards():
  assert set(choices('intrinsic_reward')) == set(rewards.BY_NAME)
