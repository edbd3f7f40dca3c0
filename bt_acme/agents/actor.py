"""The vectorized actor of one environment as an Acme actor."""

from typing import Any, Optional

import acme
import dm_env
import jax
import numpy as np
from acme import adders

from bt_acme import acting
from bt_acme import agent as agent_lib
from bt_acme.agents import variables as variables_lib
from bt_acme.environments import vector


def _vector_step(timestep: dm_env.TimeStep) -> vector.VectorStep:
  first = timestep.first()
  return vector.VectorStep(
    observation=np.asarray(timestep.observation)[None],
    reward=np.array([0.0 if first else timestep.reward], np.float32),
    discount=np.array([1.0 if first else timestep.discount], np.float32),
    is_first=np.array([first]),
    is_last=np.array([timestep.last()]),
  )


class _LastTransition:
  """Keeps the newest transition for an Acme adder to take."""

  transition: acting.Transition

  def add(self, transition: acting.Transition) -> None:
    self.transition = transition

  def end_episode(
    self, observation: np.ndarray, prev_action: int, prev_reward: float
  ) -> None:
    """Nothing: the adder sees the last time step."""


class Actor(acme.Actor):
  """Acts in one environment of an Acme environment loop."""

  def __init__(
    self,
    agent: agent_lib.Agent,
    random_key: jax.Array,
    *,
    epsilon: float,
    evaluation: bool,
    variable_source: acme.VariableSource,
    adder: Optional[adders.Adder] = None,
  ):
    """Fetches the first parameters.

    Args:
      agent: what acts.
      random_key: seeds the actor.
      epsilon: fixed for its life.
      evaluation: leaves flights out.
      variable_source: the learner.
      adder: of the builder's `make_adder`; None records nothing. Its extras are
        the fields of `acting.Transition`.
    """
    self._adder = adder
    self._last = _LastTransition()
    self._actor = acting.VectorActor(
      agent,
      epsilons=[epsilon],
      seed=int(jax.random.randint(random_key, [], 0, 2**31 - 1)),
      evaluation=evaluation,
      sinks=None if adder is None else [self._last],
    )
    self._client = variables_lib.VariableClient(
      variable_source, self._actor, agent.config.acting.variable_update_period
    )
    self._step: Any = None

  def observe_first(self, timestep: dm_env.TimeStep) -> None:
    if self._adder is not None:
      self._adder.add_first(timestep)
    self._step = _vector_step(timestep)

  def select_action(self, observation: np.ndarray) -> np.ndarray:
    del observation  # It is in the time step.
    return self._actor.select_actions(self._step)[0]

  def observe(self, action: np.ndarray, next_timestep: dm_env.TimeStep) -> None:
    self._step = _vector_step(next_timestep)
    self._actor.observe(self._step)
    if self._adder is not None:
      extras = self._last.transition._asdict()
      self._adder.add(action, next_timestep, extras)

  def update(self, wait: bool = False) -> None:
    del wait
    self._client.update()
