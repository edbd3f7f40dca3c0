"""A small environment with recognizable frames, and agents for it."""

import dataclasses
from typing import Any

import dm_env
import jax
import numpy as np
from dm_env import specs

from bt_acme import assembly, behaviors
from bt_acme import config as config_lib
from bt_acme.core.behavior_transfer import behavior_core
from bt_acme.core.intrinsic import reward_statistics as reward_lib
from bt_acme.replay import blocks
from tests import sharing
from tests.core import toys

ACTIONS, SIDE, STACKED = toys.ACTIONS, 5, 2
T, P = 8, 4  # Length and period of a sequence.
SPEC = assembly.EnvironmentSpec('fake', (SIDE, SIDE, STACKED), STACKED, ACTIONS)


class MarkedEnvironment(dm_env.Environment):
  """An environment whose frames contain the index, episode and step.

  No two rewards are equal. Episodes are 1 to 13 steps long; every other episode
  is truncated, and the others terminate.
  """

  num_stacked = STACKED

  def __init__(self, index=0, *, reward_scale=1.0):
    self._index = index
    self._reward_scale = reward_scale
    self._episode = -1

  def state(self):
    return dict(vars(self))

  def restore(self, state):
    vars(self).update(state)

  def _observe(self):
    rng = np.random.default_rng([self._index, self._episode, self._t])
    frame = rng.integers(0, 11, (SIDE, SIDE, 1), np.uint8)
    frame[0, :3, 0] = self._index, self._episode, self._t
    self._frames = [*self._frames[1 - STACKED :], frame]
    first = [self._frames[0]] * (STACKED - len(self._frames))
    return np.concatenate([*first, *self._frames], axis=-1)

  def reset(self):
    self._episode += 1
    self._t = 0
    rng = np.random.default_rng([self._index, self._episode])
    self._length = int(rng.integers(1, 14))
    self._frames = []
    self._over = False
    return dm_env.restart(self._observe())

  def step(self, action):
    if self._episode < 0 or self._over:
      return self.reset()
    self._t += 1
    reward = self._reward_scale * (
      self._index + self._episode / 16 + self._t / 256 + int(action) / 1024
    )
    observation = self._observe()
    self._over = self._t == self._length
    if not self._over:
      return dm_env.transition(reward, observation)
    if self._episode % 2:
      return dm_env.truncation(reward, observation)
    return dm_env.termination(reward, observation)

  def observation_spec(self):
    return specs.Array((SIDE, SIDE, STACKED), np.uint8)

  def action_spec(self):
    return specs.DiscreteArray(ACTIONS)


def marks(frame):
  """Returns the index, episode and step stored in a frame."""
  return tuple(int(x) for x in frame[0, :3, 0])


def make_config(config_class=config_lib.R2D2Config, **groups):
  """Returns the configuration of a tiny agent."""
  defaults = {
    'network': config_lib.NetworkConfig(
      torso_size=16, lstm_size=16, head_size=16
    ),
    'replay': config_lib.ReplayConfig(
      trace_length=T,
      sequence_period=P,
      min_replay_size=4,
      max_replay_size=10_000,
      samples_per_insert=1.0,
    ),
    'learner': config_lib.LearnerConfig(batch_size=4, publish_period=1),
    'acting': config_lib.ActingConfig(variable_update_period=5),
  }
  if config_class is config_lib.NGUConfig:
    defaults['intrinsic'] = config_lib.IntrinsicConfig(
      embedding_size=8, rnd_size=8, memory_capacity=50, num_neighbors=3
    )
    defaults['learner'] = config_lib.NGULearnerConfig(
      batch_size=4, publish_period=1
    )
  return config_class(**{**defaults, **groups})


def changed(agent, **groups):
  """Returns the agent with settings replaced, given by group."""
  config = agent.config
  for name, settings in groups.items():
    group = dataclasses.replace(getattr(config, name), **settings)
    config = dataclasses.replace(config, **{name: group})
  return dataclasses.replace(agent, config=config)


def make_samples(number):
  """Returns random batches, like a replay of 7 sequences."""
  shapes = {'num_stacked': STACKED, 'shape': SPEC.observation_shape}
  keys, probabilities = np.arange(4, dtype=np.uint64), np.full(4, 0.5)
  return [
    blocks.Sample(
      toys.batch(T, 4, hidden=16, seed=seed, **shapes), keys, probabilities, 7
    )
    for seed in range(number)
  ]


def variables_of(agent, seed=0):
  """Returns random parameters as NumPy arrays."""
  return sharing.random_params(agent.variable_shapes, seed)


def export_behavior(folder, *, seed=3, env=None, **intrinsic):
  """Exports a random NGU policy; returns agent, variables and statistics."""
  spec = assembly.spec_by_name(env) if env else SPEC
  agent = assembly.Agent(make_config(config_lib.NGUConfig), spec)
  agent = changed(agent, intrinsic=intrinsic)
  return agent, *export_agent(folder, agent, seed)


def export_agent(folder, agent, seed=3):
  """Exports a random policy; returns its variables and statistics."""
  variables = variables_of(agent, seed)
  # With larger weights, actions depend on the observation.
  variables = variables._replace(
    agent=jax.tree.map(lambda x: 3 * x, variables.agent)
  )
  statistics = agent.intrinsic and reward_lib.IntrinsicStatistics(
    *(np.float64(x) for x in (50.0, 0.3, 0.01, 40.0, 0.2))
  )
  behaviors.export(
    str(folder),
    agent=agent,
    variables=variables,
    statistics=statistics,
    actor_steps=100,
  )
  return variables, statistics


def scripted(seed=0):
  """Returns a policy that only depends on the observation."""
  del seed

  def policy(observation, prev_action, is_first):
    del prev_action, is_first
    index, episode, t = marks(observation[..., -1:])
    return (index + 2 * episode + t) % ACTIONS

  return policy


class Noisy:
  """A policy with its own state."""

  def __init__(self, seed):
    self._rng = np.random.default_rng(seed)

  def __call__(self, observation, prev_action, is_first):
    return int(self._rng.integers(ACTIONS))

  def state(self):
    return self._rng.bit_generator.state

  def restore(self, state):
    self._rng.bit_generator.state = state


@dataclasses.dataclass
class Proposing(behaviors.Behavior):
  """A jitted behavior that proposes its action, which a test may change."""

  action: Any
  name: str = 'mine'

  def params(self):
    return self.action

  def make_core(self, num_actions):
    del num_actions
    return behavior_core.BehaviorCore(
      lambda key: (), lambda params, inputs, state: (params, state)
    )


def make_agent(kind, folder=None, **groups):
  """Returns an agent of a kind: `r2d2`, `ngu`, or `bt` with several behaviors.

  If `folder` is given, one of the behaviors is exported to this directory.
  Settings may follow the kind after a colon: `bt:flights=False`.
  """
  kind, _, settings = kind.partition(':')
  changes = {
    name: {'True': True, 'False': False, '0.5': 0.5}.get(value, value)
    for name, _, value in (s.partition('=') for s in settings.split(',') if s)
  }
  if kind == 'r2d2':
    return assembly.Agent(make_config(**groups), SPEC)
  if kind == 'ngu':
    config = make_config(config_lib.NGUConfig, **groups)
    return changed(assembly.Agent(config, SPEC), intrinsic=changes)
  transfer = config_lib.TransferConfig(
    min_flight_probability=0.1, max_flight_probability=0.5, **changes
  )
  transferred = [
    behaviors.FromCallable(scripted),
    behaviors.FromCallable(Noisy),
    behaviors.ActionRepeat(),
    behaviors.Uniform(),
  ]
  if folder is not None:
    export_behavior(folder)
    transferred.append(behaviors.Exported(str(folder), epsilon=0.2))
  return assembly.Agent(
    make_config(config_lib.BTConfig, transfer=transfer, **groups),
    SPEC,
    tuple(transferred),
  )
