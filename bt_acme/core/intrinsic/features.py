"""The features of an observation from which a reward is computed.

Each network computes one feature of an observation and is trained with a loss
of its own. The actor's jitted call returns the features together with the
action; the reward is computed from them afterwards.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from bt_acme.core import arrays, types

Loss = tuple[jax.Array, dict[str, jax.Array]]  # float32 [], and metrics.


class Features(NamedTuple):
  """The features of one observation, or of one observation per environment.

  Attributes:
    embedding: float32 [..., D], where D is 0 if the reward needs no embedding.
    error: float32 [...], the prediction error of random network distillation,
      or 0 if the reward does not need it.
  """

  embedding: arrays.Array
  error: arrays.Array


class FeatureNetwork(NamedTuple):
  """A network that computes one feature, and its loss, as pure functions.

  Attributes:
    init: keys [2] -> params, a dict of named parts.
    apply: (params, observation uint8 [H, W, C * S]) -> the feature, float32.
    loss: (params, the results of `training_windows.choose`) -> (loss float32
      [], metrics).
  """

  init: Callable[[types.PRNGKey], types.Params]
  apply: Callable[[types.Params, jax.Array], jax.Array]
  loss: Callable[..., Loss]


def absent(*shape: int) -> FeatureNetwork:
  """Builds a placeholder for a network that the reward does not need.

  Args:
    *shape: the shape of the feature, which is always zero.

  Returns:
    A network without parameters and without a loss.
  """
  return FeatureNetwork(
    init=lambda keys: {},
    apply=lambda params, observation: jnp.zeros(shape, jnp.float32),
    loss=lambda *arguments: (jnp.zeros([], jnp.float32), {}),
  )
