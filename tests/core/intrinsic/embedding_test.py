import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bt_acme.core.intrinsic import embedding
from tests.reference import intrinsic as reference

ACTIONS = 4


@pytest.mark.parametrize('scale', [1.0, 1e4])
def test_inverse_dynamics_loss_matches_reference(scale):
  rng = np.random.default_rng(0)
  logits = np.float32(scale * rng.normal(size=(5, 3, ACTIONS)))
  actions = rng.integers(0, ACTIONS, (5, 3), np.int32)
  mask = np.float32(rng.random((5, 3)) < 0.6)
  expected = [
    reference.cross_entropy(np.float64(logits[i]), actions[i])
    for i in zip(*np.nonzero(mask), strict=True)
  ]
  actual, gradient = jax.value_and_grad(embedding.inverse_dynamics_loss)(
    jnp.array(logits), jnp.array(actions), jnp.array(mask)
  )
  np.testing.assert_allclose(actual, np.mean(expected), rtol=1e-5)
  assert np.all(np.isfinite(gradient))


def test_weights_are_penalized_and_biases_are_not():
  params = {
    'a': {'w': jnp.float32([[1, 2]]), 'b': jnp.float32([9, 9])},
    'b': {'w': jnp.float32([[3]]), 'b': jnp.float32([9])},
  }
  assert embedding.l2_penalty(params) == 14
