"""Tests learned priorities: values, extremes, and a bandit."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bt_acme.core.behavior_transfer import priorities
from tests.reference import flight_priorities as reference

_SETTINGS = {'temperature': 0.1, 'floor': 0.1}


def _scores(episodes, num_behaviors, window):
  scores = priorities.new_scores(num_behaviors, window)
  for behavior, score in episodes:
    scores = priorities.update(scores, behavior, score)
  return scores


def _in_jax(scores):
  return priorities.Scores(jnp.float32(scores.values), jnp.int32(scores.counts))


def _episodes(seed, num, num_behaviors=4):
  rng = np.random.default_rng(seed)
  return [
    (int(rng.integers(num_behaviors - 1)), float(rng.normal()))
    for _ in range(num)
  ]


@pytest.mark.parametrize('num', [0, 1, 2, 5, 30, 200])
@pytest.mark.parametrize('window', [1, 3, 16])
@pytest.mark.parametrize('weights', [(1, 1, 1, 1), (2, 0, 0.5, 1)])
def test_probabilities_match_the_reference(num, window, weights):
  episodes = _episodes(num, num)
  scores = _scores(episodes, 4, window)
  assert scores.values.shape == (4, window)
  assert scores.values.dtype == np.float64
  assert scores.counts.sum() == num
  normalized = reference.normalized_scores(episodes, 4, window)
  actual = priorities.normalized_scores(scores)
  assert actual.shape == (4,)
  np.testing.assert_allclose(actual, normalized, rtol=1e-10, atol=1e-10)
  actual = priorities.probabilities(scores, np.float64(weights), **_SETTINGS)
  expected = reference.probabilities(normalized, weights, **_SETTINGS)
  assert actual.shape == (4,) and actual.dtype == np.float64
  np.testing.assert_allclose(actual, expected, rtol=1e-9, atol=1e-15)
  np.testing.assert_allclose(actual.sum(), 1, rtol=1e-12)


@pytest.mark.parametrize('num', [0, 3, 50])
def test_jax_and_numpy_agree(num):
  in_jax = _in_jax(priorities.new_scores(4, 8))
  update = jax.jit(priorities.update)
  for behavior, score in _episodes(num, num):
    in_jax = update(in_jax, behavior, score)
  scores = _scores(_episodes(num, num), 4, 8)
  assert isinstance(in_jax.values, jax.Array)
  assert in_jax.values.dtype == jnp.float32
  assert in_jax.counts.dtype == jnp.int32
  np.testing.assert_allclose(in_jax.values, scores.values, rtol=1e-6)
  np.testing.assert_array_equal(in_jax.counts, scores.counts)
  draw = functools.partial(priorities.probabilities, **_SETTINGS)
  weights = np.array([1.0, 3.0, 1.0, 0.0])
  expected = draw(scores, weights)
  for function in (draw, jax.jit(draw)):
    actual = function(in_jax, jnp.float32(weights))
    assert actual.dtype == jnp.float32
    np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize('scale', [1e-300, 1e-3, 1.0, 1e300])
@pytest.mark.parametrize('temperature', [1e-38, 0.2, 1e9])
@pytest.mark.parametrize('floor', [0.0, 0.1, 1.0])
def test_extremes_give_probabilities(scale, temperature, floor):
  episodes = [(0, -scale), (1, scale), (2, scale / 2)] * 40
  actual = priorities.probabilities(
    _scores(episodes, 4, 16),
    np.array([1e-300, 1.0, 1.0, 0.0]),
    temperature=temperature,
    floor=floor,
  )
  assert np.isfinite(actual).all() and (actual >= 0).all()
  np.testing.assert_allclose(actual.sum(), 1, rtol=1e-9)
  assert actual[3] == 0
  if temperature < 1 and floor < 1:
    assert actual[1] == actual.max()  # The best one that can fly.
  if floor == 1:
    np.testing.assert_allclose(actual, [0, 0.5, 0.5, 0], atol=1e-12)


def test_scale_and_offset_of_the_scores_do_not_matter():
  episodes = _episodes(0, 50)
  small = priorities.probabilities(
    _scores(episodes, 4, 16), np.ones(4), **_SETTINGS
  )
  large = priorities.probabilities(
    _scores([(k, 1000 * x - 700) for k, x in episodes], 4, 16),
    np.ones(4),
    **_SETTINGS,
  )
  np.testing.assert_allclose(small, large, rtol=1e-9)


def test_equal_scores_leave_the_weights():
  weights = np.array([1.0, 2.0, 5.0])
  for episodes in ([], [(0, 0.0)], [(0, 0.1), (1, 0.1), (1, 0.1)]):
    actual = priorities.probabilities(
      _scores(episodes, 3, 8), weights, **_SETTINGS
    )
    np.testing.assert_allclose(actual, weights / 8, rtol=1e-9)


def test_a_behavior_without_episodes_is_tried():
  actual = priorities.probabilities(
    _scores([(0, 1.0), (1, 0.0)], 3, 8), np.ones(3), **_SETTINGS
  )
  assert actual[2] == actual[0] > 10 * actual[1]


def test_few_episodes_without_a_reward_prove_little():
  # One reward in 30 episodes, none in 6, and none in 200.
  episodes = [(0, 1.0), *[(0, 0.0)] * 29, *[(1, 0.0)] * 6, *[(2, 0.0)] * 200]
  actual = priorities.probabilities(
    _scores(episodes, 3, 200), np.ones(3), temperature=0.1, floor=0.0
  )
  assert actual[0] > actual[1] > 10 * actual[2]


def test_old_episodes_are_forgotten():
  episodes = [(0, 1.0)] * 8 + [(1, 0.5)] * 8
  weights = np.ones(2)
  before = priorities.probabilities(
    _scores(episodes, 2, 8), weights, **_SETTINGS
  )
  after = priorities.probabilities(
    _scores(episodes + [(0, 0.0)] * 8, 2, 8), weights, **_SETTINGS
  )
  assert before[0] > before[1] and after[1] > 0.9


@functools.partial(jax.jit, static_argnames='num_episodes')
@functools.partial(jax.vmap, in_axes=(0, None, 0, None))
def _play_bandit(key, paying, scores, num_episodes):
  """Draws behaviors; returns scores and the final probabilities."""
  weights = jnp.ones(len(scores.counts))

  def play(scores, key):
    draw_key, pay_key = jax.random.split(key)
    p = priorities.probabilities(scores, weights, **_SETTINGS)
    behavior = jax.random.choice(draw_key, len(p), p=p)
    pays = (behavior == paying) & (jax.random.uniform(pay_key) < 0.1)
    return priorities.update(scores, behavior, jnp.float32(pays)), None

  scores, _ = jax.lax.scan(play, scores, jax.random.split(key, num_episodes))
  return scores, priorities.probabilities(scores, weights, **_SETTINGS)


def test_a_rarely_paying_behavior_is_found_and_a_switch_followed():
  scores = jax.tree.map(
    lambda x: jnp.stack([x] * 40), _in_jax(priorities.new_scores(5, 64))
  )
  for seed, paying in ((0, 3), (1, 1)):
    keys = jax.random.split(jax.random.key(seed), 40)
    scores, probabilities = _play_bandit(keys, paying, scores, 400)
    assert np.count_nonzero(probabilities[:, paying] > 0.5) >= 38
