"""Builders of R2D2, NGU and BT with the interface of dm-acme.

The three agents share `AgentBuilder`, because they differ only in their
`assembly.Agent`. `bt.BTBuilder` creates the builder of BT.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import acme
import jax
import reverb
from acme import specs
from acme.agents.jax import builders
from acme.utils import counting, loggers

from bt_acme import assembly
from bt_acme import config as config_lib
from bt_acme.agents import acme_actor
from bt_acme.agents import acme_learner as learner_lib
from bt_acme.config import checks
from bt_acme.core import epsilon as epsilon_lib
from bt_acme.core import networks as networks_lib
from bt_acme.replay import blocks, priority_updates, sequences
from bt_acme.replay import sampler as sampler_lib
from bt_acme.replay import table as table_lib
from bt_acme.replay import writer as writer_lib


class ActingMode(NamedTuple):
  """The mode of an actor, which Acme passes as the policy network.

  Attributes:
    epsilon: the probability of a random action; constant for this actor.
    evaluation: whether to disable flights.
  """

  epsilon: float
  evaluation: bool = False


class AgentBuilder(builders.ActorLearnerBuilder):
  """Builds the replay, actors and learner of an agent.

  Attributes:
    agent: the agent.
  """

  def __init__(self, agent: assembly.Agent):
    self.agent = agent

  @property
  def networks(self) -> networks_lib.QNetwork:
    """The Q-network, which Acme's layouts call networks."""
    return self.agent.network

  def make_policy(
    self, epsilon: float | None = None, evaluation: bool = False
  ) -> ActingMode:
    """Returns the policy for `make_actor`.

    Args:
      epsilon: the probability of a random action, for training too; None for
        the configured `evaluation_epsilon`.
      evaluation: whether to disable flights.

    Raises:
      ValueError: if epsilon is not a probability.
    """
    if epsilon is None:
      epsilon = self.agent.config.acting.evaluation_epsilon
    epsilon_lib.check(epsilon)
    return ActingMode(epsilon, evaluation)

  def make_replay_tables(
    self, environment_spec: specs.EnvironmentSpec | None
  ) -> list[reverb.Table]:
    """Returns the replay table of sequences."""
    del environment_spec  # The agent knows the shapes of its environment.
    return [
      table_lib.make_table(
        self.agent.replay_layout,
        batch_size=self.agent.config.learner.batch_size,
      )
    ]

  def make_dataset_iterator(
    self, replay_client: reverb.Client
  ) -> sampler_lib.SequenceSampler:
    """Returns an iterator of batches; threads prefetch them until `stop()`."""
    return sampler_lib.SequenceSampler(
      replay_client,
      self.agent.replay_layout,
      batch_size=self.agent.config.learner.batch_size,
    )

  def make_sink(
    self, replay_client: reverb.Client
  ) -> tuple[sequences.SequenceSink, writer_lib.ReverbWriter]:
    """Returns a sink for one environment's transitions, and its writer.

    Args:
      replay_client: the client of the replay server.
    """
    config, layout = self.agent.config, self.agent.replay_layout
    writer = writer_lib.ReverbWriter(replay_client, layout)
    sink = sequences.SequenceSink(
      config, layout, writer.write, num_actions=self.agent.spec.num_actions
    )
    return sink, writer

  def make_adder(self, replay_client: reverb.Client) -> sequences.SequenceSink:
    """Returns the sink of one environment, which `make_actor` takes as adder.

    The sink takes the transitions of this package's actors, which contain more
    than the arguments of an Acme adder.

    Args:
      replay_client: the client of the replay server.
    """
    return self.make_sink(replay_client)[0]

  def make_actor(
    self,
    random_key: jax.Array,
    policy_network: ActingMode,
    adder: sequences.SequenceSink | None = None,
    variable_source: acme.VariableSource | None = None,
  ) -> acme.Actor:
    """Returns an Acme actor for one environment.

    Args:
      random_key: the key that seeds the actor.
      policy_network: the result of `make_policy`.
      adder: the result of `make_adder`; None to record nothing.
      variable_source: the learner.

    Raises:
      ValueError: if `variable_source` is None, or if the policy or the adder is
        another one.
    """
    if not isinstance(adder, (sequences.SequenceSink, type(None))):
      raise ValueError(
        f'adder={adder!r} is not a sink. Pass the result of make_adder.'
      )
    checks.require(
      isinstance(policy_network, ActingMode),
      f'policy_network={policy_network!r} is another policy. Pass the result '
      'of make_policy.',
    )
    if variable_source is None:
      raise ValueError(
        'variable_source=None, but an actor fetches its parameters from a '
        'learner. Pass the learner that make_learner returned.'
      )
    return acme_actor.Actor(
      self.agent,
      random_key,
      epsilon=policy_network.epsilon,
      evaluation=policy_network.evaluation,
      variable_source=variable_source,
      adder=adder,
    )

  def make_learner(
    self,
    random_key: jax.Array,
    networks: Any,
    dataset: Iterator[blocks.Sample],
    replay_client: reverb.Client | None = None,
    counter: counting.Counter | None = None,
    *,
    logger: loggers.Logger | None = None,
    initial_params: Any = None,
  ) -> learner_lib.Learner:
    """Returns the learner.

    Args:
      random_key: the key that initializes the parameters.
      networks: ignored, because the agent has its own network.
      dataset: the result of `make_dataset_iterator`.
      replay_client: the client that updates priorities; None to leave them
        unchanged.
      counter: the counter of `learner_steps`.
      logger: the logger of metrics; None for Acme's, which shows them in the
        log of absl.
      initial_params: initial parameters of the Q-network; None for random
        initialization.
    """
    del networks
    logger = logger or loggers.make_default_logger('learner', save_data=False)
    updater = None
    if replay_client is not None:
      updater = priority_updates.PriorityUpdater(replay_client)
    return learner_lib.Learner(
      self.agent,
      random_key,
      dataset,
      priority_updater=updater,
      counter=counter,
      logger=logger,
      initial_params=initial_params,
    )


def _agent(config: Any, spec: Any, config_class: type) -> assembly.Agent:
  """Returns an agent; raises ValueError for the arguments of another one."""
  checks.require(
    type(config) is config_class,
    f'config is a {type(config).__name__}, but this builder needs the '
    f'{config_class.__name__} of bt_acme. Choose the builder of your agent.',
  )
  checks.require(
    isinstance(spec, assembly.EnvironmentSpec),
    f'spec is a {type(spec).__module__}.{type(spec).__name__}. Pass the result '
    'of bt_acme.agents.spec_of(environment, NAME).',
  )
  return assembly.Agent(config, spec)


class R2D2Builder(AgentBuilder):
  """Builds R2D2 (Kapturowski et al. 2019), which learns with Peng's Q(lambda).

  Attributes:
    agent: the agent.

  Example:
    ```python
    from bt_acme import agents, config, environments

    environment = environments.make('Chain-49', seed=0)
    spec = agents.spec_of(environment, 'Chain-49')
    builder = agents.R2D2Builder(config.R2D2Config(), spec)
    ```
  """

  def __init__(
    self, config: config_lib.R2D2Config, spec: assembly.EnvironmentSpec
  ):
    """Initializes the builder and checks that the settings fit the environment.

    Args:
      config: the settings of the agent.
      spec: the spec of the environment, from `bt_acme.agents.spec_of`.
    """
    super().__init__(_agent(config, spec, config_lib.R2D2Config))


class NGUBuilder(AgentBuilder):
  """Builds NGU, the exploring agent of Badia et al. 2020 (arXiv:2002.06038).

  Neither the learner nor the network uses the reward of the task.

  Attributes:
    agent: the agent.

  Example:
    ```python
    from bt_acme import agents, config, environments

    environment = environments.make('Chain-49', seed=0)
    spec = agents.spec_of(environment, 'Chain-49')
    builder = agents.NGUBuilder(config.NGUConfig(), spec)
    ```
  """

  def __init__(
    self, config: config_lib.NGUConfig, spec: assembly.EnvironmentSpec
  ):
    """Initializes the builder and checks that the settings fit the environment.

    Args:
      config: the settings of the agent; `intrinsic_reward` selects NGU, RND or
        a constant reward.
      spec: the spec of the environment, from `bt_acme.agents.spec_of`.
    """
    super().__init__(_agent(config, spec, config_lib.NGUConfig))
