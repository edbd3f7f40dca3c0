"""Agents, parts of the core and random play; needs neither Acme nor Reverb."""

from collections.abc import Callable
from typing import Any, NamedTuple

import dm_env
import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np

from bt_acme import assembly, behaviors, environments
from bt_acme import config as config_lib
from bt_acme import learner as learner_lib
from bt_acme.config import names
from bt_acme.core import lstm as lstm_lib
from bt_acme.core import types
from bt_acme.replay import blocks

HIDDEN = 512
ATARI = assembly.EnvironmentSpec('game', (84, 84, 4), 4, 18)
CONFIGS = {
  name.removesuffix('Config').lower(): config_class
  for name, config_class in config_lib.AGENTS.items()
}


def make_agent(
  game: str = ATARI.name, kind: str = 'r2d2', **settings: Any
) -> assembly.Agent:
  """Makes the paper's agent for Atari, with some settings replaced.

  BT transfers a behavior without a network.
  """
  return assembly.Agent(
    names.build(CONFIGS[kind], settings),
    ATARI._replace(name=game),
    (behaviors.Uniform(),) if kind == 'bt' else (),
  )


def our_lstm(inputs: jax.Array) -> jax.Array:
  """Unrolls our LSTM over inputs [T, B, D]."""
  state = jnp.zeros([2, inputs.shape[1], HIDDEN], jnp.float32)
  weights = lstm_lib.parameters(inputs.shape[-1], HIDDEN)
  [(outputs, _)] = lstm_lib.unroll(
    [lstm_lib.Recurrence(*weights, inputs, *state)]
  )
  return outputs


def fresh_variables(agent: assembly.Agent) -> assembly.Variables:
  """Returns the first parameters that a learner publishes, on the host."""
  return learner_lib.Learner(agent, jax.random.key(0)).variables


def forward_backward(
  network: Callable[[jax.Array], jax.Array],
  inputs: jax.Array,
  *,
  as_in_learner: bool = False,
) -> Callable[[], Any]:
  """Returns a jitted forward and backward pass of sum(outputs^2).

  Args:
    network: a Haiku function.
    inputs: the inputs of the network.
    as_in_learner: whether to add a forward pass with target parameters and to
      omit the gradient of images, as in the learner.
  """
  transformed: Any = hk.without_apply_rng(hk.transform(network))

  def loss(params: hk.Params, inputs: jax.Array) -> jax.Array:
    return jnp.sum(transformed.apply(params, inputs) ** 2)

  @jax.jit
  def step(params: hk.Params, target: hk.Params, inputs: jax.Array) -> Any:
    # Images have no gradient.
    argnums = (0, 1) if jnp.issubdtype(inputs.dtype, jnp.floating) else 0
    gradients = jax.grad(loss, argnums)(params, inputs)
    return (gradients, loss(target, inputs)) if as_in_learner else gradients

  params = transformed.init(jax.random.key(0), inputs)
  # With equal parameters, XLA would merge the two forward passes.
  target = jax.tree.map(lambda x: x + 1e-3, params)
  return lambda: jax.block_until_ready(step(params, target, inputs))


def empty_batch(agent: assembly.Agent) -> types.SequenceBatch:
  """Returns the arrays of a batch on the host."""
  return blocks.empty_batch(
    agent.replay_layout, agent.config.learner.batch_size
  )


def random_batch(
  agent: assembly.Agent, frames: np.ndarray, seed: int = 0
) -> types.SequenceBatch:
  """Returns a batch of B random sequences of T steps on the host.

  Args:
    agent: the agent that learns from the batch.
    frames: uint8 [N, 84, 84]; each sequence contains consecutive frames.
    seed: the seed of the first frames of sequences and of the actions.
  """
  rng = np.random.default_rng(seed)
  batch = jax.tree.map(np.ones_like, empty_batch(agent))
  rows = np.arange(len(batch.frames))[:, None]
  starts = rng.integers(
    len(frames) - len(rows), size=agent.config.learner.batch_size
  )
  actions = rng.integers(
    agent.spec.num_actions, size=batch.action.shape, dtype=np.int32
  )
  return batch._replace(
    frames=frames[rows + starts].reshape(batch.frames.shape),
    action=actions,
    choice=actions,
    source=np.zeros_like(batch.source),
  )


def random_sample(
  agent: assembly.Agent, frames: np.ndarray, seed: int = 0
) -> blocks.Sample:
  """Returns a `random_batch` as if it had been sampled from a replay."""
  batch = random_batch(agent, frames, seed)
  size = agent.config.learner.batch_size
  keys = np.arange(size, dtype=np.uint64)
  return blocks.Sample(batch, keys, np.ones(size), table_size=size)


def random_frames(num: int) -> np.ndarray:
  """Returns random frames, uint8 [num, 84, 84]."""
  return np.random.default_rng(0).integers(
    256, size=(num, 84, 84), dtype=np.uint8
  )


class RandomPlay(NamedTuple):
  """A recording; `timesteps` has one more element than `actions`."""

  timesteps: list[dm_env.TimeStep]
  actions: np.ndarray

  def cut(self, steps: int) -> 'RandomPlay':
    """Returns the first steps and ends the last episode there."""
    timesteps = self.timesteps[: steps + 1]
    if timesteps[-1].first():
      timesteps.pop()
    timesteps[-1] = timesteps[-1]._replace(step_type=dm_env.StepType.LAST)
    return RandomPlay(timesteps, self.actions[: len(timesteps) - 1])

  def frames(self) -> np.ndarray:
    """Returns the newest frame of each time step, uint8 [N, 84, 84]."""
    return np.stack([step.observation[..., -1] for step in self.timesteps])


def record(game: str, steps: int) -> RandomPlay:
  """Plays a game with random actions."""
  environment = environments.make(game, seed=0)
  num_actions = environment.action_spec().num_values
  actions = np.random.default_rng(0).integers(
    num_actions, size=steps, dtype=np.int32
  )
  timesteps = [environment.reset()]
  timesteps += [environment.step(action) for action in actions]
  environment.close()
  return RandomPlay(timesteps, actions).cut(steps)
