"""Small test fixtures: a network that compiles fast, episodes and batches."""

import functools
from unittest import mock

import haiku as hk
import jax
import jax.experimental
import jax.numpy as jnp
import numpy as np

from bt_acme import config as config_lib
from bt_acme.core import loss as loss_lib
from bt_acme.core import networks, types

ACTIONS, HIDDEN = 3, 3
SHAPE = (4, 4, 1)  # The shape of an observation.


def as_on(platform):
  """Returns a context that computes on the CPU as on another platform."""

  def choose(*args, default, **branches):
    return branches.get(platform, default)(*args)

  return mock.patch.object(jax.lax, 'platform_dependent', choose)


def enable_x64():
  """Returns a context with 64-bit types, from either module of JAX."""
  module = jax if hasattr(jax, 'enable_x64') else jax.experimental
  return module.enable_x64(True)


@functools.cache  # Equal networks share compiled functions.
def q_network(num_actions, num_choices):
  """Creates a small recurrent Q-network with all inputs of the real network."""
  size = int(np.prod(SHAPE)) + num_actions + 1 + HIDDEN

  def init(key):
    state_key, value_key = jax.random.split(key)
    return {
      'state': jax.random.normal(state_key, [size, HIDDEN]),
      'value': jax.random.normal(value_key, [HIDDEN, num_choices]),
    }

  def initial_state():
    zeros = jnp.zeros([HIDDEN], jnp.float32)
    return types.LSTMState(zeros, zeros)

  def step(params, inputs, state):
    x = jnp.concatenate(
      [
        inputs.observation.astype(jnp.float32).ravel() / 255.0,
        jax.nn.one_hot(inputs.prev_action, num_actions, dtype=jnp.float32),
        inputs.prev_reward[None],
        state.hidden,
      ]
    )
    hidden = jnp.tanh(x @ params['state'])
    cell = 0.5 * state.cell + hidden
    return cell @ params['value'], types.LSTMState(hidden, cell)

  def unroll(params, observation, prev_action, prev_reward, state, hold=None):
    if hold is None:
      hold = jnp.zeros(prev_action.shape, bool)

    def body(state, row):
      *seen, held = row
      inputs = types.AgentInput(*seen, jnp.zeros([], bool))
      q_values, after = step(params, inputs, state)
      return jax.tree.map(
        lambda x, y: jnp.where(held, x, y), state, after
      ), q_values

    def one(state, *rows):
      return jax.lax.scan(body, state, rows)

    state, q_values = jax.vmap(one, in_axes=(0, 1, 1, 1, 1), out_axes=(0, 1))(
      state, observation, prev_action, prev_reward, hold
    )
    return q_values, state

  return networks.QNetwork(
    init, initial_state, step, each(unroll), num_actions, num_choices
  )


@functools.cache
def small_network(shape, num_extra=0, **settings):
  """Creates a small Q-network of the package with four actions."""
  sizes = {'torso_size': 8, 'lstm_size': 6, 'head_size': 7, 'torso': 'small'}
  config = config_lib.NetworkConfig(**{**sizes, **settings})
  return networks.make_q_network(config, shape, 4, num_extra)


def transformed(function):
  """Transforms a function of Haiku; `apply` draws no random numbers."""
  return hk.without_apply_rng(hk.transform(function))


@functools.cache
def unroll_of(network):
  """Returns a jitted function that unrolls a single network."""

  @jax.jit
  def unroll(params, observation, prev_action, prev_reward, state, hold=None):
    inputs = (observation, prev_action, prev_reward)
    return network.unroll_all([params], *inputs, [state], hold)[0]

  return unroll


def random_params(init, seed=0, scale=0.3):
  """Returns NumPy parameters like those of `init`.

  New biases are zero, which could hide errors, so no leaf stays zero.
  """
  rng = np.random.default_rng(seed)
  return jax.tree.map(
    lambda x: np.asarray(scale * rng.normal(size=x.shape), x.dtype),
    jax.eval_shape(init, jax.random.key(0)),
  )


def each(unroll):
  """Returns a `QNetwork.unroll_all` that unrolls one network after another."""

  def unroll_all(networks, *inputs_and_states):
    *inputs, states = inputs_and_states[:4]
    hold = inputs_and_states[4:]
    return [
      unroll(params, *inputs, state, *hold)
      for params, state in zip(networks, states, strict=True)
    ]

  return unroll_all


def episodes(length, *, starts=(0,)):
  """Returns observations, rewards and is_first, independent of the actions.

  Each reward is for the previous step, and 0 at the start of an episode.
  """
  rng = np.random.default_rng(0)
  is_first = np.isin(np.arange(length), starts)
  rewards = rng.normal(size=length).astype(np.float32) * ~is_first
  observations = rng.integers(0, 256, size=(length, *SHAPE), dtype=np.uint8)
  return observations, rewards, is_first


def network_inputs(length, batch_size, num_actions, shape):
  """Returns random observations, actions and rewards of a network, [T, B]."""
  rng = np.random.default_rng(0)
  rows = (length, batch_size)
  return (
    rng.integers(0, 11, size=(*rows, *shape), dtype=np.uint8),
    rng.integers(-1, num_actions, size=rows).astype(np.int32),
    rng.normal(size=rows).astype(np.float32),
  )


def zero_state(network, batch_size):
  """Returns the initial states of a network, [B, ...]."""
  return jax.tree.map(
    lambda x: jnp.zeros([batch_size, *x.shape]), network.initial_state()
  )


@functools.partial(jax.jit, static_argnums=(0, 1))
def scan(core, wrap_input, params, carry, shown):
  def body(carry, row):
    state, prev_action = carry
    observation, reward, is_first = row
    inputs = types.AgentInput(
      observation,
      jnp.where(is_first, types.NO_ACTION, prev_action),
      reward,
      is_first,
    )
    given = wrap_input(inputs) if wrap_input else inputs
    action, state = core.select_action(params, given, state)
    extras = core.get_extras(state)
    return (state, action), (action, extras, state, inputs)

  return jax.lax.scan(body, carry, shown)[1]


def rollout(core, params, state, shown, *, wrap_input=None):
  """Runs an actor core on all steps of `shown`, in one scan.

  Args:
    core: the actor core.
    params: the parameters of the core.
    state: the initial state of the core.
    shown: the steps, in the format of `episodes`.
    wrap_input: a function from an AgentInput to the core's input, if needed.

  Returns:
    Executed actions [T], extras [T, ...], states after each step [T, ...] and
    the AgentInputs [T, ...].
  """
  carry = (state, jnp.full([], types.NO_ACTION, jnp.int32))
  result = scan(core, wrap_input, params, carry, shown)
  return jax.tree.map(np.asarray, result)


def batch(
  length,
  batch_size,
  *,
  num_extra=0,
  num_stacked=1,
  real=None,
  shape=SHAPE,
  hidden=HIDDEN,
  seed=0,
):
  """Creates a random NumPy SequenceBatch with `real` [B] valid transitions."""
  rng = np.random.default_rng(seed)
  rows, steps = (length + 1, batch_size), (length, batch_size)
  action = rng.integers(0, ACTIONS, size=steps).astype(np.int32)
  source = np.full(steps, types.OWN, np.uint8)
  choice = action
  if num_extra:
    source = rng.integers(0, 3, size=steps).astype(np.uint8)
    extra = rng.integers(ACTIONS, ACTIONS + num_extra, size=steps)
    choice = np.where(source == types.OWN, action, extra).astype(np.int32)
  real = np.full(batch_size, length) if real is None else np.asarray(real)
  frame_shape = (*shape[:2], shape[2] // num_stacked)
  frames_shape = (num_stacked + length, batch_size, *frame_shape)

  def normal(*shape):
    return np.float32(rng.normal(size=shape))

  return types.SequenceBatch(
    frames=rng.integers(0, 11, frames_shape, np.uint8),
    prev_action=rng.integers(-1, ACTIONS, size=rows).astype(np.int32),
    prev_reward=normal(*rows),
    action=action,
    choice=choice,
    source=source,
    probability=rng.uniform(0.05, 1, size=steps).astype(np.float32),
    reward=normal(*steps),
    discount=(rng.uniform(size=steps) < 0.9).astype(np.float32),
    valid=(np.arange(length)[:, None] < real).astype(np.float32),
    recurrent_state=types.LSTMState(
      normal(batch_size, hidden), normal(batch_size, hidden)
    ),
  )


def loss_fn(network, length, burn_in=0, learner=None, **settings):
  """Returns the loss of sequences of `length` transitions."""
  return functools.partial(
    loss_lib.q_network_loss,
    network=network,
    config=agent_config(learner or config_lib.LearnerConfig(), length, burn_in),
    **settings,
  )


@functools.cache
def loss_and_gradient(network, length, *settings, argnums=0, **others):
  """Returns a jitted `value_and_grad` of `loss_fn`, the same for equal ones."""
  loss = loss_fn(network, length, *settings, **others)
  return jax.jit(jax.value_and_grad(loss, argnums, has_aux=True))


def agent_config(learner, length, burn_in=0):
  """Returns the settings of R2D2 with sequences of `length` transitions."""
  lengths = {'trace_length': length - burn_in, 'burn_in_length': burn_in}
  replay = config_lib.ReplayConfig(sequence_period=length, **lengths)
  return config_lib.R2D2Config(learner=learner, replay=replay)
