"""Tests that presets change existing settings to valid values."""

import dataclasses
import inspect

import pytest

import bt_acme
from bt_acme import config as config_lib
from bt_acme.config import names, presets
from bt_acme.config import run as run_config


@dataclasses.dataclass(frozen=True)
class _RunSettings:
  run: run_config.RunConfig = run_config.RunConfig()


RUN = names.to_dict(run_config.RunConfig())


@pytest.mark.parametrize('name', list(presets.PRESETS))
def test_a_preset_can_be_chosen_with_every_agent(name):
  preset = presets.PRESETS[name]
  everything = {name: value for name, value, _ in preset.all_settings}
  used = set(everything) & set(RUN)
  run_config.RunConfig(**{k: everything[k] for k in used})
  for config_class in config_lib.AGENTS.values():
    chosen = presets.get(name, config_class)
    names.build(config_class, chosen)
    used |= set(chosen)
  assert used == set(everything)
  transfer = vars(config_lib.TransferConfig())
  assert set(preset.reasons) <= set(everything) | set(transfer)


def test_settings_for_a_task_are_left_out_in_pre_training():
  pretraining, task = (
    names.build(config_class, presets.get('minigrid', config_class)).learner
    for config_class in (config_lib.NGUConfig, config_lib.R2D2Config)
  )
  assert pretraining.loss == 'retrace'
  assert (pretraining.trace_decay, pretraining.discount) == (0.95, 0.9)
  assert (task.trace_decay, task.discount) == (0.9, 0.97)
  assert pretraining.batch_size == task.batch_size
  assert presets.get('minigrid', config_lib.BTConfig)['discount'] == 0.97


def test_settings_of_nodes_are_left_out_in_one_process():
  given = {'lp_launch_type': 'in_process'}
  assert presets.get('gpu', _RunSettings)['inference'] == 'server'
  chosen = presets.get('gpu', _RunSettings, given)
  assert names.build(_RunSettings, {**chosen, **given}).run.num_evaluators == 2


def test_launched_runs_have_as_many_environments_as_those_of_the_library():
  settings = presets.get('minigrid', _RunSettings)
  run = names.build(_RunSettings, settings).run
  parameters = inspect.signature(bt_acme.transfer).parameters
  assert run.num_environments == parameters['num_environments'].default


def test_the_changes_of_a_preset_are_described():
  assert 'No changes.' in presets.describe('paper')
  lines = presets.describe('minigrid').splitlines()
  assert lines[0] == 'minigrid, for MiniGrid, on two cores in minutes:'
  assert {
    '  batch_size=16 instead of 64',
    '    A run has few steps to learn from, and few of them earn a reward.',
    '  evaluation_period=20000 instead of 100000',
    '  discount=0.9 instead of 0.99, in pre-training',
    '  discount=0.97 instead of 0.99, not in pre-training',
  } <= set(lines)


def test_an_unknown_preset(capsys):
  message = "preset='labtop' is unknown: did you mean 'laptop'"
  with pytest.raises(ValueError, match=message):
    presets.get('labtop', config_lib.R2D2Config)
  with pytest.raises(SystemExit, match='2'):
    presets.main(['labtop'])
  assert message in capsys.readouterr().err


def test_the_named_presets_are_printed(capsys):
  presets.main(['paper'])
  assert capsys.readouterr().out == presets.describe('paper') + '\n'
