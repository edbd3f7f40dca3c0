"""Compares the priorities of new sequences with a reference implementation."""

import itertools

import numpy as np
import pytest

from bt_acme import config as config_lib
from bt_acme.core import types
from bt_acme.replay import initial_priority
from tests.reference import losses as reference
from tests.replay import episodes

P, T, A = episodes.PERIOD, episodes.LENGTH, 17
_BURN_IN = ('burn_in_length', 'trace_length')


def make_config(learner=None, **replay):
  return config_lib.R2D2Config(
    replay=episodes.make_config(**replay),
    learner=config_lib.LearnerConfig(**(learner or {})),
  )


def make_episode(rng, num_steps, *, truncated=False, scale=1.0):
  """Returns an episode of own choices, two extra actions and flights.

  Half of the steps of flights have no label of an extra action.
  """
  episode = episodes.make_episode(
    rng, num_steps, episodes.make_layout(), truncated=truncated
  )
  steps = []
  for step in episode.steps:
    source = int(rng.integers(3))
    action = int(rng.integers(A))
    extra = A + int(rng.integers(2))
    has_extra = source == types.EXTRA or (
      source == types.FLIGHT and rng.random() < 0.5
    )
    steps.append(
      step._replace(
        source=source,
        action=action,
        choice=extra if has_extra else action,
        reward=scale * step.reward,
        q_values=scale * step.q_values,
      )
    )
  return episode._replace(steps=steps)


def completed(episode, config):
  """Returns the blocks of an episode that complete a sequence."""
  settings = {name: getattr(config.replay, name) for name in _BURN_IN}
  written = episodes.Written(**settings)
  episodes.play(episode, written.sink)
  return [block for block in written.blocks if block.sequence]


def expected_of(episode, config):
  result, length = [], len(episode.steps)
  for start in episodes.starts(episode):
    if start and length - start <= config.replay.burn_in_length:
      continue  # No step of the sequence would be trained.
    following = episode.steps[start + T :][:1]
    result.append(
      reference.new_sequence_priority(
        episode.steps[start : start + T],
        following[0].q_values if following else None,
        learner=config.learner,
        replay=config.replay,
        num_actions=A,
      )
    )
  return result


def actual_of(episode, config):
  return [
    initial_priority.from_q_values(block, config, num_actions=A)
    for block in completed(episode, config)
  ]


def assert_as_expected(episode, config):
  actual, expected = actual_of(episode, config), expected_of(episode, config)
  for mine, theirs in zip(actual, expected, strict=True):
    if theirs is None:
      assert mine is None
    else:
      np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-12)
  return actual


LENGTHS = (1, 2, P, T - 1, T, T + 1, T + 2 * P + 3)
SETTINGS = (
  {'loss': 'q_lambda'},
  {'loss': 'q_lambda', 'trace_decay': 0.0, 'double_q': False},
  {'loss': 'q_lambda', 'trace_decay': 1.0, 'value_rescaling_epsilon': 0.0},
  {'loss': 'retrace', 'trace_decay': 0.95},
  {'loss': 'retrace', 'trace_decay': 1.0, 'target_policy_epsilon': 1.0},
  {'loss': 'retrace', 'trace_decay': 0.0, 'target_policy_epsilon': 0.0},
  {'loss': 'retrace', 'discount': 0.0},
  {'behavior_labels': 'extra'},
  {'behavior_labels': 'extra', 'duplicate_flights': False},
  {'behavior_labels': 'primitive'},
  {'duplicate_flights': False},
)


@pytest.mark.parametrize('truncated', [False, True])
@pytest.mark.parametrize('learner', SETTINGS)
def test_matches_reference(learner, truncated):
  rng = np.random.default_rng(0)
  config = make_config(learner)
  for num_steps in LENGTHS:
    episode = make_episode(rng, num_steps, truncated=truncated)
    actual = assert_as_expected(episode, config)
    assert (actual[-1] is None) == (truncated and num_steps == 1)


@pytest.mark.parametrize('burn_in', [P, T - 1, 5])
def test_burn_in_is_trained_only_at_the_start_of_an_episode(burn_in):
  rng = np.random.default_rng(1)
  lengths = {'burn_in_length': burn_in, 'trace_length': T - burn_in}
  config = make_config(**lengths, max_priority_weight=0.0)
  for num_steps, truncated in itertools.product(LENGTHS, (False, True)):
    episode = make_episode(rng, num_steps, truncated=truncated)
    assert_as_expected(episode, config)


@pytest.mark.parametrize('learner', SETTINGS[:1] + SETTINGS[3:4])
@pytest.mark.parametrize('scale', [0.0, 1e-30, 1e-6, 1e6, 1e30])
def test_extreme_values_stay_finite(learner, scale):
  rng = np.random.default_rng(2)
  config = make_config(learner, max_priority_weight=1.0)
  episode = make_episode(rng, T + P, scale=scale)
  for actual in assert_as_expected(episode, config):
    assert np.isfinite(actual) and (actual == 0) == (scale == 0)


@pytest.mark.parametrize('field', ['reward', 'q_values'])
@pytest.mark.parametrize('value', [np.nan, np.inf])
def test_values_that_are_not_finite_are_rejected(field, value):
  config = make_config()
  episode = make_episode(np.random.default_rng(4), P)
  wrong = np.full(A + 2, value) if field == 'q_values' else value
  episode.steps[1] = episode.steps[1]._replace(**{field: wrong})
  with (
    np.errstate(invalid='ignore'),
    pytest.raises(FloatingPointError, match='has diverged. Lower'),
  ):
    actual_of(episode, config)


@pytest.mark.parametrize(
  'setting, largest, expected',
  [
    ('one', 7.0, 1),
    ('largest', 7.0, 7),
    ('largest', None, 1),
    # A single truncated step has no TD error.
    ('actor', 7.0, 7),
    ('actor', None, 1),
  ],
)
def test_the_configured_priority_is_used(setting, largest, expected):
  config = make_config(initial_priority=setting)
  rng = np.random.default_rng(7)
  priority_of = initial_priority.make(
    config,
    num_actions=A,
    largest_priority=None if largest is None else lambda: largest,
  )
  episode = make_episode(rng, 1, truncated=True)
  (block,) = completed(episode, config)
  assert priority_of(block) == expected
  if setting == 'actor':
    episode = make_episode(rng, T)
    (block,) = completed(episode, config)
    assert priority_of(block) == actual_of(episode, config)[0]


def test_the_largest_priority_is_smoothed_only_downward():
  largest = initial_priority.LargestPriority()
  assert largest() == 1
  largest.update(np.array([0.01, 0.02]))
  assert largest() == 0.02
  largest.update(np.array([5.0]))
  largest.update(np.array([2.0, 50.0]))
  assert largest() == 50
  largest.update(np.array([0.0, 30.0]))
  np.testing.assert_allclose(largest(), 49.8)
  for _ in range(2000):
    largest.update(np.array([0.3]))
  np.testing.assert_allclose(largest(), 0.3, rtol=1e-5)
