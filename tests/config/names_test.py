"""Tests that settings are found by name and that errors suggest valid names."""

import dataclasses

import pytest

from bt_acme import config as config_lib
from bt_acme.config import names

CONFIGS = list(config_lib.AGENTS.values())


@pytest.mark.parametrize('config_class', CONFIGS)
def test_defaults_build_the_configuration(config_class):
  assert names.build(config_class, {}) == config_class()
  defaults = names.defaults_of(config_class)
  assert list(defaults) == list(names.settings_of(config_class))
  assert names.build(config_class, defaults) == config_class()


def test_a_group_keeps_the_defaults_that_its_agent_gives_it():
  assert names.defaults_of(config_lib.NGUConfig)['loss'] == 'retrace'
  built = names.build(config_lib.NGUConfig, {'batch_size': 8, 'rnd_size': 4})
  assert built.learner == dataclasses.replace(
    config_lib.NGUConfig().learner, batch_size=8
  )
  assert built.intrinsic.rnd_size == 4


def test_related_settings_are_set_together():
  built = names.build(
    config_lib.R2D2Config, {'trace_length': 7, 'sequence_period': 7}
  )
  assert built.replay.sequence_length == 7


@pytest.mark.parametrize(
  'name, message',
  [
    ('bacth_size', "R2D2Config has no setting named 'bacth_size': did you mean "
     "'batch_size'?"),
    ('qqq', "R2D2Config has no setting named 'qqq'."),
  ],
)  # fmt: skip
def test_an_unknown_setting(name, message):
  with pytest.raises(ValueError) as error:
    names.build(config_lib.R2D2Config, {name: 1})
  assert str(error.value) == message


def test_an_unknown_setting_of_a_stored_configuration():
  stored = names.to_dict(config_lib.R2D2Config())
  stored['learner']['bacth_size'] = 1
  with pytest.raises(ValueError, match="LearnerConfig .* mean 'batch_size'"):
    names.from_dict(config_lib.R2D2Config, stored)


@pytest.mark.parametrize('config_class', CONFIGS)
def test_a_configuration_is_stored_and_read(config_class):
  config = names.build(config_class, {'batch_size': 3, 'double_q': False})
  assert names.from_dict(config_class, names.to_dict(config)) == config


def test_suggestions():
  assert names.suggest('pont', ('pong', 'hero')) == (
    "did you mean 'pong'? Choose from 'pong', 'hero'."
  )
  many = [f'pong{i}' for i in range(20)]
  assert names.suggest('pong19x', many) == "did you mean 'pong19'?"
  assert names.suggest('x', ('pong', 'hero')) == "choose from 'pong', 'hero'."
  assert names.suggest(0.5, (0, 1)) == 'choose from 0, 1.'
