"""Decides at each step whether an external agent or a behavior acts.

The agent has chosen by itself. A resolver takes its choice and what the
behaviors propose, lets flights and the extra action decide between them, and
says what the environment receives and what the agent is told.
`DiscreteResolver` serves agents with discrete actions, with or without the
extra action. `VectorResolver` serves agents that act with a vector, for which
there are only flights.
"""

from typing import Any, NamedTuple, Protocol, Sequence, Tuple, Union

import jax
import numpy as np
from acme import specs

from bt_acme import config as config_lib
from bt_acme.acting import behavior as behavior_lib
from bt_acme.agents.external import outer_core
from bt_acme.core import types


class Shown(NamedTuple):
  """What one environment shows at a step, as hosts of behaviors take it.

  The arrays have a leading dimension of 1, and hosts get them read-only.

  Attributes:
    observation: a tree of arrays [1, ...], as the environment gives it.
    prev_action: the action executed before, [1, ...]; a resolver's `no_action`
      on an episode's first step.
    is_first: bool [1], whether an episode starts.
    is_last: bool [1], always False, because no action follows an episode's end.
  """

  observation: Any
  prev_action: np.ndarray
  is_first: np.ndarray
  is_last: np.ndarray


class Decision(NamedTuple):
  """What a resolver makes of one choice.

  Attributes:
    action: what the environment receives.
    label: what the agent is told: the choice that would have had the same
      outcome.
    source: OWN, EXTRA or FLIGHT, as in `core.types`.
    flight_length: the length of a flight that starts at this step, or 0.
    features: what each behavior's host is updated with, trees [1, ...].
  """

  action: np.ndarray
  label: np.ndarray
  source: int
  flight_length: int
  features: Tuple[Any, ...]


class Resolver(Protocol):
  """Decides who acts in one environment, and with what.

  Attributes:
    action_spec: the number of discrete actions, or the spec of a vector.
    no_action: [1, ...], what stands for the action before an episode's first.
  """

  action_spec: behavior_lib.ActionSpec
  no_action: np.ndarray

  def resolve(
    self, choice: np.ndarray, shown: Shown, host_inputs: Tuple[Any, ...]
  ) -> Decision:
    """Advances the environment by one step.

    Args:
      choice: what the agent picked, without a batch.
      shown: what the environment shows.
      host_inputs: what the K hosts supply, trees of arrays [1, ...].
    """


class DiscreteResolver:
  """Flights and the extra action, for discrete actions."""

  def __init__(
    self,
    core: types.ActorCore,
    behaviors: Sequence[behavior_lib.Behavior],
    config: config_lib.TransferConfig,
    *,
    spec: specs.DiscreteArray,
    key: jax.Array,
  ):
    """Starts the core.

    Args:
      core: what `outer_core.make_core` returns.
      behaviors: the K behaviors.
      config: the settings of flights and extra actions.
      spec: the spec of the environment's A actions.
      key: the key that seeds flights and behaviors.
    """
    self.action_spec: behavior_lib.ActionSpec = spec.num_values
    self.no_action = np.full([1], types.NO_ACTION, np.int32)
    self._spec = spec
    self._behaviors = tuple(behaviors)
    extra = len(behaviors) if config.extra_action else 0
    self._num_choices = spec.num_values + extra
    params = tuple(jax.device_put(behavior.params()) for behavior in behaviors)
    self._runner = outer_core.Runner(core, params, key)
    self._steps = 0

  def resolve(
    self, choice: np.ndarray, shown: Shown, host_inputs: Tuple[Any, ...]
  ) -> Decision:
    self._check(choice)
    inputs = outer_core.CoreInput(
      shown.observation, shown.prev_action, shown.is_first, choice[None]
    )
    step = self._runner.step(inputs, host_inputs)
    behavior_lib.check_proposals(
      self._behaviors,
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
        f'the agent chose {choice.dtype} of shape {choice.shape}, and this '
        f'environment takes one integer: give a policy that chooses one of '
        f'{self._num_choices} for an observation without a batch.'
      )
    if not 0 <= choice < self._num_choices:
      raise ValueError(
        f'the agent chose {choice}, of {self._num_choices} choices '
        f'({self._spec.num_values} actions, the rest behaviors): its network '
        'has too many outputs. Make it with BTBuilder.make_networks.'
      )


class VectorResolver:
  """Flights, for vector actions; whoever has control supplies the vector.

  The vectors that behaviors propose are what their hosts supply.
  """

  def __init__(
    self,
    core: types.ActorCore,
    num_behaviors: int,
    *,
    spec: specs.Array,
    key: jax.Array,
  ):
    """Starts the core.

    Args:
      core: what `outer_core.make_core` returns.
      num_behaviors: K, the number of behaviors.
      spec: the spec of the environment's actions.
      key: the key that seeds flights.
    """
    self.action_spec: behavior_lib.ActionSpec = spec
    self.no_action = np.zeros([1, *spec.shape], spec.dtype)
    self._num_behaviors = num_behaviors
    self._runner = outer_core.Runner(core, ((),) * num_behaviors, key)

  def resolve(
    self, choice: np.ndarray, shown: Shown, host_inputs: Tuple[Any, ...]
  ) -> Decision:
    nothing = np.zeros([1], np.int32)
    inputs = outer_core.CoreInput((), nothing, shown.is_first, nothing)
    step = self._runner.step(inputs, (nothing,) * self._num_behaviors)
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
  behaviors: Sequence[behavior_lib.Behavior],
  config: config_lib.TransferConfig,
  *,
  environment_spec: specs.EnvironmentSpec,
  key: jax.Array,
  behavior_weights: Sequence[float] = (),
  evaluation: bool = False,
) -> Union[DiscreteResolver, VectorResolver]:
  """Makes the resolver that fits an environment's actions.

  Args:
    behaviors: the K behaviors.
    config: the settings of flights and extra actions.
    environment_spec: the spec of the environment itself.
    key: the key that seeds flights and behaviors.
    behavior_weights: the weights with which a flight draws its behavior;
      uniform if empty.
    evaluation: whether to leave flights out; the extra action stays.
  """
  core = outer_core.make_core(
    behaviors,
    config,
    environment_spec=environment_spec,
    behavior_weights=behavior_weights,
    evaluation=evaluation,
  )
  spec = environment_spec.actions
  if outer_core.is_discrete(environment_spec):
    return DiscreteResolver(core, behaviors, config, spec=spec, key=key)
  return VectorResolver(core, len(behaviors), spec=spec, key=key)
