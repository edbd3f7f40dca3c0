"""Behavior transfer for unmodified builders of dm-acme.

The actor, replay and learner of such a builder do not know about behaviors.
Only the actor is wrapped (`actor.BTActor`): the wrapped actor always observes
the choice that would have had the same outcome, so neither its replay nor its
learner changes. For extra actions, the agent gets a spec with an additional
action for each behavior (`WrappedBuilder.agent_spec`).
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

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

# A builder of dm-acme, or a function that returns a builder for a spec.
BaseBuilder: TypeAlias = (
  builders.GenericActorLearnerBuilder
  | Callable[[specs.EnvironmentSpec], builders.GenericActorLearnerBuilder]
)


class EvaluationPolicy(NamedTuple):
  """The wrapped builder's policy for an actor without flights."""

  policy: Any


def _make_base(
  base_builder: BaseBuilder,
  agent_spec: specs.EnvironmentSpec,
  *,
  extra_action: bool,
) -> builders.GenericActorLearnerBuilder:
  """Returns the builder to wrap.

  A function is called with `agent_spec`; a builder is returned unchanged.

  Raises:
    ValueError: if `base_builder` is not a builder and does not return one, or
      if extra actions are enabled and the builder already exists.
  """
  if isinstance(base_builder, builders.GenericActorLearnerBuilder):
    if extra_action:
      raise ValueError(
        'extra_action=True needs an agent with an additional action for each '
        f'behavior, but base_builder={type(base_builder).__name__} already '
        'exists without them. Pass a function that creates the builder, '
        'lambda environment_spec: ..., or set '
        'TransferConfig(extra_action=False).'
      )
    return base_builder
  made = base_builder(agent_spec) if callable(base_builder) else None
  if not isinstance(made, builders.GenericActorLearnerBuilder):
    raise ValueError(
      f'base_builder={base_builder!r} is neither a builder of dm-acme nor a '
      'function that returns such a builder for an environment spec. Pass '
      'one of the two.'
    )
  return made


class WrappedBuilder(builders.ActorLearnerBuilder):
  """Adds behavior transfer to the actors of any builder of dm-acme.

  Attributes:
    agent_spec: the environment spec of the wrapped agent. With extra actions,
      the spec has an additional action for each behavior.
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
    """Initializes the builder and checks that its arguments are compatible.

    Args:
      base_builder: a function that returns the agent's builder for
        `agent_spec`; without extra actions, the builder itself can be passed
        too.
      behaviors: the behaviors to transfer.
      config: the settings of flights and extra actions.
      environment_spec: the result of `acme.make_environment_spec`.
      behavior_weights: the weights with which a flight draws its behavior;
        uniform if empty.
    """
    self._transfer = outer_core.Transfer(
      tuple(behaviors), config, environment_spec, tuple(behavior_weights)
    )
    checks.check_actions(environment_spec, config)
    checks.check_behaviors(self._transfer.behaviors, environment_spec)
    # Creating a core checks the settings; the core itself is not needed.
    outer_core.make_core(self._transfer)
    self.agent_spec = environment_spec
    if config.extra_action:
      actions = environment_spec.actions
      num_choices = actions.num_values + len(self._transfer.behaviors)
      self.agent_spec = environment_spec._replace(
        actions=specs.DiscreteArray(num_choices, actions.dtype, actions.name)
      )
    self._builder = _make_base(
      base_builder, self.agent_spec, extra_action=config.extra_action
    )

  def make_networks(
    self, network_factory: Callable[[specs.EnvironmentSpec], Any]
  ) -> Any:
    """Returns the networks of the agent for `agent_spec`.

    Args:
      network_factory: a function that returns networks for an environment spec,
        as in Acme's layouts.

    Raises:
      ValueError: if the number of outputs differs from the number of choices.
    """
    networks = network_factory(self.agent_spec)
    checks.check_outputs(
      networks, self._transfer.environment_spec, self.agent_spec
    )
    return networks

  def make_evaluation_policy(self, policy_network: Any) -> EvaluationPolicy:
    """Returns the `policy_network` for an actor without flights.

    Args:
      policy_network: the policy for the wrapped builder.
    """
    return EvaluationPolicy(policy_network)

  def make_replay_tables(
    self, environment_spec: specs.EnvironmentSpec
  ) -> list[reverb.Table]:
    """Returns the replay tables of the wrapped builder for `agent_spec`."""
    del environment_spec
    return self._builder.make_replay_tables(self.agent_spec)

  def make_dataset_iterator(
    self, replay_client: reverb.Client
  ) -> Iterator[Any]:
    """Returns the dataset of the wrapped builder."""
    return self._builder.make_dataset_iterator(replay_client)

  def make_adder(self, replay_client: reverb.Client) -> adders.Adder | None:
    """Returns the adder of the wrapped builder."""
    return self._builder.make_adder(replay_client)

  def make_actor(
    self,
    random_key: jax.Array,
    policy_network: Any,
    adder: adders.Adder | None = None,
    variable_source: acme.VariableSource | None = None,
  ) -> actor_lib.BTActor:
    """Returns the actor of the wrapped builder with behavior transfer.

    Args:
      random_key: the key that seeds the actor, its flights and its behaviors.
      policy_network: the policy for the wrapped builder, for an actor with
        flights; the result of `make_evaluation_policy` for an actor without
        flights.
      adder: the result of `make_adder`; None to record nothing.
      variable_source: the learner.
    """
    evaluation = isinstance(policy_network, EvaluationPolicy)
    if evaluation:
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
    replay_client: reverb.Client | None = None,
    counter: counting.Counter | None = None,
  ) -> acme.Learner:
    """Returns the learner of the wrapped builder.

    Args:
      random_key: see the wrapped builder.
      networks: the result of `make_networks`.
      dataset: the result of `make_dataset_iterator`.
      replay_client: see the wrapped builder.
      counter: see the wrapped builder.

    Raises:
      ValueError: if the number of outputs differs from the number of choices.
    """
    checks.check_outputs(
      networks, self._transfer.environment_spec, self.agent_spec
    )
    return self._builder.make_learner(
      random_key, networks, dataset, replay_client, counter
    )
