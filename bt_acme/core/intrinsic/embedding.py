"""The embedding f: what of an observation the agent's actions can change.

f is trained through a classifier that says which action led from one
observation to the next. Source: Badia et al. 2020 (NGU, arXiv:2002.06038),
Sec. 2; Pathak et al. 2017.
"""

from typing import Any

import chex
import haiku as hk
import jax
import jax.numpy as jnp

from bt_acme.core import networks, types
from bt_acme.core.intrinsic import running_statistics


def make_embedding(*, torso: str, embedding_size: int) -> Any:
  """The embedding network f.

  Args:
    torso: `nature` or `small`.
    embedding_size: D, of the ReLU layer behind it.

  Returns:
    `init` and `apply` from uint8 [B, H, W, C * S] to float32 [B, D].
  """

  def forward(observation: jax.Array) -> jax.Array:
    return networks.torso(observation, kind=torso, output_size=embedding_size)

  return hk.without_apply_rng(hk.transform(forward))


def make_inverse_dynamics(*, hidden_size: int, num_actions: int) -> Any:
  """The classifier h: one hidden layer behind f(x_t) and f(x_{t+1}).

  Args:
    hidden_size: of the layer.
    num_actions: A.

  Returns:
    `init` and `apply` from two float32 [..., D] to logits float32 [..., A].
  """

  def forward(embedding_t: jax.Array, embedding_tp1: jax.Array) -> jax.Array:
    both = jnp.concatenate([embedding_t, embedding_tp1], axis=-1)
    return hk.nets.MLP([hidden_size, num_actions], name='classifier')(both)

  return hk.without_apply_rng(hk.transform(forward))


def inverse_dynamics_loss(
  logits: jax.Array, actions: jax.Array, mask: jax.Array
) -> jax.Array:
  """Mean cross-entropy of the executed actions.

  Source: Badia et al. 2020, Sec. 2 and App. A.1.

  Args:
    logits: float32 [..., A].
    actions: int32 [...], primitive ones; anything where the mask is 0.
    mask: float32 [...], 1 for a real transition.

  Returns:
    float32 [], 0 if no transition is real.
  """
  chex.assert_equal_shape([actions, mask])
  log_probabilities = jnp.take_along_axis(
    jax.nn.log_softmax(logits), actions[..., None], axis=-1
  )[..., 0]
  return running_statistics.masked_mean(-log_probabilities, mask)


def l2_penalty(params: types.Params) -> jax.Array:
  """Sum of squares of all weights, biases left out; float32 []."""
  total = jnp.zeros([], jnp.float32)
  for module in params.values():
    total += jnp.sum(module['w'] ** 2)
  return total
