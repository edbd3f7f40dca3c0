"""The other side: dm-acme 0.4.0's own R2D2, with our network.

Environment wrappers, actor, loop, adder, table, dataset and learner are
dm-acme's; its network class gets our torso (its own has more than twice the
arithmetic), so that both sides compute the same. Observations stay uint8, which
is kinder to it than its examples' floats.
"""

import functools
from typing import Any, Callable, List, Optional, Tuple

import bt_acme  # noqa: F401  Before Acme: it lets Acme run on today's JAX.

# isort: split
import acme
import ale_py
import dm_env
import haiku as hk
import jax
import numpy as np
import reverb
from acme import adders, specs, wrappers
from acme.adders.reverb import base as reverb_base
from acme.agents.jax import actors, r2d2
from acme.agents.jax.r2d2 import actor as r2d2_actor
from acme.jax import variable_utils
from acme.jax.networks import duelling, embedding
from acme.utils import loggers
from ale_py import roms

from benchmarks import harness
from bt_acme import assembly
from bt_acme.core import networks as networks_lib

Step = reverb_base.Step
# Untrained policies can stand still, and loops count whole episodes.
_MAX_FRAMES = 1_200
_EMBEDDING_SIZE, _NEIGHBORS = 32, 10  # Of NGU.


class RawAtari(dm_env.Environment):
  """A game frame by frame, as `wrappers.GymAtariAdapter` shows Gym's."""

  def __init__(self, game: str, seed: int):
    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
    self._ale = ale_py.ALEInterface()
    self._ale.setFloat('repeat_action_probability', 0.0)
    self._ale.setInt('random_seed', seed)
    self._ale.loadROM(str(roms.get_rom_path(game)))
    self._actions = self._ale.getLegalActionSet()

  def _observation(self) -> Tuple[np.ndarray, int]:
    return self._ale.getScreenRGB(), self._ale.lives()

  def reset(self) -> dm_env.TimeStep:
    self._ale.reset_game()
    return dm_env.restart(self._observation())

  def step(self, action: List[np.ndarray]) -> dm_env.TimeStep:
    reward = self._ale.act(self._actions[action[0].item()])
    if self._ale.game_over():
      return dm_env.termination(reward, self._observation())
    return dm_env.transition(reward, self._observation())

  def observation_spec(self) -> Tuple[specs.Array, specs.Array]:
    shape = (*self._ale.getScreenDims(), 3)
    return (
      specs.BoundedArray(shape, np.uint8, 0, 255, name='rgb'),
      specs.Array((), np.float64, name='lives'),
    )

  def action_spec(self) -> List[specs.BoundedArray]:
    return [specs.DiscreteArray(len(self._actions))]


class _AtariWrapper(wrappers.AtariWrapper):
  def reward_spec(self) -> specs.Array:
    return specs.Array((), np.float64)  # dm-acme's asks NumPy for `np.float`.


def make_environment(
  game: str, seed: int = 0, max_frames: int = _MAX_FRAMES
) -> dm_env.Environment:
  """dm-acme's pre-processing: grayscale 84x84, 4 frames stacked."""
  environment = _AtariWrapper(
    RawAtari(game, seed), max_episode_len=max_frames, num_stacked_frames=4
  )
  return wrappers.ObservationActionRewardWrapper(
    wrappers.SinglePrecisionWrapper(environment)
  )


class RandomLoop:
  """The environment alone, under random actions."""

  def __init__(self, game: str):
    self._environment = make_environment(game)
    self._rng = np.random.default_rng(0)

  def run(self, seconds: float) -> float:
    """Steps for so long and returns agent steps a second."""
    num_actions = self._environment.action_spec().num_values
    steps = 0
    start = harness.clock()
    while (elapsed := harness.clock() - start) < seconds:
      for action in self._rng.integers(num_actions, size=16, dtype=np.int32):
        steps += not self._environment.step(action).first()
    return steps / elapsed


class _Network(hk.RNNCore):
  """`acme.jax.networks.R2D2AtariNetwork` with our torso."""

  def __init__(self, num_actions: int):
    super().__init__(name='r2d2_atari_network')
    torso = functools.partial(
      networks_lib.torso, kind='nature', output_size=512
    )
    self._embed = embedding.OAREmbedding(torso, num_actions)
    self._core = hk.LSTM(512)
    self._head = duelling.DuellingMLP(num_actions, hidden_sizes=[512])

  def __call__(self, inputs: Any, state: hk.LSTMState) -> Any:
    outputs, state = self._core(self._embed(inputs), state)
    return self._head(outputs), state

  def initial_state(self, batch_size: Optional[int], **_: Any) -> Any:
    return self._core.initial_state(batch_size)

  def unroll(self, inputs: Any, state: hk.LSTMState) -> Any:
    embeddings = hk.BatchApply(self._embed)(inputs)
    outputs, state = hk.static_unroll(self._core, embeddings, state)
    return hk.BatchApply(self._head)(outputs), state


def make_networks(
  batch_size: int, spec: specs.EnvironmentSpec
) -> r2d2.R2D2Networks:
  """As `r2d2.make_atari_networks`."""
  num_actions = spec.actions.num_values
  return r2d2.make_networks(
    env_spec=spec,
    forward_fn=lambda x, s: _Network(num_actions)(x, s),
    initial_state_fn=lambda b=None: _Network(num_actions).initial_state(b),
    unroll_fn=lambda x, s: _Network(num_actions).unroll(x, s),
    batch_size=batch_size,
  )


def make_policy(networks: r2d2.R2D2Networks, config: r2d2.R2D2Config) -> Any:
  """R2D2's epsilon-greedy policy."""
  return r2d2.make_behavior_policy(networks, config)


def make_config(**changes: Any) -> r2d2.R2D2Config:
  """The paper's lengths; what is stored is 160 steps and the one behind."""
  settings = {
    'burn_in_length': 0,
    'trace_length': 160,
    'sequence_period': 80,
    'batch_size': 64,
    **changes,
  }
  return r2d2.R2D2Config(**settings)


def make_builder(
  spec: specs.EnvironmentSpec, config: r2d2.R2D2Config
) -> r2d2.R2D2Builder:
  """dm-acme's builder; nothing is logged."""
  networks = make_networks(config.batch_size, spec)
  return r2d2.R2D2Builder(networks, config, loggers.NoOpLogger)


def make_spec(game: str) -> specs.EnvironmentSpec:
  """The spec of a game."""
  return acme.make_environment_spec(make_environment(game))


class Source:
  """A learner that never learns; counts what is fetched.

  It gives what `R2D2Learner.get_variables` does in the actor's process: NumPy
  views of arrays on the device, which jitted calls take without a copy. Those
  that come over Courier, as in `e2e`, they copy at every step.
  """

  def __init__(self, params: Any):
    self._params = jax.device_get(params)
    self.fetched_bytes = 0

  def get_variables(self, names: Any) -> List[Any]:
    """As `R2D2Learner.get_variables`."""
    del names
    self.fetched_bytes += sum(x.nbytes for x in jax.tree.leaves(self._params))
    return [self._params]


def fresh_params(networks: r2d2.R2D2Networks) -> Any:
  """Parameters as the learner initializes them."""
  key = jax.random.PRNGKey(0)
  state = networks.initial_state.apply(
    networks.initial_state.init(key, 1), key, 1
  )
  return networks.unroll.init(key, state)


class _NGUActor(actors.GenericActor):
  """R2D2's actor with a reward of NGU's cost, the query in plain NumPy.

  The networks behind the reward run in the same jitted call as the policy; the
  query is one difference, square, sum and partial sort over all memories.
  """

  memories: np.ndarray  # float32 [M, D], all in use.
  _inserted = 0

  def observe(self, action: Any, next_timestep: dm_env.TimeStep) -> None:
    agent_state, embedding, error = self._state
    embedding = np.asarray(embedding)
    distances = np.sum((self.memories - embedding) ** 2, axis=-1)
    nearest = np.partition(distances, _NEIGHBORS)[:_NEIGHBORS]
    kernel = 1e-4 / (nearest / max(nearest.mean(), 1e-8) + 1e-4)
    self.memories[self._inserted % len(self.memories)] = embedding
    self._inserted += 1
    reward = np.float32(float(error) / (np.sqrt(kernel.sum()) + 1e-3))
    self._adder.add(
      action,
      next_timestep._replace(reward=reward),
      extras={'core_state': agent_state.recurrent_state},
    )


class ActorLoop:
  """One actor: `EnvironmentLoop` over one game into a replay."""

  def __init__(
    self,
    game: str,
    *,
    adder: Optional[adders.Adder] = None,
    config: Optional[r2d2.R2D2Config] = None,
    intrinsic: Optional[assembly.Agent] = None,
    num_memories: int = 0,
  ):
    """Compiles nothing yet: the first round does.

    Args:
      game: that is played.
      adder: None records nothing.
      config: of R2D2.
      intrinsic: NGU, whose networks and reward are computed too.
      num_memories: of NGU, all of them filled.
    """
    config = config or make_config()
    self._environment = make_environment(game)
    spec = acme.make_environment_spec(self._environment)
    networks = make_networks(1, spec)
    policy = make_policy(networks, config)
    self.source = Source(fresh_params(networks))
    key = jax.random.PRNGKey(0)
    if intrinsic is None:
      builder = make_builder(spec, config)
      self._actor = builder.make_actor(key, policy, adder, self.source)
    else:
      self._actor = self._make_ngu_actor(networks, policy, adder, intrinsic)
      rng = np.random.default_rng(0)
      self._actor.memories = rng.normal(
        size=(num_memories, _EMBEDDING_SIZE)
      ).astype(np.float32)
    self._loop = acme.EnvironmentLoop(
      self._environment, self._actor, logger=loggers.NoOpLogger()
    )

  def _make_ngu_actor(
    self, networks: Any, policy: Any, adder: Any, intrinsic: assembly.Agent
  ) -> _NGUActor:
    key = jax.random.PRNGKey(0)
    initial = networks.initial_state.apply(
      networks.initial_state.init(key, 1), key, 1
    )
    core = r2d2_actor.get_actor_core(policy, initial, num_epsilons=256)
    assert intrinsic.intrinsic is not None
    nets: Any = intrinsic.intrinsic.networks
    params = nets.init(jax.random.key(0))

    def select_action(agent_params: Any, inputs: Any, state: Any) -> Any:
      action, agent_state = core.select_action(agent_params, inputs, state[0])
      features = nets.embed(params['embedding'], inputs.observation)
      return action, (
        agent_state,
        features,
        nets.error(params, inputs.observation),
      )

    wrapped = core.__class__(
      init=lambda key: (
        core.init(key),
        np.zeros(_EMBEDDING_SIZE, np.float32),
        np.float32(0),
      ),
      select_action=select_action,
      get_extras=lambda state: core.get_extras(state[0]),
    )
    client = variable_utils.VariableClient(self.source, '', 400)
    client.update_and_wait()
    return _NGUActor(wrapped, key, client, adder, backend='cpu')

  def run(self, seconds: float) -> float:
    """Plays whole episodes for so long and returns agent steps a second."""
    steps = 0
    start = harness.clock()
    while (elapsed := harness.clock() - start) < seconds:
      steps += self._loop.run_episode()['episode_length']
    return steps / elapsed

  def select_action_on(self) -> Callable[[], Any]:
    """The policy alone, on one observation."""
    timestep = self._environment.reset()
    self._actor.observe_first(timestep)
    return lambda: self._actor.select_action(timestep.observation)

  def update_variables(self) -> None:
    """What follows each step, but that it waits for what it fetches."""
    self._actor.update(wait=True)


def start_replay(
  game: str, config: r2d2.R2D2Config
) -> Tuple[reverb.Server, r2d2.R2D2Builder]:
  """A server in this process with dm-acme's table, and the builder."""
  spec = make_spec(game)
  builder = make_builder(spec, config)
  return reverb.Server(builder.make_replay_tables(spec)), builder
