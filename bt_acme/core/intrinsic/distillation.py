"""Random network distillation (RND): the life-long novelty of a frame.

A predictor is trained to match a target network that is initialized randomly
and never trained. The prediction error is large for frames that were rare
throughout training:

    err = ||g'(x) - g(x)||^2

`rewards.rnd` and `rewards.ngu` normalize it by its running moments.

Burda et al. also whiten the frames with running moments, and their predictor
has two more layers than the target. Here, frames are only divided by a
constant, because Campos et al. describe a normalization of the errors alone,
and both networks have the same layers, as in public implementations of NGU.

Sources: Burda et al. 2018 (arXiv:1810.12894); Campos et al. 2021
(arXiv:2102.13515), App.
"""

import functools
from typing import Any

import haiku as hk
import jax
import jax.numpy as jnp

from bt_acme import config as config_lib
from bt_acme.core import arrays, types
from bt_acme.core import networks as networks_lib
from bt_acme.core.intrinsic import features


def make_feature_network(
  config: config_lib.IntrinsicConfig,
  *,
  torso: str,
  observation_shape: tuple[int, ...],
  frame_channels: int,
) -> features.FeatureNetwork:
  """Builds the predictor and the target; the feature is the prediction error.

  Args:
    config: the reward's settings.
    torso: `nature`, `workshop` or `small`.
    observation_shape: (H, W, C * S) of uint8 observations.
    frame_channels: C; the input of both networks is the newest frame.

  Returns:
    A network with the parts `rnd_predictor` and `rnd_target`, and a feature
    float32 [].
  """

  def forward(frame: jax.Array) -> jax.Array:
    return networks_lib.torso(
      frame, kind=torso, output_size=config.rnd_size, activate=False
    )

  network: Any = hk.without_apply_rng(hk.transform(forward))

  def init(keys: types.PRNGKey) -> types.Params:
    frame = jnp.zeros((1, *observation_shape[:-1], frame_channels), jnp.uint8)
    return {
      'rnd_predictor': network.init(keys[0], frame),
      'rnd_target': network.init(keys[1], frame),
    }

  def errors(params: types.Params, observations: jax.Array) -> jax.Array:
    frames = observations[..., -frame_channels:]
    prediction = network.apply(params['rnd_predictor'], frames)
    target = network.apply(params['rnd_target'], frames)
    return jnp.sum((prediction - jax.lax.stop_gradient(target)) ** 2, axis=-1)

  def loss(
    params: types.Params,
    observations: jax.Array,
    action: jax.Array,
    mask: jax.Array,
  ) -> features.Loss:
    # The x_t of the transitions, or the x_{t+1} if these are rewarded. Only the
    # latter include the last observation of an episode.
    steps = len(action)
    rows = slice(-steps, None) if config.rewards_next else slice(steps)
    rnd_errors = networks_lib.over_sequences(
      functools.partial(errors, params), observations[rows]
    )  # [L, B]
    rnd_loss = arrays.masked_mean(rnd_errors, mask)
    return rnd_loss, {'rnd_loss': rnd_loss}

  return features.FeatureNetwork(
    init=init,
    apply=lambda params, observation: errors(params, observation[None])[0],
    loss=loss,
  )
