"""Lets equal agents in a process share compiled functions.

JAX compiles a function again for each new function object, and every learner,
actor core and inference server creates its own objects. Tests create hundreds
of them for only a few agents, so this module creates the pure functions of each
agent once. The functions have no state, so tests do not affect each other.
"""

import functools
import pickle

from bt_acme import behaviors, learner_assembly
from bt_acme.acting import batched_core, grouped_core

_SIZE = 16  # The number of cached agents, which limits memory.


def share_compiled_functions(monkeypatch):
  """Creates learner cores and actor cores only once for equal arguments."""
  monkeypatch.setattr(
    learner_assembly,
    'make_learner_core',
    _cached(learner_assembly.make_learner_core, _learning),
  )
  for module, name in (
    (batched_core, 'BatchedCore'),
    (grouped_core, 'GroupedCore'),
  ):
    make = functools.partial(_make_core, getattr(module, name))
    monkeypatch.setattr(module, name, _cached(make, _acting))


def _cached(make, key_of):
  """Calls `make` only once for agents with equal keys."""

  class Key:
    """An agent that equals each agent with the same key."""

    def __init__(self, agent):
      self.agent, self.key = agent, key_of(agent)

    def __eq__(self, other):
      return self.key == other.key

    def __hash__(self):
      return hash(self.key)

  cached = functools.lru_cache(_SIZE)(
    lambda key, **settings: make(key.agent, **settings)
  )
  return lambda agent, **settings: cached(Key(agent), **settings)


def _learning(agent):
  """Returns all that the learner core of an agent depends on.

  It depends neither on the environment's name nor on flights.
  """
  config, transfer = agent.config, agent.transfer
  return (
    *(config.network, config.learner, config.replay),
    *(agent.spec._replace(name=''), agent.num_extra_actions),
    agent.intrinsic and config.intrinsic,
    transfer and transfer.flight_recurrent_state,
    transfer if transfer and transfer.kickstarts else None,
  )


def _acting(agent):
  """Returns all that the actor core of an agent depends on."""
  behaviors_of = tuple(map(_behavior, agent.behaviors))
  spec = agent.spec._replace(name='')
  return (agent.config, spec, behaviors_of, agent.behavior_weights)


def _behavior(behavior):
  """Returns what is equal for behaviors with equal cores and parameters."""
  if isinstance(behavior, behaviors.Exported):
    return (
      *(behavior.agent, behavior.params_sha256, behavior._epsilon),
      *(behavior._recompute, pickle.dumps(behavior.statistics)),
    )
  simple = (behaviors.Uniform, behaviors.ActionRepeat, behaviors.FromCallable)
  return type(behavior) if type(behavior) in simple else behavior


def _make_core(core_class, agent, **settings):
  core = core_class(agent, **settings)
  # Each access creates a new bound method, and JAX discards a compiled function
  # with its object. These methods exist as long as the core.
  core.start, core.step = core.start, core.step
  return core
