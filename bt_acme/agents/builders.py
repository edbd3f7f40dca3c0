"""The builders of R2D2, NGU and BT, as dm-acme expects them.

The three agents share `AgentBuilder`, because they differ in their
`assembly.Agent` alone. `bt.BTBuilder` makes the one of BT.
"""

from typing import Any, Callable, Iterator, List, NamedTuple, Optional, Tuple

import acme
import jax
import reverb
from acme import adders, specs
from acme.agents.jax import builders
from acme.utils import counting, loggers

from bt_acme import assembly
from bt_acme import config as config_lib
from bt_acme.agents import acme_actor
from bt_acme.agents import learner as learner_lib
from bt_acme.core import networks as networks_lib
from bt_acme.replay import blocks, priority_updates, sinks
from bt_acme.replay import sampler as sampler_lib
from bt_acme.replay import table as table_lib
from bt_acme.replay import writer as writer_lib


class EpsilonPolicy(NamedTuple):
  """How an actor acts. Acme passes it on as the policy network.

  Attributes:
    epsilon: the share of random actions, the same for the actor's whole life.
    evaluation: whether to leave flights out.
  """

  epsilon: float
  evaluation: bool = False


class AgentBuilder(builders.ActorLearnerBuilder):
  """Builds the parts of one agent.

  Attributes:
    agent: the agent whose parts it builds.
  """

  def __init__(self, agent: assembly.Agent):
    self.agent = agent

  @property
  def networks(self) -> networks_lib.QNetwork:
    """The Q-network, which Acme's layouts call the networks."""
    return self.agent.network

  def make_policy(
    self, epsilon: Optional[float] = None, evaluation: bool = False
  ) -> EpsilonPolicy:
    """Returns the policy for `make_actor`.

    Args:
      epsilon: the share of random actions; None takes the configuration's
        `evaluation_epsilon`.
      evaluation: whether to leave flights out.
    """
    if epsilon is None:
      epsilon = self.agent.config.acting.evaluation_epsilon
    return EpsilonPolicy(epsilon, evaluation)

  def make_replay_tables(
    self, environment_spec: Optional[specs.EnvironmentSpec]
  ) -> List[reverb.Table]:
    """Makes the table of sequences."""
    del environment_spec  # The agent knows the shapes of its environment.
    return [
      table_lib.make_table(
        self.agent.config.replay,
        self.agent.replay_shapes,
        batch_size=self.agent.config.learner.batch_size,
      )
    ]

  def make_dataset_iterator(
    self, replay_client: reverb.Client
  ) -> sampler_lib.SequenceSampler:
    """Makes batches of sequences: threads decode ahead until `stop`."""
    return sampler_lib.SequenceSampler(
      replay_client,
      self.agent.config.replay,
      self.agent.replay_shapes,
      batch_size=self.agent.config.learner.batch_size,
    )

  def make_sink(
    self,
    replay_client: reverb.Client,
    largest_priority: Optional[Callable[[], float]] = None,
  ) -> Tuple[sinks.SequenceSink, writer_lib.ReverbWriter]:
    """Makes the sink of one environment's transitions, and its writer.

    Args:
      replay_client: the client of the replay server.
      largest_priority: returns the largest priority of the learner's recent
        steps; None if there is no learner to ask.
    """
    config, shapes = self.agent.config, self.agent.replay_shapes
    writer = writer_lib.ReverbWriter(replay_client, config.replay, shapes)
    sink = sinks.make_sink(
      config,
      shapes,
      writer,
      num_actions=self.agent.spec.num_actions,
      largest_priority=largest_priority,
    )
    return sink, writer

  def make_adder(self, replay_client: reverb.Client) -> sinks.SequenceAdder:
    """Makes the adder of one environment."""
    return sinks.SequenceAdder(self.make_sink(replay_client)[0])

  def make_actor(
    self,
    random_key: jax.Array,
    policy_network: EpsilonPolicy,
    adder: Optional[adders.Adder] = None,
    variable_source: Optional[acme.VariableSource] = None,
  ) -> acme.Actor:
    """Makes an Acme actor of one environment.

    Args:
      random_key: the key that seeds the actor.
      policy_network: what `make_policy` returns.
      adder: what `make_adder` returns; None to record nothing.
      variable_source: the learner.

    Raises:
      ValueError: if there is no variable source.
    """
    if variable_source is None:
      raise ValueError(
        'variable_source=None: an actor fetches its parameters from a learner; '
        'pass the one that make_learner returned.'
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
    replay_client: Optional[reverb.Client] = None,
    counter: Optional[counting.Counter] = None,
    *,
    logger: Optional[loggers.Logger] = None,
    initial_params: Any = None,
  ) -> learner_lib.Learner:
    """Makes the learner.

    Args:
      random_key: the key that initializes the parameters.
      networks: ignored, because the agent has its own.
      dataset: what `make_dataset_iterator` returns.
      replay_client: the client that writes priorities back; None leaves them as
        they are.
      counter: the counter of `learner_steps`.
      logger: the logger of metrics.
      initial_params: parameters of the Q-network to start from; None for fresh
        ones.
    """
    del networks
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


class R2D2Builder(AgentBuilder):
  """Builds R2D2 (Kapturowski et al. 2019), which learns by Peng's Q(lambda)."""

  def __init__(
    self, config: config_lib.R2D2Config, spec: assembly.EnvironmentSpec
  ):
    """Checks that the configuration fits the environment.

    Args:
      config: the agent's settings.
      spec: the environment's spec, from `bt_acme.agents.spec_of`.
    """
    super().__init__(assembly.Agent(config, spec))


class NGUBuilder(AgentBuilder):
  """Builds NGU's explorer (Badia et al. 2020, arXiv:2002.06038).

  The task's reward reaches neither the learner nor the network.
  """

  def __init__(
    self, config: config_lib.NGUConfig, spec: assembly.EnvironmentSpec
  ):
    """Checks that the configuration fits the environment.

    Args:
      config: the agent's settings; `intrinsic_reward` chooses NGU, RND or a
        constant.
      spec: the environment's spec, from `bt_acme.agents.spec_of`.
    """
    super().__init__(assembly.Agent(config, spec))
