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


def _ours(kernel, stride, small):
  return hk.without_apply_rng(
    hk.transform(
      lambda x: convolutions.conv2d(x, 4, kernel, stride, small=small)
    )
  )


@pytest.mark.parametrize(
  'shape, kernel, stride, small',
  [
    ((5, 7, 7, 3), 2, 1, True),
    ((5, 7, 7, 3), 2, 2, True),
    ((4, 3, 8, 5), 3, 2, True),
    ((2, 3, 3, 1), 3, 1, True),
    ((3, 6, 4, 2), 1, 3, True),
    ((24, 12, 12, 3), 8, 4, False),  # Several iterations of several images.
    ((11, 20, 12, 2), 4, 2, False),  # Iterations of a single image.
    ((6, 11, 13, 2), 4, 2, False),  # A row and a column are not read.
    ((9, 9, 7, 4), 3, 1, False),
    ((1, 4, 4, 1), 4, 4, False),  # A single position.
  ],
)
def test_equals_haikus_convolution(shape, kernel, stride, small):
  ours = _ours(kernel, stride, small)
  haikus = hk.without_apply_rng(
    hk.transform(lambda x: hk.Conv2D(4, kernel, stride, padding='VALID')(x))
  )
  x = np.float32(np.random.default_rng(0).normal(size=shape))
  params, same = (
    toys.random_params(functools.partial(network.init, x=x))
    for network in (ours, haikus)
  )

  chex.assert_trees_all_equal(params, same)

  def output_and_gradients(network, params, x):
    def value(params, x):
      output = network.apply(params, x)
      return jnp.sum(jnp.sin(output)), output

    gradients, output = jax.grad(value, argnums=(0, 1), has_aux=True)(params, x)
    return output, gradients

  (output, gradients), (expected, expected_gradients) = jax.jit(
    lambda *x: [output_and_gradients(network, *x) for network in (ours, haikus)]
  )(params, x)
  np.testing.assert_allclose(output, expected, rtol=1e-5, atol=1e-6)
  chex.assert_trees_all_close(
    gradients, expected_gradients, rtol=1e-5, atol=1e-5
  )


def test_output_of_large_images_is_haikus_to_the_bit():
  haikus = hk.without_apply_rng(
    hk.transform(lambda x: hk.Conv2D(4, 8, 4, padding='VALID')(x))
  )
  x = np.float32(np.random.default_rng(0).normal(size=(3, 20, 20, 4)))
  params = toys.random_params(functools.partial(haikus.init, x=x))

  np.testing.assert_array_equal(
    *(jax.jit(net.apply)(params, x) for net in (_ours(8, 4, False), haikus))
  )


@functools.partial(jax.jit, static_argnums=0)
def _gradient(network, x):
  params = network.init(jax.random.key(0), x)
  return jax.grad(lambda p: network.apply(p, x).sum())(params)


@pytest.mark.parametrize('small', [True, False])
def test_gradient_in_bfloat16(small):
  network = _ours(2, 1, small)
  x = jnp.ones((2, 7, 7, 3), jnp.bfloat16)
  gradient = _gradient(network, x)

  assert gradient['conv2_d']['w'].dtype == jnp.bfloat16
  np.testing.assert_array_equal(gradient['conv2_d']['w'], 2 * 6 * 6)
  np.testing.assert_array_equal(gradient['conv2_d']['b'], 2 * 6 * 6)


def test_a_sum_over_many_images_in_bfloat16_is_computed_in_float32():
  network = _ours(2, 2, False)
  x = jnp.ones((4096, 2, 2, 1), jnp.bfloat16)
  gradient = _gradient(network, x)

  # In bfloat16, a sum in steps of 8 would stay at 2048.
  np.testing.assert_array_equal(gradient['conv2_d']['w'], 4096)


def test_gradients_for_cpus_equal_those_for_accelerators():
  x, w, gradient = (
    np.float32(np.random.default_rng(i).normal(size=shape))
    for i, shape in enumerate([(6, 20, 22, 3), (8, 8, 3, 5), (6, 4, 4, 5)])
  )

  chex.assert_trees_all_close(
    jax.jit(convolutions._gradients_on_cpu, static_argnums=0)(
      4, x, w, gradient
    ),
    jax.jit(convolutions._gradients_by_xla, static_argnums=0)(
      4, x, w, gradient
    ),
    rtol=1e-5,
    atol=1e-5,
  )


def test_layers_equal_haikus():
  layers = ((6, 8, 4), (5, 4, 2), (4, 3, 1))

  def stack(convolve):
    def network(x):
      for layer in layers:
        x = jax.nn.relu(convolve(x, *layer))
      return x

    return hk.without_apply_rng(hk.transform(network))

  ours = stack(convolutions.conv2d)
  haikus = stack(lambda x, *layer: hk.Conv2D(*layer, padding='VALID')(x))
  x = np.float32(np.random.default_rng(0).normal(size=(3, 44, 36, 2)))
  options = {'xla_backend_optimization_level': 0}  # Compiles faster.
  params, same = (
    jax.jit(network.init, compiler_options=options)(jax.random.key(1), x)
    for network in (ours, haikus)
  )

  chex.assert_trees_all_equal(params, same)
  # Environments have parameters of their own.
  each = jax.tree.map(lambda leaf: np.stack([leaf, 2 * leaf]), params)
  np.testing.assert_allclose(
    jax.jit(jax.vmap(ours.apply))(each, np.stack([x, x])),
    jax.jit(jax.vmap(haikus.apply))(each, np.stack([x, x])),
    rtol=1e-5,
    atol=1e-6,
  )

  def gradient(network):
    def loss(params):
      return jnp.sum(network.apply(params, x) ** 2)

    return jax.jit(jax.grad(loss))(params)

  gradients = [gradient(network) for network in (ours, haikus)]
  chex.assert_trees_all_close(*gradients, rtol=1e-4, atol=1e-5)
