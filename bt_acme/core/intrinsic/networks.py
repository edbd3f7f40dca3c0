"""The networks behind the intrinsic reward, and what trains them.

Parameters are a dict of parts, of which each reward has those that it needs:
`embedding` and `inverse_dynamics` (NGU), `rnd_predictor` and `rnd_target` (NGU
and RND).
"""

import functools
from typing import Any, Callable, Dict, NamedTuple, Tuple

import jax
import jax.numpy as jnp

from bt_acme import config as config_lib
from bt_acme.core import networks as networks_lib
from bt_acme.core import types
from bt_acme.core.intrinsic import embedding as embedding_lib
from bt_acme.core.intrinsic import rnd, running_statistics


class IntrinsicNetworks(NamedTuple):
  """Networks of one intrinsic reward as pure functions.

  Attributes:
    init: key -> params, a dict of parts.
    embed: (`embedding` part, observation uint8 [H, W, C * S]) -> float32 [D].
    error: (params with both `rnd` parts, observation uint8 [H, W, C * S]) ->
      float32 [], of RND.
    sequence_loss: (params, observations uint8 [T + 1, B, H, W, C * S], action
      int32 [T, B], valid float32 [T, B]) -> (loss float32 [], metrics), on the
      last valid transitions of each sequence.
    embedding_size: D; 0 where the reward needs no embedding.
  """

  init: Callable[[types.PRNGKey], types.Params]
  embed: Callable[[types.Params, jax.Array], jax.Array]
  error: Callable[[types.Params, jax.Array], jax.Array]
  sequence_loss: Callable[..., Tuple[jax.Array, Dict[str, jax.Array]]]
  embedding_size: int


def last_valid_window(valid: jax.Array, num_steps: int) -> jax.Array:
  """Where the last valid steps of each sequence start.

  Args:
    valid: float32 [T, B], 1 for real steps, which come first.
    num_steps: of the window, at most T.

  Returns:
    int32 [B]; 0 for sequences with fewer.
  """
  lengths = jnp.sum(valid > 0, axis=0, dtype=jnp.int32)
  return jnp.maximum(lengths - num_steps, 0)


def cut_window(sequence: jax.Array, start: jax.Array, length: int) -> jax.Array:
  """Cuts a window out of each sequence: [T, B, ...] -> [length, B, ...].

  Args:
    sequence: [T, B, ...].
    start: int32 [B], at most T - length.
    length: of the windows.

  Returns:
    [length, B, ...].
  """

  def cut(row: jax.Array, row_start: jax.Array) -> jax.Array:
    return jax.lax.dynamic_slice_in_dim(row, row_start, length)

  return jax.vmap(cut, in_axes=(1, 0), out_axes=1)(sequence, start)


def _batch_by_scan(
  function: Callable[[types.Params, jax.Array], jax.Array],
  params: types.Params,
  x: jax.Array,
) -> jax.Array:
  """`function(params, x)`, on a CPU fast under `vmap` over parameters too.

  There, convolutions with other weights for each element become one grouped
  convolution, which takes about twice the time of one after the other.
  """
  batched: Any = jax.custom_batching.custom_vmap(function)

  @batched.def_vmap  # type: ignore[untyped-decorator]
  def _(
    axis_size: int, in_batched: Any, params: types.Params, x: jax.Array
  ) -> Tuple[jax.Array, bool]:
    del axis_size
    params_batched, x_batched = in_batched
    axes = jax.tree.map(lambda b: 0 if b else None, (params_batched, x_batched))
    vmapped = jax.vmap(function, in_axes=axes)
    if not (x_batched and all(jax.tree.leaves(params_batched))):
      return vmapped(params, x), True

    def scanned(params: types.Params, x: jax.Array) -> jax.Array:
      result: jax.Array = jax.lax.map(lambda row: function(*row), (params, x))
      return result

    result: jax.Array = jax.lax.platform_dependent(
      params, x, cpu=scanned, default=vmapped
    )
    return result, True

  result: jax.Array = batched(params, x)
  return result


def make_networks(
  config: config_lib.IntrinsicConfig,
  *,
  observation_shape: Tuple[int, ...],
  frame_channels: int,
  num_actions: int,
  torso: str = 'auto',
) -> IntrinsicNetworks:
  """Builds the networks that the configured reward needs.

  Args:
    config: which reward, and its settings.
    observation_shape: (H, W, C * S) of uint8 observations.
    frame_channels: C; RND sees the newest frame only, the embedding the stack.
    num_actions: A.
    torso: `NetworkConfig.torso`.

  Returns:
    The networks' functions.
  """
  kind = networks_lib.torso_kind(torso, observation_shape)
  has_embedding = config.intrinsic_reward == 'ngu'
  has_rnd = config.intrinsic_reward in ('ngu', 'rnd')
  embedding = embedding_lib.make_embedding(
    torso=kind, embedding_size=config.embedding_size
  )
  inverse_dynamics = embedding_lib.make_inverse_dynamics(
    hidden_size=config.inverse_dynamics_size, num_actions=num_actions
  )
  rnd_network = rnd.make_network(torso=kind, output_size=config.rnd_size)

  def init(key: types.PRNGKey) -> types.Params:
    keys = jax.random.split(key, 4)
    params = {}
    if has_embedding:
      observation = jnp.zeros((1, *observation_shape), jnp.uint8)
      features = jnp.zeros([1, config.embedding_size], jnp.float32)
      params['embedding'] = embedding.init(keys[0], observation)
      params['inverse_dynamics'] = inverse_dynamics.init(
        keys[1], features, features
      )
    if has_rnd:
      shape = (1, *observation_shape[:-1], frame_channels)
      frame = jnp.zeros(shape, jnp.uint8)
      params['rnd_predictor'] = rnd_network.init(keys[2], frame)
      params['rnd_target'] = rnd_network.init(keys[3], frame)
    return params

  def embed(params: types.Params, observation: jax.Array) -> jax.Array:
    if not has_embedding:
      return jnp.zeros([0], jnp.float32)
    return _batch_by_scan(
      lambda p, x: embedding.apply(p, x[None])[0], params, observation
    )

  def errors(params: types.Params, observations: jax.Array) -> jax.Array:
    frames = observations[..., -frame_channels:]
    return rnd.prediction_error(
      rnd_network.apply(params['rnd_predictor'], frames),
      rnd_network.apply(params['rnd_target'], frames),
    )

  def error(params: types.Params, observation: jax.Array) -> jax.Array:
    if not has_rnd:
      return jnp.zeros([], jnp.float32)
    return errors(params, observation[None])[0]

  def sequence_loss(
    params: types.Params,
    observations: jax.Array,
    action: jax.Array,
    valid: jax.Array,
  ) -> Tuple[jax.Array, Dict[str, jax.Array]]:
    num_steps = min(config.intrinsic_steps, valid.shape[0])
    start = last_valid_window(valid, num_steps)
    mask = cut_window(valid, start, num_steps)  # [L, B]
    window = cut_window(observations, start, num_steps + 1)
    loss = jnp.zeros([], jnp.float32)
    metrics: Dict[str, jax.Array] = {}
    if has_embedding:
      embeddings = networks_lib.over_sequences(
        functools.partial(embedding.apply, params['embedding']), window
      )  # [L + 1, B, D]
      logits = inverse_dynamics.apply(
        params['inverse_dynamics'], embeddings[:-1], embeddings[1:]
      )
      actions = cut_window(action, start, num_steps)
      metrics['inverse_dynamics_loss'] = embedding_lib.inverse_dynamics_loss(
        logits, actions, mask
      )
      right = (jnp.argmax(logits, axis=-1) == actions).astype(jnp.float32)
      metrics['inverse_dynamics_accuracy'] = running_statistics.masked_mean(
        right, mask
      )
      penalty = embedding_lib.l2_penalty(
        params['embedding']
      ) + embedding_lib.l2_penalty(params['inverse_dynamics'])
      loss += metrics['inverse_dynamics_loss']
      loss += config.inverse_dynamics_l2 * penalty
    if has_rnd:
      # The x_t of the same transitions.
      rnd_errors = networks_lib.over_sequences(
        functools.partial(errors, params), window[:-1]
      )  # [L, B]
      metrics['rnd_loss'] = running_statistics.masked_mean(rnd_errors, mask)
      loss += metrics['rnd_loss']
    return loss, metrics

  return IntrinsicNetworks(
    init=init,
    embed=embed,
    error=error,
    sequence_loss=sequence_loss,
    embedding_size=config.embedding_size if has_embedding else 0,
  )
