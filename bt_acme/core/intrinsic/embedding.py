"""The embedding f, which represents what the agent can control.

f is trained through a classifier that predicts which action led from one
observation to the next. Sources: Badia et al. 2020 (NGU, arXiv:2002.06038),
Sec. 2; Pathak et al. 2017.
"""

import functools
from typing import Any, Callable, Tuple

import chex
import haiku as hk
import jax
import jax.numpy as jnp

from bt_acme import config as config_lib
from bt_acme.core import arrays, types
from bt_acme.core import networks as networks_lib
from bt_acme.core.intrinsic import features, windows


def make_embedding(*, torso: str, embedding_size: int) -> Any:
  """Builds the embedding network f.

  Args:
    torso: `nature` or `small`.
    embedding_size: D, the units of the ReLU layer that follows the torso.

  Returns:
    `init` and `apply` from uint8 [B, H, W, C * S] to float32 [B, D].
  """

  def forward(observation: jax.Array) -> jax.Array:
    return networks_lib.torso(
      observation, kind=torso, output_size=embedding_size
    )

  return hk.without_apply_rng(hk.transform(forward))


def make_inverse_dynamics(*, hidden_size: int, num_actions: int) -> Any:
  """Builds the classifier h: one hidden layer on f(x_t) and f(x_{t+1}).

  Args:
    hidden_size: the number of units of the hidden layer.
    num_actions: A, the number of actions.

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
  """Computes the mean cross-entropy of the executed actions.

  Source: Badia et al. 2020, Sec. 2 and App. A.1.

  Args:
    logits: float32 [..., A].
    actions: int32 [...], primitive actions; ignored where the mask is 0.
    mask: float32 [...], 1 for a valid transition.

  Returns:
    float32 [], 0 if no transition is valid.
  """
  chex.assert_equal_shape([actions, mask])
  log_probabilities = jnp.take_along_axis(
    jax.nn.log_softmax(logits), actions[..., None], axis=-1
  )[..., 0]
  return arrays.masked_mean(-log_probabilities, mask)


def l2_penalty(params: types.Params) -> jax.Array:
  """Sums the squares of all weights, excluding biases; float32 []."""
  total = jnp.zeros([], jnp.float32)
  for module in params.values():
    total += jnp.sum(module['w'] ** 2)
  return total


def make_feature_network(
  config: config_lib.IntrinsicConfig,
  *,
  torso: str,
  observation_shape: Tuple[int, ...],
  num_actions: int,
) -> features.FeatureNetwork:
  """Builds f and its classifier; the feature is the embedding.

  Args:
    config: the reward's settings.
    torso: `nature` or `small`.
    observation_shape: (H, W, C * S) of uint8 observations.
    num_actions: A, the number of actions.

  Returns:
    A network with the parts `embedding` and `inverse_dynamics`, and a feature
    float32 [D]. Its `apply` takes only the part `embedding`, because every
    environment has its own copy of that part.
  """
  network = make_embedding(torso=torso, embedding_size=config.embedding_size)
  classifier = make_inverse_dynamics(
    hidden_size=config.inverse_dynamics_size, num_actions=num_actions
  )

  def init(keys: types.PRNGKey) -> types.Params:
    observation = jnp.zeros((1, *observation_shape), jnp.uint8)
    embedding = jnp.zeros([1, config.embedding_size], jnp.float32)
    return {
      'embedding': network.init(keys[0], observation),
      'inverse_dynamics': classifier.init(keys[1], embedding, embedding),
    }

  def embed_one(params: types.Params, observation: jax.Array) -> jax.Array:
    embedding: jax.Array = network.apply(params, observation[None])[0]
    return embedding

  return features.FeatureNetwork(
    init=init,
    apply=functools.partial(_batch_by_scan, embed_one),
    loss=functools.partial(_loss, config, network.apply, classifier.apply),
  )


def _loss(
  config: config_lib.IntrinsicConfig,
  embed: Callable[..., jax.Array],
  classify: Callable[..., jax.Array],
  params: types.Params,
  window: windows.Window,
) -> features.Loss:
  """Adds an L2 penalty to the classifier's loss; see `FeatureNetwork.loss`."""
  embeddings = networks_lib.over_sequences(
    functools.partial(embed, params['embedding']), window.observations
  )  # [M, B, D]
  _, action, mask = window
  logits = classify(
    params['inverse_dynamics'],
    embeddings[: len(action)],
    embeddings[-len(action) :],
  )
  loss = inverse_dynamics_loss(logits, action, mask)
  right = (jnp.argmax(logits, axis=-1) == action).astype(jnp.float32)
  penalty = l2_penalty(params['embedding']) + l2_penalty(
    params['inverse_dynamics']
  )
  return loss + config.inverse_dynamics_l2 * penalty, {
    'inverse_dynamics_loss': loss,
    'inverse_dynamics_accuracy': arrays.masked_mean(right, mask),
  }


def _batch_by_scan(
  function: Callable[[types.Params, jax.Array], jax.Array],
  params: types.Params,
  x: jax.Array,
) -> jax.Array:
  """Computes `function(params, x)`; faster under `vmap` on a CPU.

  Under `vmap` over the parameters, the convolutions of all elements become one
  grouped convolution. On a CPU, this takes about twice as long as separate
  convolutions, so the elements are computed one after another there.
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
