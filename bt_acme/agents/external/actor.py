"""Adds flights and the extra action to any Acme actor."""

from typing import Any, Dict

import acme
import dm_env
import jax
import numpy as np

from bt_acme.acting import behavior as behavior_lib
from bt_acme.acting import episode as episode_lib
from bt_acme.agents.external import outer_core, resolvers


class BTActor(acme.Actor):
  """Adds flights and the extra action to an actor.

  At every step, the wrapped actor makes a choice and every behavior proposes an
  action. A resolver decides which action the environment receives. The wrapped
  actor observes the choice that would have had the same outcome, so its adder
  writes this choice and its learner trains on it.
  """

  def __init__(
    self,
    actor: acme.Actor,
    transfer: outer_core.Transfer,
    *,
    random_key: jax.Array,
    evaluation: bool = False,
  ):
    """Initializes the actor.

    Args:
      actor: the actor to wrap; with extra actions, it has A + K choices.
      transfer: the behaviors to transfer, with their settings.
      random_key: the key that seeds flights and behaviors.
      evaluation: whether to disable flights; the extra action stays enabled.
    """
    self._actor = actor
    host_key, core_key = jax.random.split(random_key)
    self._resolver = resolvers.Resolver(
      transfer, key=core_key, evaluation=evaluation
    )
    self._hosts = behavior_lib.make_hosts(
      transfer.behaviors,
      self._resolver.action_spec,
      seed=int(jax.random.randint(host_key, [], 0, 2**31 - 1)),
      environments=[0],
    )
    self._action: Any = None  # None before the first action of an episode.
    self._label: Any = None
    self._episode = episode_lib.EpisodeMetrics()

  def observe_first(self, timestep: dm_env.TimeStep) -> None:
    """Starts an episode."""
    self._actor.observe_first(timestep)
    self._action = None
    self._episode = episode_lib.EpisodeMetrics()

  def select_action(self, observation: Any) -> np.ndarray:
    """Returns the action of the agent or of the behavior that has control."""
    choice = np.asarray(self._actor.select_action(observation))
    is_first = self._action is None
    inputs = outer_core.CoreInput(
      observation=jax.tree.map(
        lambda x: np.asarray(x)[None], outer_core.own_observation(observation)
      ),
      prev_action=self._resolver.no_action if is_first else self._action[None],
      is_first=np.array([is_first]),
      choice=choice[None],
    )
    is_last = np.array([False])  # No action follows the last step.
    visible = behavior_lib.read_only((*inputs[:3], is_last))
    host_inputs = tuple(host.inputs(*visible) for host in self._hosts)
    decision = self._resolver.resolve(inputs, host_inputs)
    for host, features in zip(self._hosts, decision.features, strict=True):
      host.update(features)
    self._episode.count(
      source=decision.source, flight_length=decision.flight_length
    )
    self._action, self._label = decision.action, decision.label
    return self._action

  def observe(self, action: Any, next_timestep: dm_env.TimeStep) -> None:
    """Passes the choice and the resulting time step to the wrapped actor."""
    del action  # The wrapped actor observes its choice instead.
    self._actor.observe(self._label, next_timestep)

  def update(self, wait: bool = False) -> None:
    """Updates the wrapped actor."""
    self._actor.update(wait)

  def metrics(self) -> Dict[str, float]:
    """Returns the metrics of flights and behaviors in the current episode."""
    return self._episode.behavior_metrics()
