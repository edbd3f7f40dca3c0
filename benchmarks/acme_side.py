"""The peer's side of the benchmarks: dm-acme 0.4.0's R2D2 with a smaller torso.

Environment wrappers, actor, loop, adder, table, dataset and learner are
dm-acme's. Its network has a torso of the same layers as ours, made of Haiku's,
because its own torso has more than twice the arithmetic; both sides therefore
compute the same. Observations stay uint8, which is faster than the floats of
dm-acme's examples.
"""

import functools
import types
from collections.abc import Callable
from typing import Any

import acme
import dm_env
import haiku as hk
import jax
import numpy as np
import reverb
from acme import specs, wrappers
from acme.adders.reverb import base as reverb_base
from acme.agents.jax import r2d2
from acme.jax import networks
from acme.jax.networks import embedding
from acme.utils import loggers

from benchmarks import acme_ngu, limits
from bt_acme import assembly

Step = reverb_base.Step

# Untrained policies may stand still, and dm-acme's loop runs whole episodes.
_MAX_FRAMES = 1_200


class RawAtari(dm_env.Environment):
  """A game without frame skipping, like `wrappers.GymAtariAdapter` for Gym."""

  def __init__(self, game: str, seed: int):
    self._ale = limits.emulator(game, seed)
    self._actions = self._ale.getLegalActionSet()

  def _observation(self) -> tuple[np.ndarray, int]:
    return self._ale.getScreenRGB(), self._ale.lives()

  def reset(self) -> dm_env.TimeStep:
    self._ale.reset_game()
    return dm_env.restart(self._observation())

  def step(self, action: list[np.ndarray]) -> dm_env.TimeStep:
    reward = self._ale.act(self._actions[action[0].item()])
    if self._ale.game_over():
      return dm_env.termination(reward, self._observation())
    return dm_env.transition(reward, self._observation())

  def observation_spec(self) -> tuple[specs.Array, specs.Array]:
    shape = (*self._ale.getScreenDims(), 3)
    return (
      specs.BoundedArray(shape, np.uint8, 0, 255, name='rgb'),
      specs.Array((), np.float64, name='lives'),
    )

  def action_spec(self) -> list[specs.BoundedArray]:
    return [specs.DiscreteArray(len(self._actions))]


class _AtariWrapper(wrappers.AtariWrapper):
  def reward_spec(self) -> specs.Array:
    return specs.Array((), np.float64)  # dm-acme uses the removed `np.float`.


def make_environment(game: str, seed: int = 0) -> dm_env.Environment:
  """Makes a game with dm-acme's pre-processing: 4 stacked 84x84 gray frames."""
  environment = _AtariWrapper(
    RawAtari(game, seed), max_episode_len=_MAX_FRAMES, num_stacked_frames=4
  )
  return wrappers.ObservationActionRewardWrapper(
    wrappers.SinglePrecisionWrapper(environment)
  )


def random_turns(game: str) -> Callable[[], int]:
  """Returns a function that takes random steps and returns their number."""
  environment = make_environment(game)
  num_actions = environment.action_spec().num_values
  rng = np.random.default_rng(0)

  def turn() -> int:
    actions = rng.integers(num_actions, size=16, dtype=np.int32)
    return sum(not environment.step(action).first() for action in actions)

  return turn


def _torso(frames: jax.Array) -> jax.Array:
  """Applies the layers of our torso, as Haiku has them."""
  x = frames.astype(np.float32) / 255.0
  for channels, kernel, stride in ((32, 8, 4), (64, 4, 2), (64, 3, 1)):
    x = jax.nn.relu(hk.Conv2D(channels, kernel, stride, padding='VALID')(x))
  return jax.nn.relu(hk.Linear(512)(hk.Flatten()(x)))


def _network(num_actions: int) -> networks.R2D2AtariNetwork:
  """Makes dm-acme's network with `_torso`."""
  network = networks.R2D2AtariNetwork(num_actions)
  network._embed = embedding.OAREmbedding(_torso, num_actions)
  return network


def make_networks(
  batch_size: int, spec: specs.EnvironmentSpec
) -> r2d2.R2D2Networks:
  """Makes networks like `r2d2.make_atari_networks`, with `_torso`."""
  num_actions = spec.actions.num_values
  return r2d2.make_networks(
    env_spec=spec,
    forward_fn=lambda x, s: _network(num_actions)(x, s),
    initial_state_fn=lambda b=None: _network(num_actions).initial_state(b),
    unroll_fn=lambda x, s: _network(num_actions).unroll(x, s),
    batch_size=batch_size,
  )


def make_config(**changes: Any) -> r2d2.R2D2Config:
  """Makes a configuration that stores 160 steps by default, as in the paper."""
  lengths = {'burn_in_length': 0, 'trace_length': 160, 'sequence_period': 80}
  return r2d2.R2D2Config(**{**lengths, 'batch_size': 64, **changes})


def make_builder(
  spec: specs.EnvironmentSpec,
  config: r2d2.R2D2Config,
  make_logger: Callable[[], loggers.Logger] = loggers.NoOpLogger,
) -> r2d2.R2D2Builder:
  """Makes dm-acme's builder; by default, its learner does not log."""
  made = make_networks(config.batch_size, spec)
  return r2d2.R2D2Builder(made, config, make_logger)


def make_spec(game: str) -> specs.EnvironmentSpec:
  """Returns the specification of a game."""
  return acme.make_environment_spec(make_environment(game))


class PeerActor:
  """An actor that plays one game in an `EnvironmentLoop`.

  Attributes:
    params: the parameters. Like those of `R2D2Learner.get_variables` in the
      actor's process, they are NumPy views of arrays on the device, which
      jitted calls use without copying. Parameters received through Courier, as
      in `e2e`, are copied at every step.
  """

  def __init__(
    self,
    game: str,
    *,
    records: bool = True,
    intrinsic: assembly.Agent | None = None,
    num_memories: int = 0,
  ):
    """Initializes the actor; its functions are compiled in the first round.

    Args:
      game: the name of the game.
      records: whether to start a replay server and write to it.
      intrinsic: an NGU agent whose networks and reward are also computed.
      num_memories: slots of NGU's episodic memory, all of which are filled.
    """
    self._environment = make_environment(game)
    spec = acme.make_environment_spec(self._environment)
    config = make_config()
    builder = make_builder(spec, config)
    key, made = jax.random.PRNGKey(0), make_networks(1, spec)
    state = acme_ngu.initial_state(made)
    self.params = jax.device_get(made.unroll.init(key, state))
    learner = types.SimpleNamespace(get_variables=lambda names: [self.params])
    adder = None
    if records:
      self._server = reverb.Server(builder.make_replay_tables(spec))
      adder = builder.make_adder(
        reverb.Client(f'localhost:{self._server.port}')
      )
    make_actor = builder.make_actor
    if intrinsic is not None:
      make_actor = functools.partial(
        acme_ngu.make_actor, made, intrinsic, num_memories
      )
    policy = r2d2.make_behavior_policy(made, config)
    self._actor = make_actor(key, policy, adder, learner)
    self._loop = acme.EnvironmentLoop(
      self._environment, self._actor, logger=loggers.NoOpLogger()
    )

  def turn(self) -> int:
    """Plays a whole episode and returns the number of agent steps."""
    return self._loop.run_episode()['episode_length']

  def select_action_on(self) -> Callable[[], Any]:
    """Returns a function that runs only the policy, on one observation."""
    timestep = self._environment.reset()
    self._actor.observe_first(timestep)
    return lambda: self._actor.select_action(timestep.observation)
