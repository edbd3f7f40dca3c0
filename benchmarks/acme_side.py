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
import haiku as hk
import jax
import numpy as np
import reverb
from acme import specs
from acme.adders.reverb import base as reverb_base
from acme.agents.jax import r2d2
from acme.jax import networks
from acme.jax.networks import embedding
from acme.utils import loggers

from benchmarks import acme_environment, acme_ngu
from bt_acme import assembly

Step = reverb_base.Step


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
  return acme.make_environment_spec(acme_environment.make(game))


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
    self._environment = acme_environment.make(game)
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
