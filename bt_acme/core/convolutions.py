"""Convolutions that are optimized for CPUs and NVIDIA GPUs.

Small images with small kernels: in the forward pass, a product of patches takes
40% of the time of XLA's convolution. Its gradient would not be faster.

Other images on a CPU: XLA's gradients reach about half the speed of its forward
pass, and less with newer versions of JAX (benchmarks/README.md). Here, a few
images at a time, blocks of `stride` x `stride` pixels become channels, so that
the stride becomes 1. The output's gradient, shifted once for each position of
the smaller kernel, then gives both gradients in one product each.

On an NVIDIA GPU, too, blocks become channels: cuDNN would convert the images of
4 channels in each pass, and has slower kernels for strides. On an H200, this
saves half of the 9.2 ms of a learner step's convolutions (docs/estimates.md).
"""

import functools
from collections.abc import Callable
from typing import Any

import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np

# Images per iteration of the gradient; with 41, it takes a third longer.
_CPU_IMAGES = 8


def conv2d(
  x: jax.Array, channels: int, kernel: int, stride: int, *, small: bool = False
) -> jax.Array:
  """Convolves [N, H, W, C] to [N, H', W', channels], for `hk.transform`.

  Parameters, outputs and gradients equal those of `hk.Conv2D` with VALID
  padding. Only reverse-mode differentiation is supported. If the images are
  split over several CPU devices, each device computes all of their gradients.

  Args:
    x: images.
    channels: the number of output channels.
    kernel: the height and width of the kernel.
    stride: the stride in both directions, a divisor of `kernel` unless `small`.
    small: whether images and kernel are as small as for MiniGrid.
  """
  shape = (kernel, kernel, x.shape[-1], channels)
  w_init = hk.initializers.TruncatedNormal(1 / np.sqrt(np.prod(shape[:-1])))
  with hk.name_scope('conv2_d'):
    w = hk.get_parameter('w', shape, x.dtype, w_init)
    b = hk.get_parameter('b', shape[-1:], x.dtype, jnp.zeros)
  return _convolve(stride, small, x, w) + b


@functools.partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def _convolve(
  stride: int, small: bool, x: jax.Array, w: jax.Array
) -> jax.Array:
  if small:
    return _by_patches(stride, x, w)
  return jax.lax.platform_dependent(  # type: ignore[no-any-return]
    x,
    w,
    cuda=functools.partial(_by_blocks, stride),
    default=functools.partial(_by_xla, stride),
  )


def _by_xla(stride: int, x: jax.Array, w: jax.Array) -> jax.Array:
  return jax.lax.conv_general_dilated(
    x,
    w,
    window_strides=(stride, stride),
    padding='VALID',
    dimension_numbers=('NHWC', 'HWIO', 'NHWC'),
  )


def _by_blocks(stride: int, x: jax.Array, w: jax.Array) -> jax.Array:
  """Convolves blocks of `stride` x `stride` pixels with stride 1."""
  size = w.shape[0] // stride
  used = [side - (side - w.shape[0]) % stride for side in x.shape[1:3]]
  blocks = _blocks_to_channels(x[:, : used[0], : used[1]], stride)
  by_block = w.reshape(size, stride, size, stride, *w.shape[2:])
  by_block = by_block.transpose(0, 2, 1, 3, 4, 5)
  return _by_xla(1, blocks, by_block.reshape(size, size, -1, w.shape[-1]))


def _by_patches(stride: int, x: jax.Array, w: jax.Array) -> jax.Array:
  kernel = w.shape[0]
  height, width = (side - (side - kernel) % stride for side in x.shape[1:3])
  # Indexing with a stride would gather the pixels one by one.
  rows = [
    jax.lax.slice_in_dim(x, i, height - kernel + i + 1, stride, axis=1)
    for i in range(kernel)
  ]
  patches = [
    jax.lax.slice_in_dim(row, j, width - kernel + j + 1, stride, axis=2)
    for row in rows
    for j in range(kernel)
  ]
  return jnp.concatenate(patches, axis=-1) @ w.reshape(-1, w.shape[-1])


def _forward(
  stride: int, small: bool, x: jax.Array, w: jax.Array
) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
  return _convolve(stride, small, x, w), (x, w)


def _backward(
  stride: int,
  small: bool,
  inputs: tuple[jax.Array, jax.Array],
  gradient: jax.Array,
) -> tuple[jax.Array, jax.Array]:
  by_xla = functools.partial(_gradients_of, _by_xla, stride)
  if small:
    return by_xla(*inputs, gradient)
  d_x, d_w = jax.lax.platform_dependent(
    *inputs,
    gradient,
    cpu=functools.partial(_gradients_on_cpu, stride),
    cuda=functools.partial(_gradients_of, _by_blocks, stride),
    default=by_xla,
  )
  return d_x, d_w


_convolve.defvjp(_forward, _backward)


def _gradients_of(
  convolution: Callable[..., jax.Array],
  stride: int,
  x: jax.Array,
  w: jax.Array,
  gradient: jax.Array,
) -> tuple[jax.Array, jax.Array]:
  _, transposed = jax.vjp(functools.partial(convolution, stride), x, w)
  d_x, d_w = transposed(gradient)
  return d_x, d_w


def _gradients_on_cpu(
  stride: int, x: jax.Array, w: jax.Array, gradient: jax.Array
) -> tuple[jax.Array, jax.Array]:
  """Computes both gradients, a few images at a time.

  Args:
    stride: a divisor of `kernel`.
    x: [N, H, W, C].
    w: [kernel, kernel, C, D].
    gradient: [N, H', W', D].

  Returns:
    The gradients of x and w.
  """
  images = x.shape[0]
  size = max(d for d in range(1, _CPU_IMAGES + 1) if images % d == 0)

  def iteration(index: int, gradients: Any) -> Any:
    d_x, d_w = gradients
    some = [
      jax.lax.dynamic_slice_in_dim(array, index * size, size)
      for array in (x, gradient)
    ]
    d_some, more = _gradients_of_some(stride, some[0], w, some[1])
    d_x = jax.lax.dynamic_update_slice_in_dim(d_x, d_some, index * size, 0)
    return d_x, d_w + more

  d_x, d_w = jax.lax.fori_loop(
    0,
    images // size,
    iteration,
    (jnp.zeros_like(x), jnp.zeros(w.shape, jnp.float32)),
  )
  return d_x, d_w.astype(w.dtype)


def _gradients_of_some(
  stride: int, x: jax.Array, w: jax.Array, gradient: jax.Array
) -> tuple[jax.Array, jax.Array]:
  """Computes both gradients for all images at once; that of w in float32."""
  size, channels = w.shape[0] // stride, stride**2 * x.shape[-1]
  shifted = jnp.concatenate(
    [
      jnp.pad(gradient, ((0, 0), (i, size - 1 - i), (j, size - 1 - j), (0, 0)))
      for i in range(size)
      for j in range(size)
    ],
    axis=-1,
  )  # [n, H / stride, W / stride, size * size * D]
  sides = [stride * side for side in shifted.shape[1:3]]
  blocks = _blocks_to_channels(x[:, : sides[0], : sides[1]], stride)
  d_w = jax.lax.dot_general(
    blocks.reshape(-1, channels),
    shifted.reshape(-1, shifted.shape[-1]),
    (((0,), (0,)), ((), ())),
    preferred_element_type=jnp.float32,
  )
  # [stride, stride, C, size, size, D], the axes of w.
  d_w = d_w.reshape(stride, stride, -1, size, size, gradient.shape[-1])
  d_w = d_w.transpose(3, 0, 4, 1, 2, 5).reshape(w.shape)
  by_block = w.reshape(size, stride, size, stride, *w.shape[2:])
  by_block = by_block.transpose(0, 2, 5, 1, 3, 4).reshape(-1, channels)
  d_x = _channels_to_blocks(shifted @ by_block, stride)
  beyond = [
    whole - used for whole, used in zip(x.shape[1:3], sides, strict=True)
  ]
  d_x = jnp.pad(d_x, ((0, 0), (0, beyond[0]), (0, beyond[1]), (0, 0)))
  return d_x, d_w


def _blocks_to_channels(x: jax.Array, stride: int) -> jax.Array:
  """[n, H, W, C] -> [n, H / stride, W / stride, stride * stride * C]."""
  n, height, width, channels = x.shape
  height, width = height // stride, width // stride
  x = x.reshape(n, height, stride, width, stride, channels)
  return x.transpose(0, 1, 3, 2, 4, 5).reshape(n, height, width, -1)


def _channels_to_blocks(x: jax.Array, stride: int) -> jax.Array:
  """Inverts `_blocks_to_channels`."""
  n, height, width, channels = x.shape
  x = x.reshape(n, height, width, stride, stride, channels // stride**2)
  x = x.transpose(0, 1, 3, 2, 4, 5)
  return x.reshape(n, height * stride, width * stride, -1)
