"""Tests the epsilon of every environment and epsilon-greedy choices."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bt_acme.core import epsilon as epsilon_lib
from tests.reference import acting as reference


@pytest.mark.parametrize('num_environments', [1, 2, 16, 256])
def test_ladder_matches_reference(num_environments):
  actual = epsilon_lib.ladder(num_environments, base=0.4, alpha=7.0)
  assert actual.shape == (num_environments,)
  assert actual.dtype == np.float32
  expected = [
    reference.epsilon_of(i, num_environments, base=0.4, alpha=7.0)
    for i in range(num_environments)
  ]
  np.testing.assert_allclose(actual, expected, rtol=1e-6)


def test_ladder_has_the_minimum_and_maximum_of_the_paper():
  ladder = epsilon_lib.ladder(256, base=0.4, alpha=7.0)
  np.testing.assert_allclose(ladder[[0, -1]], [0.4, 6.55e-4], rtol=1e-3)
  assert np.all(np.diff(ladder) < 0)


@pytest.mark.parametrize('epsilon', [0.0, 0.3, 1.0])
@pytest.mark.parametrize('jit', [jax.jit, lambda function: function])
def test_choices_match_reference(epsilon, jit):
  q_values = np.float32([0.1, -2.0, 0.7, 0.3, 0.7])
  expected = reference.choice_probabilities(q_values, epsilon)

  def choose(key):
    explore_key, choice_key = jax.random.split(key)
    return epsilon_lib.choose(
      jnp.asarray(q_values),
      jnp.float32(epsilon),
      explore_key=explore_key,
      choice_key=choice_key,
    )

  num_samples = 20_000
  keys = jax.random.split(jax.random.PRNGKey(0), num_samples)
  chosen = jit(jax.vmap(choose))(keys)
  frequencies = np.bincount(chosen.choice, minlength=5) / num_samples
  np.testing.assert_allclose(frequencies, expected, atol=0.015)
  np.testing.assert_array_equal(chosen.greedy_choice, np.full(num_samples, 2))
  np.testing.assert_allclose(
    chosen.probability, expected[np.asarray(chosen.choice)], rtol=1e-6
  )
  assert chosen.choice.dtype == chosen.greedy_choice.dtype == jnp.int32
  assert chosen.probability.dtype == jnp.float32
