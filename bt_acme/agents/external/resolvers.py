"""Decides at each step whether an external agent or a behavior acts.

A resolver receives the agent's choice and the proposals of the behaviors.
Flights and the extra action determine which action the environment receives and
which choice the agent observes. Vector actions support flights only.
"""

import functools
from typing import Any, NamedTuple, Tuple, cast

import jax
import numpy as np

from bt_acme.acting import behavior as behavior_lib
from bt_acme.agents.external import outer_core
from bt_acme.core import types
from bt_acme.core.behavior_transfer import bt_actor


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


class Resolver:
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
    *,
    key: jax.Array,
    evaluation: bool,
  ):
    """Initializes the core and its state.

    Args:
      transfer: the behaviors to transfer, with their settings.
      key: the key that seeds flights and behaviors.
      evaluation: whether to disable flights; the extra action stays enabled.
    """
    core = outer_core.make_core(transfer, evaluation=evaluation)
    self._behaviors = transfer.behaviors
    self._spec: Any = transfer.environment_spec.actions
    self._is_discrete = outer_core.is_discrete(transfer.environment_spec)
    params: Tuple[Any, ...]
    if self._is_discrete:
      params = tuple(jax.device_put(x.params()) for x in self._behaviors)
      self.action_spec = self._spec.num_values
      self.no_action = np.full([1], types.NO_ACTION, np.int32)
      self._num_choices = self._spec.num_values
      if transfer.config.extra_action:
        self._num_choices += len(self._behaviors)
    else:
      params = ((),) * len(self._behaviors)
      self.action_spec = self._spec
      self.no_action = np.zeros([1, *self._spec.shape], self._spec.dtype)
    self._params = bt_actor.BTParams((), params)
    self._step = jax.jit(functools.partial(outer_core.step, core))
    self._state = jax.vmap(core.init)(key[None])
    self._actor_steps = 0

  def resolve(
    self, inputs: outer_core.CoreInput, host_inputs: Tuple[Any, ...]
  ) -> Decision:
    """Decides about the next step of the environment.

    Args:
      inputs: the observation and the agent's choice.
      host_inputs: the inputs from the K hosts, trees of arrays [1, ...].

    Raises:
      TypeError: if a discrete choice is not an integer.
      ValueError: if a discrete choice or a behavior's action is out of range.
    """
    if self._is_discrete:
      step, action, label = self._resolve_discrete(inputs, host_inputs)
    else:
      step, action = self._resolve_vector(inputs, host_inputs)
      label = action
    self._actor_steps += 1
    return Decision(
      action=action,
      label=label,
      source=int(step.resolution.source[0]),
      flight_length=int(step.flight_length[0]),
      features=step.features,
    )

  def _advance(
    self, inputs: outer_core.CoreInput, host_inputs: Tuple[Any, ...]
  ) -> outer_core.CoreStep:
    """Advances the core by one step."""
    all_inputs = bt_actor.BTInput(cast(Any, inputs), host_inputs)
    step, self._state = self._step(self._params, all_inputs, self._state)
    return jax.tree.map(np.asarray, step)

  def _resolve_discrete(
    self, inputs: outer_core.CoreInput, host_inputs: Tuple[Any, ...]
  ) -> Tuple[outer_core.CoreStep, np.ndarray, np.ndarray]:
    """Returns the core's step, the action and the label."""
    self._check(inputs.choice[0])
    step = self._advance(inputs, host_inputs)
    behavior_lib.check_proposals(
      self._behaviors,
      step.proposals,
      num_actions=self._spec.num_values,
      actor_step=self._actor_steps,
    )
    action, label = (
      np.asarray(x)[0].astype(dtype)
      for x, dtype in (
        (step.resolution.action, self._spec.dtype),
        (step.resolution.choice, inputs.choice.dtype),
      )
    )
    return step, action, label

  def _resolve_vector(
    self, inputs: outer_core.CoreInput, host_inputs: Tuple[Any, ...]
  ) -> Tuple[outer_core.CoreStep, np.ndarray]:
    """Returns the core's step and the vector from the agent or from a host."""
    nothing = np.zeros([1], np.int32)
    # The core only decides who acts and does not process vectors.
    step = self._advance(
      outer_core.CoreInput((), nothing, inputs.is_first, nothing),
      (nothing,) * len(host_inputs),
    )
    if step.resolution.source[0] == types.FLIGHT:
      return step, host_inputs[int(step.behavior[0])][0]
    return step, inputs.choice[0]

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
