"""The Q-network of Agent57: convolutions, an LSTM and a dueling head.

Sources: Kapturowski et al. 2019 (R2D2); Badia et al. 2020 (Agent57,
arXiv:2003.13350). The papers specify the three convolutions of DQN. As in the
public implementation of SEED, the convolutions use VALID padding, and a fully
connected layer sits between them and the LSTM. The two convolutions of the
first DQN (Mnih et al. 2013, arXiv:1312.5602) need a third of the
multiplications.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import haiku as hk
import jax
import jax.numpy as jnp

from bt_acme import config as config_lib
from bt_acme.core import convolutions, lstm, types, value_rescaling


class Torso(NamedTuple):
  """The convolutions of a torso.

  Attributes:
    layers: channels, kernel and stride of each VALID convolution. The stride
      divides the kernel unless `small`.
    smallest: the minimum height and width of observations in pixels.
    scale: the divisor of the uint8 observations.
    small: whether observations and kernels are as small as for MiniGrid.
  """

  layers: Sequence[tuple[int, int, int]]
  smallest: int
  scale: float = 255.0
  small: bool = False


# The torsos by name; `NetworkConfig.torso` lists the names.
TORSOS = {
  'nature': Torso(((32, 8, 4), (64, 4, 2), (64, 3, 1)), smallest=36),
  'workshop': Torso(((16, 8, 4), (32, 4, 2)), smallest=20),
  # MiniGrid's observations are at most 10.
  'small': Torso(((16, 2, 1), (32, 2, 2)), smallest=3, scale=10.0, small=True),
}


def torso_kind(kind: str, observation_shape: tuple[int, ...]) -> str:
  """Resolves `auto` and checks that the torso supports the observations.

  Args:
    kind: `NetworkConfig.torso`.
    observation_shape: (H, W, C * S).

  Returns:
    One of `TORSOS`.

  Raises:
    ValueError: if the torso does not support observations of this shape.
  """
  side = min(observation_shape[:2], default=0)
  if kind == 'auto':
    kind = 'nature' if side >= TORSOS['nature'].smallest else 'small'
  smallest = TORSOS[kind].smallest
  if len(observation_shape) != 3 or side < smallest:
    raise ValueError(
      f'torso={kind!r} needs observations [H, W, C] with H and W of at least '
      f'{smallest} pixels, got {tuple(observation_shape)}. Use a resizing '
      f"wrapper, or torso='small' from {TORSOS['small'].smallest} pixels."
    )
  return kind


def torso(
  observation: jax.Array,
  *,
  kind: str,
  output_size: int,
  activate: bool = True,
  dtype: Any = jnp.float32,
) -> jax.Array:
  """Applies convolutions and a fully connected layer, for `hk.transform`.

  Args:
    observation: uint8 [B, H, W, C].
    kind: one of `TORSOS`.
    output_size: the number of units of the last layer.
    activate: whether a ReLU follows the last layer.
    dtype: the dtype of the computation; parameters and result stay float32.

  Returns:
    float32 [B, output_size].
  """
  # By default, Haiku layers create parameters in the dtype of their input.
  with (
    hk.name_scope('torso'),
    hk.custom_creator(
      lambda create, shape, _, init, context: create(shape, jnp.float32, init)
    ),
    hk.custom_getter(lambda get, value, context: get(value).astype(dtype)),
  ):
    layers, _, scale, small = TORSOS[kind]
    x = observation.astype(dtype) / jnp.asarray(scale, dtype)
    for layer in layers:
      x = jax.nn.relu(convolutions.conv2d(x, *layer, small=small))
    x = hk.Linear(output_size)(hk.Flatten()(x))
  return (jax.nn.relu(x) if activate else x).astype(jnp.float32)


def at_precision(
  function: Callable[..., Any], precision: str
) -> Callable[..., Any]:
  """Returns a function whose products have a precision.

  Args:
    function: the function to trace.
    precision: `NetworkConfig.matmul_precision`.
  """
  if precision == 'default':
    return function

  @functools.wraps(function)
  def at_this_precision(*args: Any) -> Any:
    with jax.default_matmul_precision(precision):
      return function(*args)

  return at_this_precision


def over_sequences(
  function: Callable[[jax.Array], jax.Array], x: jax.Array
) -> jax.Array:
  """Applies a function with one leading axis to [T, B, ...].

  The axes are merged with the batch as the outer one. If the batch is split
  over devices, each device then computes its own part. With time as the outer
  axis, every device would gather and compute the whole batch.

  Args:
    function: [B * T, ...] -> [B * T, ...], row by row.
    x: [T, B, ...].

  Returns:
    [T, B, ...].
  """
  batch_first = jnp.swapaxes(x, 0, 1)
  result = function(batch_first.reshape(-1, *x.shape[2:]))
  result = result.reshape(*batch_first.shape[:2], *result.shape[1:])
  return jnp.swapaxes(result, 0, 1)


def _dueling_head(
  x: jax.Array, num_choices: int, hidden_size: int
) -> jax.Array:
  """Computes Q(s, a) = V(s) + A(s, a) - mean_a A(s, a) (Wang et al. 2016)."""
  with hk.name_scope('head'):
    value = hk.nets.MLP([hidden_size, 1], name='value')(x)
    advantage = hk.nets.MLP([hidden_size, num_choices], name='advantage')(x)
  return value + advantage - jnp.mean(advantage, axis=-1, keepdims=True)


class QNetwork(NamedTuple):
  """A recurrent Q-network as pure functions.

  Attributes:
    init: key -> params.
    initial_state: () -> LSTMState of zeros, float32 [H] (H = 0 without LSTM).
    step: (params, AgentInput of one environment, state) -> (q [A'], state).
    unroll_all: (params of each network, observation uint8 [T, B, H, W, C * S],
      prev_action int32 [T, B], prev_reward float32 [T, B], state [B, H] of each
      network, hold bool [T, B] or None) -> (q [T, B, A'], state) of each
      network. Rows where `hold` is set do not update the state. Gradients of
      the LSTM flow only into the first network.
    num_actions: A, the number of the environment's actions.
    num_choices: A' = A + K, the number of the network's outputs.
  """

  init: Callable[[types.PRNGKey], types.Params]
  initial_state: Callable[[], types.LSTMState]
  step: Callable[..., tuple[jax.Array, types.LSTMState]]
  unroll_all: Callable[..., list[tuple[jax.Array, types.LSTMState]]]
  num_actions: int
  num_choices: int


def _lstm_inputs(
  observation: jax.Array,
  prev_action: jax.Array,
  prev_reward: jax.Array,
  *,
  config: config_lib.NetworkConfig,
  kind: str,
  num_actions: int,
) -> jax.Array:
  """Computes the rows that the LSTM reads, [T, B, torso_size + A + 1]."""
  features = over_sequences(
    functools.partial(
      torso,
      kind=kind,
      output_size=config.torso_size,
      # Looked up in jnp because TensorFlow may register its own dtype under the
      # same name.
      dtype=getattr(jnp, config.torso_dtype),
    ),
    observation,
  )  # [T, B, torso_size]
  reward = _scale_reward(prev_reward, config.reward_input)
  return jnp.concatenate(
    [
      features,
      jax.nn.one_hot(prev_action, num_actions, dtype=jnp.float32),
      reward[..., None],
    ],
    axis=-1,
  )


def _scale_reward(reward: jax.Array, kind: str) -> jax.Array:
  if kind == 'tanh':
    return jnp.tanh(reward)
  if kind == 'signed_hyperbolic':
    reward = value_rescaling.rescale(reward, 1e-3)
  return reward


def make_q_network(
  config: config_lib.NetworkConfig,
  observation_shape: tuple[int, ...],
  num_actions: int,
  num_extra_actions: int = 0,
) -> QNetwork:
  """Builds the Q-network.

  Args:
    config: the network's settings.
    observation_shape: (H, W, C * S) of uint8 observations.
    num_actions: A, the number of actions. The one-hot input of the previous
      action always has size A, so torso and LSTM have the same shapes in
      pre-training and transfer.
    num_extra_actions: K, the number of behaviors that the agent can select for
      one step.

  Returns:
    The network's functions.
  """
  num_choices = num_actions + num_extra_actions
  lstm_inputs = functools.partial(
    _lstm_inputs,
    config=config,
    kind=torso_kind(config.torso, observation_shape),
    num_actions=num_actions,
  )

  def lstm_parameters(inputs: jax.Array) -> Any:
    return lstm.parameters(inputs.shape[-1], config.lstm_size)

  def head(x: jax.Array) -> jax.Array:
    return _dueling_head(x, num_choices, config.head_size)

  def parts() -> Any:
    def forward(*inputs: jax.Array) -> jax.Array:
      x = lstm_inputs(*inputs)
      if config.lstm_size:
        lstm_parameters(x)
        x = jnp.zeros([*x.shape[:-1], config.lstm_size], x.dtype)
      return head(x)

    return forward, (lstm_inputs, lstm_parameters, head)

  transformed: Any = hk.without_apply_rng(hk.multi_transform(parts))
  apply_inputs, apply_lstm_parameters, apply_head = transformed.apply

  def unroll_all(
    networks: Sequence[types.Params],
    observation: jax.Array,
    prev_action: jax.Array,
    prev_reward: jax.Array,
    states: Sequence[types.LSTMState],
    hold: jax.Array | None = None,
  ) -> list[tuple[jax.Array, types.LSTMState]]:
    rows = [
      apply_inputs(params, observation, prev_action, prev_reward)
      for params in networks
    ]
    unrolled = list(zip(rows, states, strict=True))
    if config.lstm_size:
      recurrences = []
      for params, (x, state) in zip(networks, unrolled, strict=True):
        w, b = apply_lstm_parameters(params, x)
        recurrences.append(lstm.Recurrence(w, b, x, state.hidden, state.cell))
      unrolled = lstm.unroll(recurrences, hold)
    return [
      (apply_head(params, x), state)
      for params, (x, state) in zip(networks, unrolled, strict=True)
    ]

  def initial_state() -> types.LSTMState:
    zeros = jnp.zeros([config.lstm_size], jnp.float32)
    return types.LSTMState(zeros, zeros)

  def init(key: types.PRNGKey) -> types.Params:
    return transformed.init(
      key,
      jnp.zeros((1, 1, *observation_shape), jnp.uint8),
      jnp.zeros([1, 1], jnp.int32),
      jnp.zeros([1, 1], jnp.float32),
    )

  def step(
    params: types.Params, inputs: types.AgentInput, state: types.LSTMState
  ) -> tuple[jax.Array, types.LSTMState]:
    [(q_values, state)] = unroll_all(
      [params],
      inputs.observation[None, None],
      inputs.prev_action[None, None],
      inputs.prev_reward[None, None],
      [types.LSTMState(state.hidden[None], state.cell[None])],
    )
    return q_values[0, 0], jax.tree.map(lambda x: x[0], state)

  return QNetwork(
    init, initial_state, step, unroll_all, num_actions, num_choices
  )
