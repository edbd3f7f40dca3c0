"""Presets change settings that exist, to values that these take."""

import pytest

from bt_acme import config as config_lib
from bt_acme.config import names, presets
from bt_acme.config import run as run_config

RUN = names.to_dict(run_config.RunConfig())


@pytest.mark.parametrize('name', list(presets.PRESETS))
def test_a_preset_can_be_chosen_with_every_agent(name):
  preset = presets.get(name)
  used = set(preset) & set(RUN)
  run_config.RunConfig(**{k: preset[k] for k in used})
  for config_class in config_lib.AGENTS.values():
    known = set(preset) & set(names.settings_of(config_class))
    names.build(config_class, {k: preset[k] for k in known})
    used |= known
  assert used == set(preset)


def test_a_preset_is_a_copy():
  presets.get('laptop')['batch_size'] = 1
  assert presets.get('laptop')['batch_size'] == 8


def test_what_a_preset_changes_is_described():
  assert 'It changes nothing.' in presets.describe('paper')
  lines = presets.describe('minigrid').splitlines()
  assert lines[0] == 'minigrid, for MiniGrid, on two cores in minutes:'
  assert '  batch_size=16 instead of 64' in lines
  assert '  evaluation_period=20000 instead of 100000' in lines
  assert len(lines) == 1 + len(presets.get('minigrid'))


def test_an_unknown_preset():
  with pytest.raises(
    ValueError, match="preset='labtop' is unknown: did you mean 'laptop'"
  ):
    presets.get('labtop')
