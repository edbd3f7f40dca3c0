"""Tests small convolutions against Haiku's values and gradients."""

import chex
import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bt_acme.core import small_convolutions


def _ours(kernel, stride):
  return hk.without_apply_rng(
    hk.transform(lambda x: small_convolutions.conv2d(x, 4, kernel, stride))
  )


@pytest.mark.parametrize(
  'shape, kernel, stride',
  [
    ((5, 7, 7, 3), 2, 1),
    ((5, 7, 7, 3), 2, 2),
    ((4, 3, 8, 5), 3, 2),
    ((2, 3, 3, 1), 3, 1),
    ((3, 6, 4, 2), 1, 3),
  ],
)
def test_equals_haikus_convolution(shape, kernel, stride):
  ours = _ours(kernel, stride)
  haikus = hk.without_apply_rng(
    hk.transform(lambda x: hk.Conv2D(4, kernel, stride, padding='VALID')(x))
  )
  x = jnp.asarray(np.random.default_rng(0).normal(size=shape), jnp.float32)
  params = ours.init(jax.random.key(1), x)

  chex.assert_trees_all_equal(params, haikus.init(jax.random.key(1), x))

  def value(network):
    return lambda params, x: jnp.sum(jnp.sin(network.apply(params, x)))

  np.testing.assert_allclose(
    ours.apply(params, x), haikus.apply(params, x), rtol=1e-5, atol=1e-6
  )
  chex.assert_trees_all_close(
    jax.grad(value(ours), argnums=(0, 1))(params, x),
    jax.grad(value(haikus), argnums=(0, 1))(params, x),
    rtol=1e-5,
    atol=1e-6,
  )


def test_gradient_in_bfloat16():
  network = _ours(2, 1)
  x = jnp.ones((2, 7, 7, 3), jnp.bfloat16)
  params = network.init(jax.random.key(0), x)

  gradient = jax.grad(lambda p: network.apply(p, x).sum())(params)

  assert gradient['conv2_d']['w'].dtype == jnp.bfloat16
  np.testing.assert_array_equal(gradient['conv2_d']['b'], 2 * 6 * 6)
