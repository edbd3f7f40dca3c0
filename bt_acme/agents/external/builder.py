"""Behavior Transfer around builders of dm-acme, whose parts stay as they are.

Such a builder makes an actor, a replay and a learner that know nothing of
behaviors. Behavior transfer happens around the actor alone (`actor.BTActor`):
whatever the environment receives, the wrapped actor is told the choice that
would have had the same outcome, so that its replay and its learner need no
change. For the extra actions, the agent is given a spec with one more action
per behavior (`WrappedBuilder.agent_spec`).
"""

from typing import (
  Any,
  Callable,
  Iterator,
  List,
  NamedTuple,
  Optional,
  Sequence,
  Union,
)

import acme
import jax
import reverb
from acme import adders, specs
from acme.agents.jax import builders
from acme.utils import counting

from bt_acme import config as config_lib
from bt_acme.acting import behavior as behavior_lib
from bt_acme.agents.external import actor as actor_lib
from bt_acme.agents.external import checks, outer_core

# A builder of dm-acme, or a function that makes one for an environment.
BaseBuilder = Union[
  builders.GenericActorLearnerBuilder,
  Callable[[specs.EnvironmentSpec], builders.GenericActorLearnerBuilder],
]


class EvaluationPolicy(NamedTuple):
  """A policy of the wrapped builder, for an actor without flights."""

  policy: Any


def _with_extra_actions(
  environment_spec: specs.EnvironmentSpec, num_behaviors: int
) -> specs.EnvironmentSpec:
  """Returns the same spec with one more action per behavior."""
  actions = environment_spec.actions
  return environment_spec._replace(
    actions=specs.DiscreteArray(
      actions.num_values + num_behaviors,
      dtype=actions.dtype,
      name=actions.name,
    )
  )


def _make_base(
  base_builder: BaseBuilder,
  agent_spec: specs.EnvironmentSpec,
  *,
  extra_action: bool,
) -> builders.GenericActorLearnerBuilder:
  """Returns the wrapped builder.

  If `base_builder` is a function, it is called with `agent_spec` to make it.

  Raises:
    ValueError: if there is no builder, or if it is made already and therefore
      cannot know of the extra actions.
  """
  if isinstance(base_builder, builders.GenericActorLearnerBuilder):
    if extra_action:
      raise ValueError(
        f'extra_action=True: {type(base_builder).__name__} is made already, '
        'and its agent needs one more action per behavior. Pass a '
        'function that makes it, lambda environment_spec: ..., or set '
        'TransferConfig(extra_action=False).'
      )
    return base_builder
  made = base_builder(agent_spec) if callable(base_builder) else None
  if not isinstance(made, builders.GenericActorLearnerBuilder):
    raise ValueError(
      f'base_builder={base_builder!r} is neither a builder of dm-acme nor a '
      'function from an environment spec to one.'
    )
  return made


class WrappedBuilder(builders.ActorLearnerBuilder):
  """Any builder of dm-acme, with behavior transfer around its actors.

  Attributes:
    agent_spec: the environment spec that the wrapped agent is given. With the
      extra action it has one more action per behavior.
  """

  def __init__(
    self,
    base_builder: BaseBuilder,
    behaviors: Sequence[behavior_lib.Behavior],
    config: config_lib.TransferConfig,
    *,
    environment_spec: specs.EnvironmentSpec,
    behavior_weights: Sequence[float] = (),
  ):
    """Checks that agent, behaviors and environment go together.

    Args:
      base_builder: a function from `agent_spec` to the builder of the agent;
        without the extra action, it may be the builder itself.
      behaviors: the behaviors that the agent brings along.
      config: the settings of flights and extra actions.
      environment_spec: what `acme.make_environment_spec` returns.
      behavior_weights: the weights with which a flight draws its behavior;
        uniform if empty.
    """
    self._transfer = outer_core.Transfer(
      tuple(behaviors), config, environment_spec, tuple(behavior_weights)
    )
    checks.check_actions(environment_spec, config)
    checks.check_behaviors(self._transfer.behaviors, environment_spec)
    # An actor's core is made here only to see that the settings fit.
    outer_core.make_core(self._transfer)
    self.agent_spec = environment_spec
    if config.extra_action:
      self.agent_spec = _with_extra_actions(
        environment_spec, len(self._transfer.behaviors)
      )
    self._builder = _make_base(
      base_builder, self.agent_spec, extra_action=config.extra_action
    )

  def make_networks(
    self, network_factory: Callable[[specs.EnvironmentSpec], Any]
  ) -> Any:
    """Makes the networks of the agent, for the spec that it is given.

    Args:
      network_factory: makes networks for an environment spec, as Acme's layouts
        take it.

    Raises:
      ValueError: if their outputs are not as many as there are choices.
    """
    networks = network_factory(self.agent_spec)
    checks.check_outputs(
      networks, self._transfer.environment_spec, self.agent_spec
    )
    return networks

  def make_evaluation_policy(self, policy_network: Any) -> EvaluationPolicy:
    """Returns what `make_actor` takes for an actor without flights.

    Args:
      policy_network: the policy, as the wrapped builder takes it.
    """
    return EvaluationPolicy(policy_network)

  def make_replay_tables(
    self, environment_spec: specs.EnvironmentSpec
  ) -> List[reverb.Table]:
    """Makes the tables for the spec that the agent is given."""
    del environment_spec
    return self._builder.make_replay_tables(self.agent_spec)

  def make_dataset_iterator(
    self, replay_client: reverb.Client
  ) -> Iterator[Any]:
    """Makes the dataset of the wrapped builder."""
    return self._builder.make_dataset_iterator(replay_client)

  def make_adder(self, replay_client: reverb.Client) -> Optional[adders.Adder]:
    """Makes the adder of the wrapped builder."""
    return self._builder.make_adder(replay_client)

  def make_actor(
    self,
    random_key: jax.Array,
    policy_network: Any,
    adder: Optional[adders.Adder] = None,
    variable_source: Optional[acme.VariableSource] = None,
  ) -> actor_lib.BTActor:
    """Makes the wrapped builder's actor, with behavior transfer around it.

    Args:
      random_key: the key that seeds the actor, its flights and its behaviors.
      policy_network: the policy, as the wrapped builder takes it, for an actor
        with flights; what `make_evaluation_policy` returns for one without.
      adder: what `make_adder` returns; None to record nothing.
      variable_source: the learner.
    """
    evaluation = isinstance(policy_network, EvaluationPolicy)
    if isinstance(policy_network, EvaluationPolicy):
      policy_network = policy_network.policy
    actor_key, transfer_key = jax.random.split(random_key)
    actor = self._builder.make_actor(
      actor_key, policy_network, adder, variable_source
    )
    return actor_lib.BTActor(
      actor, self._transfer, random_key=transfer_key, evaluation=evaluation
    )

  def make_learner(
    self,
    random_key: jax.Array,
    networks: Any,
    dataset: Iterator[Any],
    replay_client: Optional[reverb.Client] = None,
    counter: Optional[counting.Counter] = None,
  ) -> acme.Learner:
    """Makes the learner of the wrapped builder.

    Raises:
      ValueError: if the networks' outputs are not as many as there are choices.
    """
    checks.check_outputs(
      networks, self._transfer.environment_spec, self.agent_spec
    )
    return self._builder.make_learner(
      random_key, networks, dataset, replay_client, counter
    )
