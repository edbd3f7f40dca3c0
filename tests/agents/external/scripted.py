"""Specs of small environments, and scripted agents and policies."""

import acme
import jax
import numpy as np
from acme import specs

from bt_acme import behaviors
from bt_acme import config as config_lib
from bt_acme.agents.external import actor as actor_lib
from bt_acme.agents.external import outer_core
from tests.agents import fakes

NUM_ACTIONS = fakes.ACTIONS
ALWAYS_FLY = {'min_flight_probability': 1.0, 'max_flight_probability': 1.0}


def discrete_spec(shape=(2,), dtype=np.float32):
  """Returns a spec with observations of this shape and dtype."""
  return specs.EnvironmentSpec(
    observations=specs.Array(shape, dtype),
    actions=specs.DiscreteArray(NUM_ACTIONS, dtype=np.int32),
    rewards=specs.Array((), np.float32),
    discounts=specs.BoundedArray((), np.float32, 0, 1),
  )


def vector_spec():
  return discrete_spec()._replace(
    actions=specs.BoundedArray((2,), np.float32, -1, [1, 2])
  )


def structured_spec():
  shown = {'image': specs.Array((2,), np.float32)}
  return discrete_spec()._replace(observations=shown)


def int32s(*values):
  return np.array(values, np.int32)


class ScriptedActor(acme.Actor):
  """An actor that plays given choices and records the observed choices."""

  def __init__(self, choices):
    self.choices = list(choices)
    self.observed = []
    self.updates = 0

  def select_action(self, observation):
    return self.choices.pop(0)

  def observe_first(self, timestep):
    self.observed.append(None)

  def observe(self, action, next_timestep):
    self.observed.append(action)

  def update(self, wait=False):
    self.updates += 1


class Recorder:
  """Creates a policy that plays given actions and records its inputs."""

  def __init__(self, actions):
    self.actions = list(actions)
    self.seen = []

  def __call__(self, seed):
    return self._act

  def _act(self, observation, prev_action, is_first):
    self.seen.append((observation.tolist(), np.copy(prev_action), is_first))
    return self.actions[(len(self.seen) - 1) % len(self.actions)]


def make_actor(
  choices, given, spec=None, weights=(), evaluation=False, **config
):
  """Returns an actor with the given behaviors or policies, and its agent."""
  inner = ScriptedActor(choices)
  transfer = outer_core.Transfer(
    tuple(
      each
      if isinstance(each, behaviors.Behavior)
      else behaviors.FromCallable(each, name='policy')
      for each in given
    ),
    config_lib.TransferConfig(**config),
    spec or discrete_spec(),
    weights,
  )
  actor = actor_lib.BTActor(
    inner, transfer, random_key=jax.random.PRNGKey(0), evaluation=evaluation
  )
  return actor, inner
