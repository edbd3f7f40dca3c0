"""Tests the Boltzmann choice among the agent's own action and behaviors."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bt_acme import config as config_lib
from bt_acme.core import epsilon as epsilon_lib
from bt_acme.core import r2d2_actor
from tests.reference import acting as reference


@pytest.mark.parametrize('scale', [0.0, 1e-30, 1.0, 1e30])
@pytest.mark.parametrize('temperature', [1e-3, 0.1, 100.0])
@pytest.mark.parametrize('num_extra', [1, 3])
def test_the_policy_matches_its_reference(scale, temperature, num_extra):
  rng = np.random.default_rng(0)
  policy = jax.jit(r2d2_actor.expanded_policy, static_argnums=(1, 2))
  for q_values in np.float32(scale * rng.normal(size=(20, 4 + num_extra))):
    actual = np.asarray(policy(q_values, temperature, 4))
    expected = reference.expanded_policy(
      [float(q) for q in q_values], temperature, 4
    )
    assert actual.shape == (4 + num_extra,) and actual.dtype == jnp.float32
    np.testing.assert_allclose(actual, expected, rtol=2e-3, atol=1e-6)
    assert np.count_nonzero(actual[:4]) <= 1


@pytest.mark.parametrize('epsilon', [0.0, 0.3])
def test_frequencies_and_probabilities_of_the_choices(epsilon):
  q_values = jnp.asarray([0.1, 0.9, 0.2, 1.0, 0.8])
  policy = r2d2_actor.expanded_policy(q_values, 0.1, num_actions=3)
  num = 20_000

  def choose(key):
    explore_key, choice_key = jax.random.split(key)
    return epsilon_lib.choose(
      q_values,
      jnp.float32(epsilon),
      explore_key=explore_key,
      choice_key=choice_key,
      policy=policy,
    )

  choice, greedy, probability = jax.jit(jax.vmap(choose))(
    jax.random.split(jax.random.key(0), num)
  )
  expected = epsilon / 5 + (1 - epsilon) * np.asarray(policy)
  np.testing.assert_allclose(
    np.bincount(choice, minlength=5) / num, expected, atol=0.015
  )
  np.testing.assert_allclose(probability, expected[np.asarray(choice)], 1e-5)
  np.testing.assert_array_equal(greedy, 3)
  if not epsilon:
    assert set(np.unique(choice)) == {1, 3, 4}


def test_the_temperature_of_each_rule():
  config = config_lib.TransferConfig(choice_rule='boltzmann')
  assert config.boltzmann_temperature == 0.1
  assert config_lib.TransferConfig().boltzmann_temperature == 0.0
