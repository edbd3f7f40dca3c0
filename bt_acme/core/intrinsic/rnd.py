"""Random network distillation: how little a state resembles those trained on.

A predictor learns the outputs of a random network that never changes; its error
is large where it has trained little, over the whole of training. Source: Burda
et al. 2018 (arXiv:1810.12894); Campos et al. 2021 (arXiv:2102.13515), App.
"""

from typing import Any

import haiku as hk
import jax
import jax.numpy as jnp

from bt_acme.core import networks
from bt_acme.core.intrinsic import running_statistics


def make_network(*, torso: str, output_size: int) -> Any:
  """A network for one frame; predictor and target are two of them.

  Args:
    torso: `nature` or `small`.
    output_size: of its last layer, which is linear.

  Returns:
    `init` and `apply` from uint8 [B, H, W, C] to float32 [B, output_size].
  """

  def forward(frame: jax.Array) -> jax.Array:
    return networks.torso(
      frame, kind=torso, output_size=output_size, activate=False
    )

  return hk.without_apply_rng(hk.transform(forward))


def prediction_error(prediction: jax.Array, target: jax.Array) -> jax.Array:
  """err = ||g'(x) - g(x)||^2, whose gradient reaches the prediction only.

  Args:
    prediction: float32 [..., D].
    target: float32 [..., D].

  Returns:
    float32 [...].
  """
  return jnp.sum((prediction - jax.lax.stop_gradient(target)) ** 2, axis=-1)


def rnd_reward(
  error: running_statistics.Array,
  moments: running_statistics.Moments,
  *,
  error_deviation: str = 'one',
) -> running_statistics.Array:
  """r = err / sigma, RND as a reward of its own; nothing is subtracted.

  Source: Campos et al. 2021 (arXiv:2102.13515), App. "Random Network
  Distillation". Differs from Burda et al., who divide by the deviation of the
  discounted return.

  Args:
    error: float [...].
    moments: of the errors, this one included.
    error_deviation: `one` or `floor`.

  Returns:
    float [...].
  """
  return error / running_statistics.standard_deviation(
    moments, unvaried=error_deviation
  )
