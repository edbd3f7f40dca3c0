"""Tests that invalid settings of agents and runs are rejected."""

import dataclasses
import re

import pytest

from bt_acme import config
from bt_acme.cli import evaluation
from bt_acme.config import checks, names
from bt_acme.config import run as run_config
from bt_acme.core import networks, targets
from bt_acme.core.behavior_transfer import flight_laws
from bt_acme.core.intrinsic import rewards

_GROUPS = {
  type(group)
  for config_class in config.AGENTS.values()
  for group in vars(config_class()).values()
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


_RAY = {'lp_launch_type': 'ray'}


@pytest.mark.parametrize(
  'values, message',
  [
    ({'lstm_size': -1}, 'negative. 0 removes the LSTM'),
    ({'sequence_period': 3}, '=3 does not divide the len'),
    ({'min_replay_size': 10**9}, 'exceeds max_replay_size'),
    (
      {'batch_size': 6, 'num_devices': 4},
      'batch_size=6 cannot be split evenly over num_devices=4',
    ),
    ({'min_neighbors': 11}, 'exceeds num_neighbors=10'),
    (
      {'min_flight_probability': 0.0},
      r'must lie in \(0, 1\]. Use flights=False to disable flights',
    ),
    (
      {'min_flight_probability': 0.2},
      'min_flight_probability=0.2 exceeds max_flight_probability=0.1',
    ),
    (
      {'kickstarting': 0.5, 'behavior_draws': 'flight'},
      'kickstarting=0.5 needs one behavior for each episode. Set behavior_',
    ),
    ({'behavior_roles': 'fly,x'}, "role 'x' is unknown"),
    ({'flights': False, 'extra_action': False}, 'extra_action=False leave'),
    ({'flight_law': 'jump_start', 'flight_probability': 'epsilon'}, 'no eff'),
    *(
      ({needed: False, name: value}, f'no effect with {needed}=False')
      for needed, name, value in (
        ('flights', 'flight_priorities', 'learned'),
        ('flights', 'flight_law', 'triggered'),
        ('flights', 'flight_epsilon', 0.3),
        ('flights', 'flight_recurrent_state', 'hold'),
        ('extra_action', 'extra_action_margin', 0.1),
        ('extra_action', 'choice_rule', 'boltzmann'),
      )
    ),
    *(
      ({name: value}, f'{name}={value!r} has no effect with {without}')
      for name, value, without in (
        ('choice_temperature', 0.2, "choice_rule='greedy'"),
        ('jump_start_window', 6, "flight_law='zeta'"),
        ('until_agent_margin', 0.1, "flight_law='zeta'"),
        ('promise_steps', 6, "flight_law='zeta'"),
        ('priority_signal', 'return', "flight_priorities='fixed'"),
        ('kickstarting_steps', 6, 'kickstarting=0'),
        ('constant_reward', 2.0, "intrinsic_reward='ngu'"),
      )
    ),
    ({'seed': 2**32}, 'seed=4294967296 must lie in'),
    ({'snapshot_steps': '10,x'}, 'must be integers separated by'),
    ({'snapshot_steps': '10,10'}, "='10,10' must be positive and strictly i"),
    ({'snapshot_steps': '0,10'}, "='0,10' must be positive and strictly i"),
    (
      {'snapshot_steps': '10,21', 'max_actor_steps': 20},
      "snapshot_steps='10,21' exceeds max_actor_steps=20, the end of the run",
    ),
    (
      {'lp_launch_type': 'in_process', 'inference': 'server'},
      "inference='server' has no effect with lp_launch_type='in_process'",
    ),
    ({'replay_port': 7000}, 'Add --open_ports, or remove replay_port'),
    (_RAY, "ray_address='' must be HOST:PORT"),
    ({'ray_address': 'auto'}, 'no effect with lp_launch_type='),
    ({**_RAY, 'ray_address': 'auto', 'placement': 'lerner:'}, "mean 'learner'"),
    ({'inference': 'server', 'envs_per_actor': 3}, 'envs_per_actor=3 must be'),
  ],
)
def test_invalid_settings(values, message):
  (group, *_) = (
    group
    for group in _GROUPS - {evaluation.EvaluationConfig}
    if set(values) <= {field.name for field in dataclasses.fields(group)}
  )
  with pytest.raises(ValueError, match=message):
    group(**values)


@pytest.mark.parametrize(
  'config_class, smaller, larger, default',
  [
    *((x, 'batch_size', 'max_replay_size', 64) for x in config.AGENTS.values()),
    (config.NGUConfig, 'num_neighbors', 'memory_capacity', 10),
  ],
)
def test_a_setting_larger_than_that_of_another_group(
  config_class, smaller, larger, default
):
  values = {'min_replay_size': 5, larger: default}
  assert names.flat(names.build(config_class, values))[smaller] == default
  values[larger] -= 1
  message = f'^{smaller}={default} exceeds {larger}={default - 1}. Lower'
  with pytest.raises(ValueError, match=message):
    names.build(config_class, values)


@pytest.mark.parametrize(
  'setting, known',
  [
    ('loss', targets.TARGETS),
    ('torso', {'auto', *networks.TORSOS}),
    ('intrinsic_reward', rewards.BY_NAME),
    ('flight_law', flight_laws.BY_NAME),
  ],
)
def test_choices_match_the_code_that_reads_them(setting, known):
  found = [field for _, field in _FIELDS if field.name == setting]
  choices = [set(checks.limits_of(field)['choices']) for field in found]
  assert choices and all(each == set(known) for each in choices)


@pytest.mark.parametrize('config_class', config.AGENTS.values())
def test_no_two_settings_have_the_same_name(config_class):
  groups = vars(config_class()).values()
  number = sum(len(dataclasses.fields(group)) for group in groups)
  assert len(names.defaults_of(config_class)) == number


def test_the_learner_of_ngu_keeps_its_loss_if_another_setting_changes():
  learner = config.NGULearnerConfig(batch_size=32)
  assert config.NGUConfig(learner=learner).learner.loss == 'retrace'
  assert learner.trace_decay == 0.95
  with pytest.raises(ValueError, match='Use NGULearnerConfig, which has those'):
    config.NGUConfig(learner=config.LearnerConfig(batch_size=32))
