"""Adds flights and the extra action to any Acme actor."""

from typing import Any, cast

import acme
import dm_env
import jax
import numpy as np

from bt_acme.acting import behavior as behavior_lib
from bt_acme.acting import episode as episode_lib
from bt_acme.agents.external import outer_core
from bt_acme.core import types
from bt_acme.core.behavior_transfer import bt_actor


class BTActor(acme.Actor):
  """Adds flights and the extra action to an actor.

  At every step, the wrapped actor makes a choice and every behavior that may
  act proposes an action. Flights and the extra action determine which action
  the environment receives; vector actions support flights only. The wrapped
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
    self._behaviors = transfer.behaviors
    self._spec: Any = transfer.environment_spec.actions
    self._is_discrete = outer_core.is_discrete(transfer.environment_spec)
    params: tuple[Any, ...]
    if self._is_discrete:
      params = tuple(jax.device_put(x.params()) for x in self._behaviors)
      # The previous action at the first step of an episode.
      self._no_action = np.full([1], types.NO_ACTION, np.int32)
      self._num_choices = self._spec.num_values
      if transfer.config.extra_action:
        self._num_choices += len(self._behaviors)
    else:
      params = ((),) * len(self._behaviors)
      self._no_action = np.zeros([1, *self._spec.shape], self._spec.dtype)
    host_key, core_key = jax.random.split(random_key)
    self._hosts = behavior_lib.make_hosts(
      self._behaviors,
      self._spec.num_values if self._is_discrete else self._spec,
      seed=int(jax.random.randint(host_key, [], 0, 2**31 - 1)),
      environments=[0],
      proposers=transfer.config.proposers(
        len(self._behaviors), evaluation=evaluation
      ),
    )
    core = outer_core.make_core(transfer, evaluation=evaluation)
    self._params = bt_actor.BTParams((), params)
    self._step = outer_core.jit_step(core)
    self._state = jax.vmap(core.init)(core_key[None])
    self._actor_steps = 0
    self._action: Any = None  # None before the first action of an episode.
    self._label: Any = None
    self._episode = episode_lib.EpisodeMetrics()

  def observe_first(self, timestep: dm_env.TimeStep) -> None:
    """Starts an episode."""
    self._actor.observe_first(timestep)
    self._action = None
    self._reward = 0.0
    self._episode = episode_lib.EpisodeMetrics()

  def select_action(self, observation: Any) -> np.ndarray:
    """Returns the action of the agent or of the behavior that has control."""
    choice = np.array(self._actor.select_action(observation))
    if self._is_discrete:
      self._check(choice)
    is_first = self._action is None
    inputs = outer_core.CoreInput(
      observation=jax.tree.map(
        lambda x: np.asarray(x)[None], outer_core.own_observation(observation)
      ),
      prev_action=self._no_action if is_first else self._action[None],
      prev_reward=np.full([1], self._reward, np.float32),
      is_first=np.array([is_first]),
      choice=choice[None],
    )
    is_last = np.array([False])  # No action follows the last step.
    visible = behavior_lib.read_only((*inputs[:2], inputs.is_first, is_last))
    host_inputs = tuple(host.inputs(*visible) for host in self._hosts)
    extras = self._advance(inputs, host_inputs)
    self._actor_steps += 1
    for k, host in enumerate(self._hosts):
      host.skip(extras['skipped'][:, k])
      host.update(extras['features'][k])
    self._episode.count(
      source=int(extras['source'][0]),
      flight_length=int(extras['flight_length'][0]),
    )
    return self._action

  def observe(self, action: Any, next_timestep: dm_env.TimeStep) -> None:
    """Passes the choice and the resulting time step to the wrapped actor."""
    del action  # The wrapped actor observes its choice instead.
    reward = np.asarray(next_timestep.reward)
    # Behaviors have no input for other rewards.
    is_number = reward.size == 1 and reward.dtype.kind in 'biuf'
    self._reward = reward.item() if is_number else 0.0
    self._actor.observe(self._label, next_timestep)

  def update(self, wait: bool = False) -> None:
    """Updates the wrapped actor."""
    self._actor.update(wait)

  def metrics(self) -> dict[str, float]:
    """Returns the metrics of flights and behaviors in the current episode."""
    return self._episode.behavior_metrics()

  def _advance(
    self, inputs: outer_core.CoreInput, host_inputs: tuple[Any, ...]
  ) -> dict[str, Any]:
    """Selects the action and its label; returns the core's extras."""
    choice, vectors = inputs.choice[0], host_inputs
    if not self._is_discrete:
      # The core only decides who acts; the vectors bypass it.
      zero = np.zeros([1], np.int32)
      inputs = inputs._replace(observation=(), prev_action=zero, choice=zero)
      host_inputs = (zero,) * len(host_inputs)
    all_inputs = bt_actor.BTInput(cast(Any, inputs), host_inputs)
    *step, self._state = self._step(self._params, all_inputs, self._state)
    action, extras = jax.tree.map(np.asarray, step)
    if self._is_discrete:
      behavior_lib.check_proposals(
        self._behaviors,
        extras['proposals'],
        num_actions=self._spec.num_values,
        actor_step=self._actor_steps,
      )
      self._action = action[0].astype(self._spec.dtype)
      self._label = extras['choice'][0].astype(choice.dtype)
    else:
      if extras['source'][0] == types.FLIGHT:
        choice = vectors[int(extras['flight_behavior'][0])][0]
      self._action = self._label = choice
    return extras

  def _check(self, choice: np.ndarray) -> None:
    is_integer = choice.shape == () and choice.dtype.kind in 'iu'
    if not is_integer or not 0 <= choice < self._num_choices:
      raise ValueError(
        f'The agent selected {choice!r} instead of a single integer below '
        f'{self._num_choices} ({self._spec.num_values} actions, the rest '
        'behaviors), for an observation without a batch dimension. Create its '
        'networks with make_networks of the builder.'
      )
