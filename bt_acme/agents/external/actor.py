"""An actor of any kind, with flights and the extra action around it."""

from typing import Any, Dict

import acme
import dm_env
import jax
import numpy as np

from bt_acme.acting import behavior as behavior_lib
from bt_acme.acting import episode as episode_lib
from bt_acme.agents.external import outer_core, resolvers


class BTActor(acme.Actor):
  """Puts flights and the extra action around an actor.

  At every step the wrapped actor chooses, and every behavior proposes. A
  resolver decides what the environment receives. The wrapped actor is told the
  choice that would have had the same outcome, and that is what its adder
  writes and its learner trains on.
  """

  def __init__(
    self,
    actor: acme.Actor,
    transfer: outer_core.Transfer,
    *,
    random_key: jax.Array,
    evaluation: bool = False,
  ):
    """Wraps an actor.

    Args:
      actor: any actor; with extra actions it chooses among A + K.
      transfer: what is transferred to it.
      random_key: the key that seeds flights and behaviors.
      evaluation: whether to leave flights out; the extra action stays.
    """
    self._actor = actor
    host_key, core_key = jax.random.split(random_key)
    self._resolver = resolvers.make(
      transfer, key=core_key, evaluation=evaluation
    )
    self._hosts = behavior_lib.make_hosts(
      transfer.behaviors,
      self._resolver.action_spec,
      seed=int(jax.random.randint(host_key, [], 0, 2**31 - 1)),
      environments=[0],
    )
    self._action: Any = None  # None before an episode's first action.
    self._label: Any = None
    self._episode = episode_lib.EpisodeMetrics()

  def observe_first(self, timestep: dm_env.TimeStep) -> None:
    self._actor.observe_first(timestep)
    self._action = None
    self._episode = episode_lib.EpisodeMetrics()

  def select_action(self, observation: Any) -> np.ndarray:
    choice = np.asarray(self._actor.select_action(observation))
    shown = self._shown(observation)
    visible = behavior_lib.read_only(shown)
    host_inputs = tuple(host.inputs(*visible) for host in self._hosts)
    decision = self._resolver.resolve(choice, shown, host_inputs)
    for host, features in zip(self._hosts, decision.features, strict=True):
      host.update(features)
    self._episode.count(
      source=decision.source, flight_length=decision.flight_length
    )
    self._action, self._label = decision.action, decision.label
    return self._action

  def _shown(self, observation: Any) -> resolvers.Shown:
    is_first = self._action is None
    return resolvers.Shown(
      observation=jax.tree.map(
        lambda x: np.asarray(x)[None], outer_core.own_observation(observation)
      ),
      prev_action=self._resolver.no_action if is_first else self._action[None],
      is_first=np.array([is_first]),
      is_last=np.array([False]),
    )

  def observe(self, action: Any, next_timestep: dm_env.TimeStep) -> None:
    del action  # It is the one selected; the wrapped actor knows the choice.
    self._actor.observe(self._label, next_timestep)

  def update(self, wait: bool = False) -> None:
    self._actor.update(wait)

  def metrics(self) -> Dict[str, float]:
    """Returns the metrics of flights and behaviors of the episode so far."""
    return self._episode.behavior_metrics()
