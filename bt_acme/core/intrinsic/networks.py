"""The networks of the intrinsic reward and their losses.

Parameters are a dict of parts: `embedding` and `inverse_dynamics` for the
network `embedding`, and `rnd_predictor` and `rnd_target` for the network `rnd`.
A reward has only the parts of the networks that it needs.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax

from bt_acme import config as config_lib
from bt_acme.core import networks as networks_lib
from bt_acme.core import types
from bt_acme.core.intrinsic import (
  distillation,
  features,
  inverse_dynamics,
  rewards,
  training_windows,
)


class IntrinsicNetworks(NamedTuple):
  """The networks of an intrinsic reward, as pure functions.

  Attributes:
    config: the reward and its settings.
    init: key -> params, a dict of parts.
    embed: (the part `embedding`, observation uint8 [H, W, C * S]) -> float32
      [D].
    error: (params with both `rnd` parts, observation uint8 [H, W, C * S]) ->
      float32 [], the prediction error of random network distillation.
    sequence_loss: (params, observations uint8 [T + 1, B, H, W, C * S], action
      int32 [T, B], valid float32 [T, B], key) -> (loss float32 [], metrics), on
      a selection of valid transitions of each sequence (`training_windows`).
    embedding_size: D; 0 if the reward needs no embedding.
  """

  config: config_lib.IntrinsicConfig
  init: Callable[[types.PRNGKey], types.Params]
  embed: Callable[[types.Params, jax.Array], jax.Array]
  error: Callable[[types.Params, jax.Array], jax.Array]
  sequence_loss: Callable[..., features.Loss]
  embedding_size: int


def make_networks(
  config: config_lib.IntrinsicConfig,
  *,
  observation_shape: tuple[int, ...],
  frame_channels: int,
  num_actions: int,
  torso: str = 'auto',
) -> IntrinsicNetworks:
  """Builds the networks that the configured reward needs.

  Args:
    config: the reward and its settings.
    observation_shape: (H, W, C * S) of uint8 observations.
    frame_channels: C; the input of RND is the newest frame, and the input of
      the embedding is the stack.
    num_actions: A, the number of actions.
    torso: see `NetworkConfig.torso`.

  Returns:
    The networks' functions.
  """
  kind = networks_lib.torso_kind(torso, observation_shape)
  needed = rewards.for_config(config).networks
  embedding, rnd = features.absent(0), features.absent()
  if 'embedding' in needed:
    embedding = inverse_dynamics.make_feature_network(
      config,
      torso=kind,
      observation_shape=observation_shape,
      num_actions=num_actions,
    )
  if 'rnd' in needed:
    rnd = distillation.make_feature_network(
      config,
      torso=kind,
      observation_shape=observation_shape,
      frame_channels=frame_channels,
    )

  def init(key: types.PRNGKey) -> types.Params:
    keys = jax.random.split(key, 4)
    return {**embedding.init(keys[:2]), **rnd.init(keys[2:])}

  def sequence_loss(
    params: types.Params,
    observations: jax.Array,
    action: jax.Array,
    valid: jax.Array,
    key: types.PRNGKey,
  ) -> features.Loss:
    window = training_windows.choose(config, observations, action, valid, key)
    embedding_loss, embedding_metrics = embedding.loss(params, *window)
    rnd_loss, rnd_metrics = rnd.loss(params, *window)
    return embedding_loss + rnd_loss, {**embedding_metrics, **rnd_metrics}

  return IntrinsicNetworks(
    config=config,
    init=init,
    embed=embedding.apply,
    error=rnd.apply,
    sequence_loss=sequence_loss,
    embedding_size=config.embedding_size if 'embedding' in needed else 0,
  )
