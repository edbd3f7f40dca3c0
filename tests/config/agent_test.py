"""Tests that invalid settings of agents are rejected."""

import dataclasses
import re

import pytest

from bt_acme import config
from bt_acme.cli import evaluation
from bt_acme.config import checks, names
from bt_acme.config import run as run_config
from bt_acme.core import targets
from bt_acme.core.behavior_transfer import flight_laws
from bt_acme.core.intrinsic import rewards

_GROUPS = {
  type(group)
  for config_class in config.AGENTS.values()
  for group in names.groups(config_class).values()
} | {run_config.RunConfig, evaluation.EvaluationConfig}
_FIELDS = [
  (group, field)
  for group in sorted(_GROUPS, key=lambda group: group.__name__)
  for field in dataclasses.fields(group)
]
_IDS = [field.name for _, field in _FIELDS]
_NUMBERS = [
  (group, field.name, type(field.default))
  for group, field in _FIELDS
  if type(field.default) in (int, float)
]


@pytest.mark.parametrize('group, name, kind', _NUMBERS)
def test_every_number_is_finite_bounded_and_representable(group, name, kind):
  for value in (10**30, -(10**30)):
    with pytest.raises(ValueError, match=f'^{name}={value} ') as error:
      group(**{name: value})
    assert '\n' not in str(error.value)
  if kind is float:  # 1e308 and 1e-320 are not representable in float32.
    infinity = float('inf')
    for value in (infinity, -infinity, float('nan'), 1e308, 1e-320):
      with pytest.raises(ValueError, match=re.escape(f'{name}={value} ')):
        group(**{name: value})


@pytest.mark.parametrize('group, field', _FIELDS, ids=_IDS)
def test_every_setting_has_a_type(group, field):
  for value in (None, [], {}, 1.5 if field.type is not float else 'x'):
    with pytest.raises(ValueError, match=f'^{field.name}=.* must be '):
      group(**{field.name: value})


@pytest.mark.parametrize('group, field', _FIELDS, ids=_IDS)
def test_help_is_complete_and_names_every_choice(group, field):
  text = checks.help_of(group)[field.name]
  assert re.fullmatch(r'[A-Z].*\.', text)
  assert len(text.split()) > 4
  for choice in checks.limits_of(field)['choices']:
    shown = f'`{choice}`' if isinstance(choice, str) else f'{choice:g}'
    assert shown in text


_TRANSFER = (
  ({'flight_exponent': 1.0}, 'must exceed 1'),
  (
    {'min_flight_probability': 0.0},
    r'must lie in \(0, 1\]. Use flights=False to disable flights',
  ),
  (
    {'min_flight_probability': 0.2},
    'min_flight_probability=0.2 exceeds max_flight_probability=0.1',
  ),
  (
    {'flights': False, 'flight_priorities': 'learned'},
    "flight_priorities='learned' needs flights",
  ),
  (
    {'kickstarting': 0.5, 'behavior_draws': 'flight'},
    'kickstarting=0.5 needs one behavior for each episode. Set behavior_dr',
  ),
  ({'kickstarting': -0.1}, 'must not be negative'),
  ({'kickstarting_steps': 0}, 'steps=0 must be at'),
  ({'behavior_roles': 'fly,x'}, "role 'x' is unknown"),
  ({'max_flight_length': 0}, '=0 must lie in'),
  ({'max_flight_length': 10**7 + 1}, 'must lie in'),
  ({'flights': False, 'extra_action': False}, 'extra_action=False leave noth'),
  ({'flight_law': 'zet'}, "flight_law='zet' is unknown"),
  ({'flight_law': 'triggered', 'flights': False}, 'needs flights'),
  ({'flight_law': 'jump_start', 'flight_probability': 'epsilon'}, 'no effect'),
  ({'jump_start_rate': 1.0}, 'jump_start_rate=1.0'),
  ({'jump_start_tolerance': 0.0}, 'jump_start_tolerance=0.0'),
  ({'until_agent_margin': -0.1}, 'until_agent_margin=-0.1'),
  ({'promise_steps': 0}, 'promise_steps=0'),
  ({'extra_action': False, 'extra_action_margin': 0.1}, 'action_margin=0.1'),
  (
    {'extra_action': False, 'choice_rule': 'boltzmann'},
    "choice_rule='boltzmann' needs an extra",
  ),
)


@pytest.mark.parametrize(
  'group, values, message',
  [
    (config.NetworkConfig, {'lstm_size': -1}, 'negative. 0 removes the LSTM'),
    (config.NetworkConfig, {'torso': 'big'}, "torso='big' is unknown"),
    (config.NetworkConfig, {'torso_size': 10**30}, 'must not exceed 16,384.'),
    (config.ReplayConfig, {'sequence_period': 3}, '=3 does not divide the len'),
    (config.ReplayConfig, {'min_replay_size': 10**9}, 'would wait forever'),
    (config.ReplayConfig, {'max_priority_weight': 1.1}, r'must lie in \[0, 1'),
    (
      config.LearnerConfig,
      {'batch_size': 6, 'num_devices': 4},
      'batch_size=6 cannot be split evenly over num_devices=4',
    ),
    (config.LearnerConfig, {'num_devices': -1}, 'must not be negative'),
    (config.LearnerConfig, {'behavior_labels': 'all'}, "choose from 'both'"),
    (
      config.LearnerConfig,
      {'learning_rate': 1e308},
      r'\+308 must not exceed 1.',
    ),
    (config.ActingConfig, {'epsilon_alpha': -1.0}, 'must not be negative'),
    (config.IntrinsicConfig, {'min_neighbors': 11}, 'all novelty would be 0'),
    (config.IntrinsicConfig, {'alpha_offset': 0.5}, 'choose from 0.0, 1.0'),
    (config.IntrinsicConfig, {'reward_scale_limit': 0.5}, 'be at least 1'),
    (config.IntrinsicConfig, {'memory_capacity': 10**11}, 'exceed 10,000,000.'),
    *((config.TransferConfig, *row) for row in _TRANSFER),
  ],
)
def test_invalid_settings(group, values, message):
  with pytest.raises(ValueError, match=message):
    group(**values)


@pytest.mark.parametrize('config_class', config.AGENTS.values())
def test_a_batch_larger_than_the_replay(config_class):
  replay = config.ReplayConfig(min_replay_size=5, max_replay_size=64)
  assert config_class(replay=replay).learner.batch_size == 64
  message = 'batch_size=64 exceeds max_replay_size=63, so every'
  with pytest.raises(ValueError, match=message):
    config_class(replay=dataclasses.replace(replay, max_replay_size=63))


def test_more_neighbors_than_the_memory_holds():
  intrinsic = config.IntrinsicConfig(memory_capacity=10)
  assert config.NGUConfig(intrinsic=intrinsic).intrinsic.num_neighbors == 10
  message = 'num_neighbors=11 exceeds memory_capacity=10. Lower'
  with pytest.raises(ValueError, match=message):
    config.NGUConfig(intrinsic=dataclasses.replace(intrinsic, num_neighbors=11))


@pytest.mark.parametrize(
  'setting, known',
  [
    ('loss', targets.TARGETS),
    ('intrinsic_reward', rewards.BY_NAME),
    ('flight_law', flight_laws.BY_NAME),
  ],
)
def test_choices_match_the_code_that_reads_them(setting, known):
  settings = {
    **names.settings_of(config.NGUConfig),
    **names.settings_of(config.BTConfig),
  }
  choices = checks.limits_of(settings[setting])['choices']
  assert set(choices) == set(known)
