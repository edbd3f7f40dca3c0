"""Adapts the actor of one environment to Acme's interface."""

from typing import Any

import acme
import dm_env
import jax
import numpy as np

from bt_acme import assembly
from bt_acme.acting import vector_actor
from bt_acme.environments import vector
from bt_acme.replay import sequences


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
    adder: sequences.SequenceSink | None = None,
  ):
    """Initializes the actor and fetches the first parameters.

    Args:
      agent: the agent that acts.
      random_key: the key that seeds the actor.
      epsilon: the probability of a random action; constant for this actor.
      evaluation: whether to disable flights.
      variable_source: the learner.
      adder: the result of the builder's `make_adder`; None to record nothing.
    """
    self._adder = adder
    self._actor = vector_actor.VectorActor(
      agent,
      epsilons=[epsilon],
      seed=int(jax.random.randint(random_key, [], 0, 2**31 - 1)),
      evaluation=evaluation,
      sinks=None if adder is None else [adder],
    )
    self._variable_source = variable_source
    self._update_period = agent.config.acting.variable_update_period
    self._num_updates = 0
    self._step: Any = None
    self.update()

  def observe_first(self, timestep: dm_env.TimeStep) -> None:
    """Starts an episode and discards an unfinished one."""
    if self._adder is not None:
      self._adder.reset()
    self._step = vector.batch([timestep])

  def select_action(self, observation: np.ndarray) -> np.ndarray:
    """Returns the action for the last observed time step."""
    del observation  # The actor has already observed it.
    return self._actor.select_actions(self._step)[0]

  def observe(self, action: np.ndarray, next_timestep: dm_env.TimeStep) -> None:
    """Records the outcome of the last selected action."""
    del action  # The actor has selected it.
    self._step = vector.batch([next_timestep])
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
