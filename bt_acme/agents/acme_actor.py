"""Adapts the actor and the sink of one environment to Acme's interfaces."""

import collections
from typing import Any, Deque, Dict, Mapping, Optional, Tuple

import acme
import dm_env
import jax
import numpy as np
from acme import adders

from bt_acme import assembly
from bt_acme.acting import vector_actor
from bt_acme.core import transition as transition_lib
from bt_acme.environments import vector
from bt_acme.replay import sequences


class SequenceAdder:
  """A `SequenceSink` with the interface of `acme.adders.Adder`."""

  def __init__(self, sink: sequences.SequenceSink):
    self._sink = sink

  def add_first(self, timestep: dm_env.TimeStep) -> None:
    """Starts an episode and discards an unfinished one."""
    del timestep  # The next transition contains its observation.
    self._sink.reset()

  def add(
    self,
    action: np.ndarray,
    next_timestep: dm_env.TimeStep,
    extras: Mapping[str, Any],
  ) -> None:
    """Adds a step and its outcome.

    Args:
      action: the executed action.
      next_timestep: the resulting time step.
      extras: the fields of `Transition`, and `final_prev_reward`: in an
        episode's last step, the reward that the agent would see next.
    """
    fields = dict(extras)
    final_prev_reward = fields.pop('final_prev_reward')
    self._sink.add(transition_lib.Transition(**fields))
    if next_timestep.last():
      observation = next_timestep.observation
      self._sink.end_episode(observation, int(action), final_prev_reward)

  def reset(self) -> None:
    """Discards an unfinished episode, for example when an actor stops."""
    self._sink.reset()


class _AdderSink:
  """Passes transitions and their resulting time steps to an Acme adder.

  The two arrive at different times: the environment loop reports an action and
  its time step together, but the actor records the transition only once its
  reward is known.
  """

  def __init__(self, adder: adders.Adder):
    self._adder = adder
    # Actions and time steps whose transition has not been recorded yet.
    self._pending: Deque[Tuple[np.ndarray, dm_env.TimeStep]]
    self._pending = collections.deque()
    self._extras: Dict[str, Any] = {}

  def start(self, timestep: dm_env.TimeStep) -> None:
    """Starts an episode and discards the pending steps of the last one."""
    self._pending.clear()
    self._adder.add_first(timestep)

  def expect(self, action: np.ndarray, next_timestep: dm_env.TimeStep) -> None:
    """Stores a step of the environment loop until its transition arrives."""
    self._pending.append((action, next_timestep))

  def add(self, transition: transition_lib.Transition) -> None:
    self._extras = {**transition._asdict(), 'final_prev_reward': 0.0}
    if not self._pending[0][1].last():
      self._adder.add(*self._pending.popleft(), self._extras)

  def end_episode(
    self, observation: np.ndarray, prev_action: int, prev_reward: float
  ) -> None:
    self._extras['final_prev_reward'] = prev_reward
    self._adder.add(*self._pending.popleft(), self._extras)


class Actor(acme.Actor):
  """Acts in the single environment of an Acme environment loop."""

  def __init__(
    self,
    agent: assembly.Agent,
    random_key: jax.Array,
    *,
    epsilon: float,
    evaluation: bool,
    variable_source: acme.VariableSource,
    adder: Optional[adders.Adder] = None,
  ):
    """Initializes the actor and fetches the first parameters.

    Args:
      agent: the agent that acts.
      random_key: the key that seeds the actor.
      epsilon: the probability of a random action; constant for this actor.
      evaluation: whether to disable flights.
      variable_source: the learner.
      adder: the result of the builder's `make_adder`; None to record nothing.
        The actor adds the extras of `SequenceAdder` to each step.
    """
    self._sink = None if adder is None else _AdderSink(adder)
    self._actor = vector_actor.VectorActor(
      agent,
      epsilons=[epsilon],
      seed=int(jax.random.randint(random_key, [], 0, 2**31 - 1)),
      evaluation=evaluation,
      sinks=None if self._sink is None else [self._sink],
    )
    self._variable_source = variable_source
    self._update_period = agent.config.acting.variable_update_period
    self._num_updates = 0
    self._step: Any = None
    self.update()

  def observe_first(self, timestep: dm_env.TimeStep) -> None:
    """Starts an episode and discards an unfinished one."""
    if self._sink is not None:
      self._sink.start(timestep)
    self._step = vector.batch([timestep])

  def select_action(self, observation: np.ndarray) -> np.ndarray:
    """Returns the action for the last observed time step."""
    del observation  # The actor has already observed it.
    return self._actor.select_actions(self._step)[0]

  def observe(self, action: np.ndarray, next_timestep: dm_env.TimeStep) -> None:
    """Records an action and the resulting time step."""
    self._step = vector.batch([next_timestep])
    if self._sink is not None:
      self._sink.expect(action, next_timestep)
    self._actor.observe(self._step)
    if next_timestep.last() and self._actor.awaits_reward:
      # The last transition lacks the reward for this observation, which is
      # computed when an action is selected. Acme's loop requests no action
      # after the last step.
      self._actor.select_actions(self._step)
      self._actor.update()

  def update(self, wait: bool = False) -> None:
    """Fetches new parameters if `variable_update_period` steps have passed."""
    del wait
    if self._num_updates % self._update_period == 0:
      variables = assembly.Variables.fetch(self._variable_source)
      self._actor.update_variables(variables)
    self._num_updates += 1
