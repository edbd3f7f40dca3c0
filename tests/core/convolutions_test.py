"""Tests convolutions against Haiku's values and gradients."""

import functools

import chex
import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bt_acme.core import convolutions
from tests.core import toys


def _ours(*sizes, small):
  return toys.transformed(
    lambda x: convolutions.conv2d(x, 4, *sizes, small=small)
  )


def _haikus(*sizes):
  return toys.transformed(lambda x: hk.Conv2D(4, *sizes, padding='VALID')(x))


# Small images are processed in the same way on every platform.
SMALL = (
  ((5, 7, 7, 3), 2, 2),
  ((4, 3, 8, 5), 3, 2),
  ((2, 3, 3, 1), 3, 1),
  ((3, 6, 4, 2), 1, 3),
)
LARGE = (
  ((6, 11, 13, 2), 4, 2),  # A row and a column are not read.
  ((24, 12, 12, 3), 8, 4),  # Several iterations of several images.
  ((11, 20, 12, 2), 4, 2),  # Iterations of a single image.
  ((9, 9, 7, 4), 3, 1),
  ((1, 4, 4, 1), 4, 4),  # A single position.
)


@pytest.mark.parametrize(
  'shape, kernel, stride, small, platform',
  [
    *((*sizes, True, 'cpu') for sizes in SMALL),
    *((*sizes, False, 'cpu') for sizes in LARGE),
    *((*sizes, False, 'cuda') for sizes in LARGE),
    (*LARGE[0], False, 'tpu'),  # XLA's convolution and gradients.
  ],
)
def test_equals_haikus_convolution(shape, kernel, stride, small, platform):
  networks = _ours(kernel, stride, small=small), _haikus(kernel, stride)
  x = np.float32(np.random.default_rng(0).normal(size=shape))
  params, same = (
    toys.random_params(functools.partial(network.init, x=x))
    for network in networks
  )
  chex.assert_trees_all_equal(params, same)

  def output_and_gradients(network, params, x):
    def value(params, x):
      output = network.apply(params, x)
      return jnp.sum(jnp.sin(output)), output

    gradients, output = jax.grad(value, argnums=(0, 1), has_aux=True)(params, x)
    return output, gradients

  with toys.as_on(platform):
    (output, gradients), (expected, expected_gradients) = jax.jit(
      lambda *x: [output_and_gradients(network, *x) for network in networks]
    )(params, x)
  if not small and platform != 'cuda':
    np.testing.assert_array_equal(output, expected)
  np.testing.assert_allclose(output, expected, rtol=1e-5, atol=5e-6)
  chex.assert_trees_all_close(
    gradients, expected_gradients, rtol=1e-5, atol=3e-5
  )


@functools.partial(jax.jit, static_argnums=0)
def _gradient(network, x):
  params = network.init(jax.random.key(0), x)
  return jax.grad(lambda p: network.apply(p, x).sum())(params)


@pytest.mark.parametrize(
  'small, platform', [(True, 'cpu'), (False, 'cpu'), (False, 'cuda')]
)
def test_gradient_in_bfloat16(small, platform):
  x = jnp.ones((2, 7, 7, 3), jnp.bfloat16)
  with toys.as_on(platform):
    gradient = _gradient(_ours(2, 1, small=small), x)
  assert gradient['conv2_d']['w'].dtype == jnp.bfloat16
  np.testing.assert_array_equal(gradient['conv2_d']['w'], 2 * 6 * 6)
  np.testing.assert_array_equal(gradient['conv2_d']['b'], 2 * 6 * 6)


def test_a_sum_over_many_images_in_bfloat16_is_computed_in_float32():
  x = jnp.ones((4096, 2, 2, 1), jnp.bfloat16)
  gradient = _gradient(_ours(2, 2, small=False), x)
  # In bfloat16, a sum in steps of 8 would stay at 2048.
  np.testing.assert_array_equal(gradient['conv2_d']['w'], 4096)


@pytest.mark.parametrize('platform', ['cpu', 'cuda'])
def test_environments_may_have_parameters_of_their_own(platform):
  ours, haikus = _ours(8, 4, small=False), _haikus(8, 4)
  x = np.float32(np.random.default_rng(0).normal(size=(2, 3, 20, 20, 2)))
  options = {'xla_backend_optimization_level': 0}  # Compiles faster.
  key = jax.random.key(1)
  params, same = (
    jax.jit(network.init, compiler_options=options)(key, x[0])
    for network in (ours, haikus)
  )
  chex.assert_trees_all_equal(params, same)
  each = jax.tree.map(lambda leaf: np.stack([leaf, 2 * leaf]), params)
  with toys.as_on(platform):
    found = jax.jit(jax.vmap(ours.apply))(each, x)
  expected = jax.jit(jax.vmap(haikus.apply))(each, x)
  np.testing.assert_allclose(found, expected, rtol=1e-5, atol=5e-6)
