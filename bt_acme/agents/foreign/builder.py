"""Behavior Transfer around agents that are not ours.

A builder of dm-acme makes an actor, a replay and a learner that know nothing of
behaviors, and all of them stay as they are: behavior transfer happens around
the actor. At every step the actor within chooses and every behavior proposes;
the environment receives what flights and the extra action make of the two, and
the actor within is told the *choice* that would have had the same outcome. That
is what its adder writes and its learner trains. The extra action of each
behavior is one action more of an environment that the agent believes in
(`WrappedBuilder.agent_spec`).
"""

from typing import (
  Any,
  Callable,
  Dict,
  Iterator,
  List,
  NamedTuple,
  Optional,
  Sequence,
  Tuple,
  Union,
  cast,
)

import acme
import dm_env
import jax
import jax.numpy as jnp
import numpy as np
import reverb
from acme import adders, specs
from acme.agents.jax import builders, r2d2
from acme.jax import networks as networks_lib
from acme.utils import counting
from acme.wrappers import observation_action_reward as oar

from bt_acme import config as config_lib
from bt_acme.acting import behavior as behaviors_lib
from bt_acme.behaviors import exported
from bt_acme.core import types
from bt_acme.core.behavior_transfer import behavior_core, bt_actor

_BATCH_SIZE = 1  # Of the made-up observations that show a network's outputs.

# A builder of dm-acme, or what makes one for an environment.
BaseBuilder = Union[
  builders.GenericActorLearnerBuilder,
  Callable[[specs.EnvironmentSpec], builders.GenericActorLearnerBuilder],
]


def _is_discrete(environment_spec: specs.EnvironmentSpec) -> bool:
  return isinstance(environment_spec.actions, specs.DiscreteArray)


def _own_observation(observation: Any) -> Any:
  """What the environment showed, without what Acme's OAR wrapper adds."""
  return (
    observation.observation
    if isinstance(observation, oar.OAR)
    else (observation)
  )


class _Input(NamedTuple):
  """As `types.AgentInput`, with what the actor within chose."""

  observation: Any
  prev_action: Any  # int32 [1]
  is_first: Any  # bool [1]
  choice: Any  # int32 [1]


def _outer_core() -> types.ActorCore:
  """An agent that has chosen elsewhere: its choice comes with its input."""
  return types.ActorCore(
    init=lambda key: (),
    select_action=lambda params, inputs, state: (inputs.choice, state),
    get_extras=lambda state: {},
  )


def _make_core(
  behaviors: Sequence[behaviors_lib.Behavior],
  config: config_lib.TransferConfig,
  behavior_weights: Sequence[float],
  environment_spec: specs.EnvironmentSpec,
  evaluation: bool,
) -> types.ActorCore:
  """Flights and the extra action around choices made elsewhere.

  Vectors never enter it: there it only says who acts.
  """
  if _is_discrete(environment_spec):
    num_actions = environment_spec.actions.num_values
    observation = _own_observation(environment_spec.observations)
    cores = [
      behaviors_lib.make_core(behavior, num_actions, observation)
      for behavior in behaviors
    ]
  else:
    num_actions = 1
    cores = [behavior_core.external() for _ in behaviors]
  core = bt_actor.wrap(
    _outer_core(),
    cores,
    config,
    num_actions=num_actions,
    behavior_weights=behavior_weights,
    evaluation=evaluation,
  )
  jax.eval_shape(core.init, jax.random.key(0))  # Or actors would fail.
  return core


class _Decision(NamedTuple):
  """What the core made of one step; one environment, [1]."""

  resolution: bt_actor.Resolution
  behavior: jax.Array  # int32 [1], which one flies
  flight_length: jax.Array  # int32 [1]
  proposals: jax.Array  # int32 [1, K]
  features: Tuple[Any, ...]


class BTActor(acme.Actor):
  """Puts flights and the extra action around an actor."""

  def __init__(
    self,
    actor: acme.Actor,
    behaviors: Sequence[behaviors_lib.Behavior],
    config: config_lib.TransferConfig,
    *,
    environment_spec: specs.EnvironmentSpec,
    random_key: jax.Array,
    behavior_weights: Sequence[float] = (),
    evaluation: bool = False,
  ):
    """Wraps an actor.

    Args:
      actor: any; with extra actions it chooses among A + K, K the number of
        behaviors.
      behaviors: K of them.
      config: of flights and extra actions.
      environment_spec: of the environment itself.
      random_key: of flights and behaviors.
      behavior_weights: with which a flight draws one; uniform if empty.
      evaluation: leaves flights out; the extra action stays.
    """
    self._actor = actor
    self._spec = environment_spec.actions
    self._discrete = _is_discrete(environment_spec)
    if self._discrete:
      action_spec: behaviors_lib.ActionSpec = self._spec.num_values
      self._no_action = np.full([1], types.NO_ACTION, np.int32)
      extra = len(behaviors) if config.extra_action else 0
      self._num_choices = self._spec.num_values + extra
      self._params = tuple(
        jax.device_put(behavior.params()) for behavior in behaviors
      )
    else:
      action_spec = self._spec
      self._no_action = np.zeros([1, *self._spec.shape], self._spec.dtype)
      self._params = ((),) * len(behaviors)
    host_key, core_key = jax.random.split(random_key)
    seed = int(jax.random.randint(host_key, [], 0, 2**31 - 1))
    self._behaviors = tuple(behaviors)
    self._hosts = behaviors_lib.make_hosts(
      behaviors, action_spec, seed=seed, environments=[0]
    )
    core = _make_core(
      behaviors, config, behavior_weights, environment_spec, evaluation
    )

    def step(params: Any, inputs: Any, state: Any) -> Any:
      _, state = jax.vmap(core.select_action, in_axes=(None, 0, 0))(
        params, inputs, state
      )
      extras = jax.vmap(core.get_extras)(state)
      return _Decision(
        state.resolution,
        state.flight_step.behavior,
        extras['flight_length'],
        extras['proposals'],
        extras['features'],
      ), state

    self._step = jax.jit(step)
    self._state = jax.vmap(core.init)(core_key[None])
    self._is_first = True
    self._action: Any = None
    self._label: Any = None
    self._turns = 0
    self._sources = np.zeros(3, np.int64)
    self._flights = 0

  def observe_first(self, timestep: dm_env.TimeStep) -> None:
    self._actor.observe_first(timestep)
    self._is_first = True
    self._sources = np.zeros(3, np.int64)
    self._flights = 0

  def select_action(self, observation: Any) -> np.ndarray:
    choice = np.asarray(self._actor.select_action(observation))
    seen = jax.tree.map(
      lambda x: np.asarray(x)[None], _own_observation(observation)
    )
    is_first = np.array([self._is_first])
    before = self._no_action if self._is_first else self._action[None]
    shown = behaviors_lib.read_only((seen, before, is_first, np.array([False])))
    feeds = tuple(host.feed(*shown) for host in self._hosts)
    if self._discrete:
      self._label, self._action = self._resolve(
        choice, _Input(seen, before, is_first, choice[None]), feeds
      )
    else:
      self._action = self._choose_vector(choice, feeds)
      self._label = self._action
    self._is_first = False
    return self._action

  def _resolve(
    self, choice: np.ndarray, inputs: _Input, feeds: Tuple[Any, ...]
  ) -> Tuple[np.ndarray, np.ndarray]:
    """The choice that replay is told, and the action that is executed."""
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
    decision = self._decide(inputs, feeds)
    behaviors_lib.check_proposals(
      self._behaviors,
      np.asarray(decision.proposals),
      num_actions=self._spec.num_values,
      actor_step=self._turns,
    )
    self._turns += 1
    for host, features in zip(self._hosts, decision.features, strict=True):
      host.digest(features)
    resolution = decision.resolution
    return (
      np.asarray(resolution.choice)[0].astype(choice.dtype),
      np.asarray(resolution.action)[0].astype(self._spec.dtype),
    )

  def _choose_vector(
    self, choice: np.ndarray, proposals: Tuple[np.ndarray, ...]
  ) -> np.ndarray:
    """The vector of whoever has control."""
    nothing = np.zeros([1], np.int32)
    inputs = _Input((), nothing, np.array([self._is_first]), nothing)
    decision = self._decide(inputs, (nothing,) * len(proposals))
    if decision.resolution.source[0] == types.FLIGHT:
      return proposals[int(decision.behavior[0])][0]
    return choice

  def _decide(self, inputs: _Input, feeds: Tuple[Any, ...]) -> _Decision:
    all_inputs = bt_actor.BTInput(cast(Any, inputs), feeds)
    decision, self._state = self._step(
      bt_actor.BTParams((), self._params), all_inputs, self._state
    )
    self._sources[int(decision.resolution.source[0])] += 1
    self._flights += int(decision.flight_length[0] > 0)
    return decision

  def observe(self, action: Any, next_timestep: dm_env.TimeStep) -> None:
    del action  # It is the one selected; the actor within knows the choice.
    self._actor.observe(self._label, next_timestep)

  def update(self, wait: bool = False) -> None:
    self._actor.update(wait)

  def metrics(self) -> Dict[str, float]:
    """Of the episode so far: flights, and the behaviors' share of its steps."""
    steps = max(self._sources.sum(), 1)
    return {
      'flights': self._flights,
      'mean_flight_length': self._sources[types.FLIGHT] / max(self._flights, 1),
      'flight_share': self._sources[types.FLIGHT] / steps,
      'behavior_share': self._sources[[types.EXTRA, types.FLIGHT]].sum()
      / steps,
    }


class EvaluationPolicy(NamedTuple):
  """A policy of the builder within, for an actor without flights."""

  policy: Any


def _output_shapes(
  networks: Any, environment_spec: specs.EnvironmentSpec
) -> Optional[List[Tuple[int, ...]]]:
  """Shapes of a Q-network's outputs without the batch; None if it hides them.

  Nothing is computed.
  """
  observations = jax.tree.map(
    lambda x: jnp.zeros((_BATCH_SIZE, *x.shape), x.dtype),
    environment_spec.observations,
  )

  def outputs(key: jax.Array) -> Any:
    if isinstance(networks, r2d2.R2D2Networks):
      params = networks.initial_state.init(key, _BATCH_SIZE)
      state = networks.initial_state.apply(params, key, _BATCH_SIZE)
      params = networks.forward.init(key, observations, state)
      return networks.forward.apply(params, key, observations, state)[0]
    return networks.apply(networks.init(key), observations)

  if not isinstance(
    networks, (r2d2.R2D2Networks, networks_lib.FeedForwardNetwork)
  ):
    return None
  shapes = jax.eval_shape(outputs, jax.random.PRNGKey(0))
  return [leaf.shape[1:] for leaf in jax.tree.leaves(shapes)]


def _check_images(behavior: exported.Exported, shown: Any) -> None:
  """Raises ValueError for observations that are no images of bytes."""
  if not isinstance(shown, specs.Array):
    shapes = jax.tree.map(lambda spec: tuple(spec.shape), shown)
    raise ValueError(
      f'behavior={behavior.folder!r} sees one image of shape '
      f'{behavior.agent.spec.observation_shape}, and this environment shows '
      f'{shapes}: wrap it so that it shows the image alone.'
    )
  if shown.dtype != np.uint8:
    raise ValueError(
      f'behavior={behavior.folder!r} sees uint8, and this environment '
      f'shows {shown.dtype}: leave the images as they are, and '
      'scale them in front of the network (agents.scale_images).'
    )


class WrappedBuilder(builders.ActorLearnerBuilder):
  """Any builder of dm-acme, with behavior transfer around its actors.

  Attributes:
    agent_spec: of the environment that the agent within believes in: with the
      extra action it has one action more for each behavior.
  """

  def __init__(
    self,
    base_builder: BaseBuilder,
    behaviors: Sequence[behaviors_lib.Behavior],
    config: config_lib.TransferConfig,
    *,
    environment_spec: specs.EnvironmentSpec,
    behavior_weights: Sequence[float] = (),
  ):
    """Checks that agent, behaviors and environment go together.

    Args:
      base_builder: a function from `agent_spec` to the builder of the agent; a
        builder will do where there is no extra action.
      behaviors: that the agent brings along.
      config: of flights and extra actions.
      environment_spec: of the environment, from `acme.make_environment_spec`.
      behavior_weights: with which a flight draws one; uniform if empty.
    """
    self._behaviors = tuple(behaviors)
    self._config = config
    self._weights = tuple(behavior_weights)
    self._spec = environment_spec
    action_spec = environment_spec.actions
    if not isinstance(action_spec, specs.Array):
      raise ValueError(
        f'the action spec {action_spec} is a structure of several: behavior '
        'transfer needs one discrete action or one vector.'
      )
    discrete = _is_discrete(environment_spec)
    if config.extra_action and not discrete:
      raise ValueError(
        'extra_action=True needs an agent that chooses one of a number of '
        f'actions, and this environment takes {action_spec}: set '
        'TransferConfig(extra_action=False), flights alone work.'
      )
    observation_spec = _own_observation(environment_spec.observations)
    for behavior in self._behaviors:
      if isinstance(behavior, exported.Exported):
        _check_images(behavior, observation_spec)
      behavior.validate(
        getattr(observation_spec, 'shape', ()),
        action_spec.num_values if discrete else action_spec,
      )
    _make_core(self._behaviors, config, self._weights, environment_spec, False)
    self.agent_spec = environment_spec
    if config.extra_action:
      self.agent_spec = environment_spec._replace(
        actions=specs.DiscreteArray(
          action_spec.num_values + len(self._behaviors),
          dtype=action_spec.dtype,
          name=action_spec.name,
        )
      )
    self._builder = self._make_builder(base_builder)

  def _make_builder(
    self, base_builder: BaseBuilder
  ) -> builders.GenericActorLearnerBuilder:
    if isinstance(base_builder, builders.GenericActorLearnerBuilder):
      if self._config.extra_action:
        raise ValueError(
          f'extra_action=True: {type(base_builder).__name__} is made already, '
          'and its agent needs one action more for each behavior. Pass a '
          'function that makes it, lambda environment_spec: ..., or set '
          'TransferConfig(extra_action=False).'
        )
      return base_builder
    made = base_builder(self.agent_spec) if callable(base_builder) else None
    if not isinstance(made, builders.GenericActorLearnerBuilder):
      raise ValueError(
        f'base_builder={base_builder!r} is neither a builder of dm-acme nor a '
        'function from an environment spec to one.'
      )
    return made

  def make_networks(
    self, network_factory: Callable[[specs.EnvironmentSpec], Any]
  ) -> Any:
    """The networks of the agent, for the environment that it believes in.

    Args:
      network_factory: environment spec -> networks, as Acme's layouts take it.

    Raises:
      ValueError: if they have another number of outputs than there are choices.
    """
    networks = network_factory(self.agent_spec)
    self._check_outputs(networks)
    return networks

  def _check_outputs(self, networks: Any) -> None:
    if not _is_discrete(self._spec):
      return
    num_choices = self.agent_spec.actions.num_values
    shapes = _output_shapes(networks, self._spec)
    if shapes is not None and not any(num_choices in x for x in shapes):
      raise ValueError(
        f'the network has outputs of shape {shapes[0]}, and the agent needs '
        f'{(num_choices,)}: {self._spec.actions.num_values} actions and '
        f'{num_choices - self._spec.actions.num_values} behaviors. Make it '
        'with BTBuilder.make_networks.'
      )

  def make_evaluation_policy(self, policy_network: Any) -> EvaluationPolicy:
    """What `make_actor` takes for an actor without flights.

    Args:
      policy_network: as the builder within takes it.
    """
    return EvaluationPolicy(policy_network)

  def make_replay_tables(
    self, environment_spec: specs.EnvironmentSpec
  ) -> List[reverb.Table]:
    """Tables for the environment that the agent believes in."""
    del environment_spec
    return self._builder.make_replay_tables(self.agent_spec)

  def make_dataset_iterator(
    self, replay_client: reverb.Client
  ) -> Iterator[Any]:
    return self._builder.make_dataset_iterator(replay_client)

  def make_adder(self, replay_client: reverb.Client) -> Optional[adders.Adder]:
    return self._builder.make_adder(replay_client)

  def make_actor(
    self,
    random_key: jax.Array,
    policy_network: Any,
    adder: Optional[adders.Adder] = None,
    variable_source: Optional[acme.VariableSource] = None,
  ) -> BTActor:
    """The actor of the builder within, with behavior transfer around it.

    Args:
      random_key: seeds both.
      policy_network: as the builder within takes it, for an actor with flights;
        of `make_evaluation_policy` for one without.
      adder: of `make_adder`; None records nothing.
      variable_source: the learner.
    """
    evaluation = isinstance(policy_network, EvaluationPolicy)
    if isinstance(policy_network, EvaluationPolicy):
      policy_network = policy_network.policy
    actor_key, transfer_key = jax.random.split(random_key)
    actor = self._builder.make_actor(
      actor_key, policy_network, adder, variable_source
    )
    return BTActor(
      actor,
      self._behaviors,
      self._config,
      environment_spec=self._spec,
      random_key=transfer_key,
      behavior_weights=self._weights,
      evaluation=evaluation,
    )

  def make_learner(
    self,
    random_key: jax.Array,
    networks: Any,
    dataset: Iterator[Any],
    replay_client: Optional[reverb.Client] = None,
    counter: Optional[counting.Counter] = None,
  ) -> acme.Learner:
    self._check_outputs(networks)
    return self._builder.make_learner(
      random_key, networks, dataset, replay_client, counter
    )
