"""Tests that settings are found by name and that errors suggest valid names."""

import dataclasses

import pytest

from bt_acme import config as config_lib
from bt_acme.config import names


def test_a_group_keeps_the_defaults_that_its_agent_gives_it():
  assert names.defaults_of(config_lib.NGUConfig)['loss'] == 'retrace'
  built = names.build(config_lib.NGUConfig, {'batch_size': 8, 'rnd_size': 4})
  assert built.learner == dataclasses.replace(
    config_lib.NGUConfig().learner, batch_size=8
  )
  assert built.intrinsic.rnd_size == 4
  nested = {'learner': {'batch_size': 8}, 'intrinsic': {'rnd_size': 4}}
  assert names.from_dict(config_lib.NGUConfig, nested) == built
  # Related settings are set together.
  periods = {'trace_length': 7, 'sequence_period': 7}
  built = names.build(config_lib.R2D2Config, periods)
  assert built.replay.sequence_length == 7


def test_an_unknown_setting():
  message = "^R2D2Config has no setting named 'bacth_size': .*'batch_size'"
  with pytest.raises(ValueError, match=message):
    names.build(config_lib.R2D2Config, {'bacth_size': 1})
  stored = names.to_dict(config_lib.R2D2Config())
  stored['learner']['bacth_size'] = 1
  with pytest.raises(ValueError, match="LearnerConfig .* mean 'batch_size'"):
    names.from_dict(config_lib.R2D2Config, stored)


def test_suggestions():
  assert names.suggest('pont', ('pong', 'hero')) == (
    "did you mean 'pong'? Choose from 'pong', 'hero'."
  )
  many = [f'pong{i}' for i in range(20)]
  assert names.suggest('pong19x', many) == "did you mean 'pong19'?"
  assert names.suggest('x', ('pong', 'hero')) == "choose from 'pong', 'hero'."
  assert names.suggest(0.5, (0, 1)) == 'choose from 0, 1.'
