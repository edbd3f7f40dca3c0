"""Convolutions with small kernels over small images, optimized for the CPU.

In the forward pass, a product of patches takes 40% of the time of XLA's
convolution. In the backward pass, the product is slower, so the gradient uses
XLA's convolution.
"""

import functools
from typing import Tuple

import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np


def conv2d(x: jax.Array, channels: int, kernel: int, stride: int) -> jax.Array:
  """Convolves [B, H, W, C] to [B, H', W', channels], for `hk.transform`.

  Parameters and outputs equal those of `hk.Conv2D` with VALID padding.
  """
  shape = (kernel, kernel, x.shape[-1], channels)
  w_init = hk.initializers.TruncatedNormal(1 / np.sqrt(np.prod(shape[:-1])))
  with hk.name_scope('conv2_d'):
    w = hk.get_parameter('w', shape, x.dtype, w_init)
    b = hk.get_parameter('b', shape[-1:], x.dtype, jnp.zeros)
  return _convolve(stride, x, w) + b


def _by_convolution(stride: int, x: jax.Array, w: jax.Array) -> jax.Array:
  return jax.lax.conv_general_dilated(
    *(x, w, (stride, stride), 'VALID'),
    dimension_numbers=('NHWC', 'HWIO', 'NHWC'),
  )


def _by_patches(stride: int, x: jax.Array, w: jax.Array) -> jax.Array:
  kernel = w.shape[0]
  height, width = (1 + (side - kernel) // stride for side in x.shape[1:3])
  patches = [
    x[:, i : i + stride * height : stride, j : j + stride * width : stride]
    for i in range(kernel)
    for j in range(kernel)
  ]
  return jnp.concatenate(patches, axis=-1) @ w.reshape(-1, w.shape[-1])


def _forward(
  stride: int, x: jax.Array, w: jax.Array
) -> Tuple[jax.Array, Tuple[jax.Array, jax.Array]]:
  return _by_patches(stride, x, w), (x, w)


def _backward(
  stride: int, inputs: Tuple[jax.Array, jax.Array], gradient: jax.Array
) -> Tuple[jax.Array, jax.Array]:
  x, w = jax.vjp(functools.partial(_by_convolution, stride), *inputs)[1](
    gradient
  )
  return x, w


_convolve = jax.custom_vjp(_by_patches, nondiff_argnums=(0,))
_convolve.defvjp(_forward, _backward)
