"""Decides at each step whether an external agent or a behavior acts.

A resolver receives the agent's choice and the proposals of the behaviors.
Flights and the extra action determine which action the environment receives and
which choice the agent observes. `DiscreteResolver` supports discrete actions,
with or without the extra action. `VectorResolver` supports vector actions, with
flights only.
"""

import abc
import functools
from typing import Any, NamedTuple, Sequence, Tuple, cast

import jax
import numpy as np
from acme import specs

from bt_acme.acting import behavior as behavior_lib
from bt_acme.agents.external import outer_core
from bt_acme.core import types
from bt_acme.core.behavior_transfer import bt_actor


class Shown(NamedTuple):
  """The inputs for hosts of behaviors at one step of one environment.

  The arrays have a leading dimension of 1; hosts receive them read-only.

  Attributes:
    observation: the environment's observation, a tree of arrays [1, ...].
    prev_action: the previously executed action, [1, ...]; a resolver's
      `no_action` at the first step of an episode.
    is_first: bool [1], whether an episode starts.
    is_last: bool [1], always False, because no action follows the last step.
  """

  observation: Any
  prev_action: np.ndarray
  is_first: np.ndarray
  is_last: np.ndarray


class Decision(NamedTuple):
  """A resolver's decision about one choice.

  Attributes:
    action: the action for the environment.
    label: the choice that the agent observes; this choice would have had the
      same outcome.
    source: OWN, EXTRA or FLIGHT, as in `core.types`.
    flight_length: the length of a flight that starts at this step, or 0.
    features: the update for the host of each behavior, trees [1, ...].
  """

  action: np.ndarray
  label: np.ndarray
  source: int
  flight_length: int
  features: Tuple[Any, ...]


class Resolver(abc.ABC):
  """Decides who acts in one environment, and which action is executed.

  Attributes:
    action_spec: the number of discrete actions, or the spec of a vector.
    no_action: [1, ...], the previous action at the first step of an episode.
  """

  action_spec: behavior_lib.ActionSpec
  no_action: np.ndarray

  def __init__(
    self,
    transfer: outer_core.Transfer,
    params: Sequence[Any],
    *,
    key: jax.Array,
    evaluation: bool,
  ):
    """Initializes the core and its state.

    Args:
      transfer: the behaviors to transfer, with their settings.
      params: the parameters of each behavior's core.
      key: the key that seeds flights and behaviors.
      evaluation: whether to disable flights.
    """
    core = outer_core.make_core(transfer, evaluation=evaluation)
    self._transfer = transfer
    self._params = bt_actor.BTParams((), tuple(params))
    self._step = jax.jit(functools.partial(outer_core.step, core))
    self._state = jax.vmap(core.init)(key[None])

  def _advance(
    self, inputs: outer_core.CoreInput, host_inputs: Tuple[Any, ...]
  ) -> outer_core.CoreStep:
    """Advances the core by one step."""
    all_inputs = bt_actor.BTInput(cast(Any, inputs), host_inputs)
    made, self._state = self._step(self._params, all_inputs, self._state)
    return jax.tree.map(np.asarray, made)

  @abc.abstractmethod
  def resolve(
    self, choice: np.ndarray, shown: Shown, host_inputs: Tuple[Any, ...]
  ) -> Decision:
    """Decides about the next step of the environment.

    Args:
      choice: the agent's choice, without a batch dimension.
      shown: the observation and previous action of the environment.
      host_inputs: the inputs from the K hosts, trees of arrays [1, ...].
    """


class DiscreteResolver(Resolver):
  """Flights and the extra action, for discrete actions."""

  def __init__(
    self, transfer: outer_core.Transfer, *, key: jax.Array, evaluation: bool
  ):
    params = [jax.device_put(one.params()) for one in transfer.behaviors]
    super().__init__(transfer, params, key=key, evaluation=evaluation)
    self._spec: specs.DiscreteArray = transfer.environment_spec.actions
    self.action_spec = self._spec.num_values
    self.no_action = np.full([1], types.NO_ACTION, np.int32)
    self._num_choices = self._spec.num_values
    if transfer.config.extra_action:
      self._num_choices += len(transfer.behaviors)
    self._steps = 0

  def resolve(
    self, choice: np.ndarray, shown: Shown, host_inputs: Tuple[Any, ...]
  ) -> Decision:
    """Decides about the next step; see `Resolver.resolve`."""
    self._check(choice)
    inputs = outer_core.CoreInput(
      shown.observation, shown.prev_action, shown.is_first, choice[None]
    )
    step = self._advance(inputs, host_inputs)
    behavior_lib.check_proposals(
      self._transfer.behaviors,
      step.proposals,
      num_actions=self._spec.num_values,
      actor_step=self._steps,
    )
    self._steps += 1
    action = np.asarray(step.resolution.action)[0]
    label = np.asarray(step.resolution.choice)[0]
    return Decision(
      action=action.astype(self._spec.dtype),
      label=label.astype(choice.dtype),
      source=int(step.resolution.source[0]),
      flight_length=int(step.flight_length[0]),
      features=step.features,
    )

  def _check(self, choice: np.ndarray) -> None:
    if choice.shape != () or choice.dtype.kind not in 'iu':
      raise TypeError(
        f'The agent selected an action of dtype {choice.dtype} and shape '
        f'{choice.shape}, but this environment needs a single integer. Pass a '
        'policy that returns an integer below '
        f'{self._num_choices} for an observation without a batch dimension.'
      )
    if not 0 <= choice < self._num_choices:
      raise ValueError(
        f'The agent selected {choice}, but there are only {self._num_choices} '
        f'choices ({self._spec.num_values} actions, the rest behaviors). '
        'Create its network with BTBuilder.make_networks, so that the number '
        'of outputs is correct.'
      )


class VectorResolver(Resolver):
  """Flights for vector actions, which the agent or a behavior's host supplies.

  Behaviors propose vectors through the inputs from their hosts.
  """

  def __init__(
    self, transfer: outer_core.Transfer, *, key: jax.Array, evaluation: bool
  ):
    nothing = ((),) * len(transfer.behaviors)
    super().__init__(transfer, nothing, key=key, evaluation=evaluation)
    spec: specs.Array = transfer.environment_spec.actions
    self.action_spec = spec
    self.no_action = np.zeros([1, *spec.shape], spec.dtype)

  def resolve(
    self, choice: np.ndarray, shown: Shown, host_inputs: Tuple[Any, ...]
  ) -> Decision:
    """Decides about the next step; see `Resolver.resolve`."""
    nothing = np.zeros([1], np.int32)
    inputs = outer_core.CoreInput((), nothing, shown.is_first, nothing)
    step = self._advance(inputs, (nothing,) * len(host_inputs))
    source = int(step.resolution.source[0])
    action = choice
    if source == types.FLIGHT:
      action = host_inputs[int(step.behavior[0])][0]
    return Decision(
      action=action,
      label=action,
      source=source,
      flight_length=int(step.flight_length[0]),
      features=step.features,
    )


def make(
  transfer: outer_core.Transfer, *, key: jax.Array, evaluation: bool = False
) -> Resolver:
  """Returns a resolver for the actions of an environment.

  Args:
    transfer: the behaviors to transfer, with their settings.
    key: the key that seeds flights and behaviors.
    evaluation: whether to disable flights; the extra action stays enabled.
  """
  discrete = outer_core.is_discrete(transfer.environment_spec)
  kind = DiscreteResolver if discrete else VectorResolver
  return kind(transfer, key=key, evaluation=evaluation)
