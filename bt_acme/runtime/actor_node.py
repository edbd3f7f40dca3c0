"""The actor node, which steps environments and fills the replay."""

from collections.abc import Callable
from typing import Any

from absl import logging

from bt_acme import assembly, environments
from bt_acme.acting import actor_groups, vector_actor
from bt_acme.acting import inference_server as server_lib
from bt_acme.config import run as run_config
from bt_acme.environments import saving, vector
from bt_acme.replay import sequences
from bt_acme.runtime import node

_REPORT_PERIOD = 32  # Vector steps between two reports to the coordinator.
# Seconds that an actor without its inference server waits to be stopped.
_SERVER_IS_GONE_SECONDS = 5.0

# Makes the writer of one environment's blocks from a client of the replay, the
# layout of the replay, and the keyword argument `on_wait`.
MakeWriter = Callable[..., Any]


class ActorNode(node.Node):
  """Steps its environments until the budget is used up."""

  def __init__(
    self,
    run: run_config.RunConfig,
    agent: assembly.Agent,
    index: int,
    make_writer: MakeWriter,
    context: node.Context,
  ):
    """Initializes an actor that has not started.

    Args:
      run: the run.
      agent: the agent that acts.
      index: the index of this actor among the actors of the run.
      make_writer: makes the writer of one environment.
      context: the context, with clients of the coordinator, the learner, the
        replay, and the inference server if there is one.
    """
    super().__init__(run, context)
    self._agent = agent
    self._index = index
    self._make_writer = make_writer
    self._pipeline = actor_groups.Pipeline([])
    self._vector_steps = 0
    self._update_period = agent.config.acting.variable_update_period
    self._report_period = _REPORT_PERIOD if run.uses_launchpad else 1
    self._leased = 0  # Actor steps granted but not yet taken.
    self._taken = 0  # Actor steps since the last report.
    self._episodes: list[dict[str, float]] = []  # Since the last report.

  def start(self) -> None:
    """Makes the environments and their actors."""
    self._pipeline = actor_groups.Pipeline(self._make_groups())
    self._update_variables()

  def iterate(self) -> float | None:
    """Steps all environments once, if the budget has steps left."""
    try:
      return self._act()
    except ConnectionError:
      # Either the inference server was told to stop before this process, or it
      # failed, and the supervisor is about to restart both.
      if self._context.inference is None or not self._context.wait_for_stop(
        _SERVER_IS_GONE_SECONDS
      ):
        raise
      return node.AT_ONCE

  def close(self) -> None:
    """Closes the environments."""
    self._pipeline.close()

  def state(self) -> dict[str, Any]:
    """Returns the state between two iterations, for an actor with one group.

    An environment that cannot be saved in the middle of an episode
    (`bt_acme.environments.saving`) logs a warning, and starts new episodes when
    the state is restored.
    """
    (group,) = self._pipeline.groups
    try:
      environment = group.environments.state()
    except saving.SaveNotSupportedError as error:
      logging.warning('%s', error)
      environment = None
    return {
      'environment': environment,
      'step': None if group.shown is None else tuple(group.shown),
      'actor': group.actor.state(),
      'sinks': [sink.state() for sink in group.actor.sinks],
      'turns': self._vector_steps,
    }

  def restore(self, state: dict[str, Any], actor_steps: int) -> None:
    """Restores a state returned by `state()`.

    Args:
      state: the state.
      actor_steps: the number of actor steps taken when it was saved.
    """
    (group,) = self._pipeline.groups
    # Environments come first because they may reject the state.
    is_restored = state['environment'] is not None
    if is_restored:
      try:
        group.environments.restore(state['environment'])
        if state['step'] is not None:
          group.shown = vector.VectorStep(*state['step'])
      except saving.SaveNotSupportedError as error:
        logging.warning('%s', error)
        is_restored = False
    group.actor.restore(state['actor'])
    sinks = group.actor.sinks
    for sink, own in zip(sinks, _sink_states(state), strict=True):
      sink.restore(own)
    self._vector_steps = state['turns']
    if not is_restored:
      self._start_new_episodes(group, actor_steps)

  def _start_new_episodes(
    self, group: actor_groups.Group, actor_steps: int
  ) -> None:
    """Discards unfinished episodes that cannot be continued."""
    group.environments.close()
    # Without a new seed, the first episodes would be repeated.
    group.environments = self._make_environments(
      environments.seed_of(self._seed, actor_steps),
      group.actor.first_environment,
    )
    group.actor.discard_episodes()
    for sink in group.actor.sinks:
      sink.reset()

  def _make_groups(self) -> list[actor_groups.Group]:
    """Makes all groups of environments, with their actors and sinks."""
    number = self._run.groups_per_actor
    return [self._make_group(self._index * number + i) for i in range(number)]

  def _make_sink(self) -> sequences.SequenceSink:
    """Makes the sink of one environment, and its writer."""
    agent = self._agent
    writer = self._make_writer(
      self._context.replay,
      agent.replay_layout,
      on_wait=self._context.send_heartbeat,
    )
    # It waits while the learner is behind, which would be forever once the
    # learner has stopped.
    self._context.register_stop_handler(lambda: writer.stop())
    return sequences.SequenceSink(
      agent.config,
      agent.replay_layout,
      writer.write,
      num_actions=agent.spec.num_actions,
      largest_priority=self._learner.get_largest_priority,
    )

  def _make_group(self, index: int) -> actor_groups.Group:
    """Makes the group with this index among all groups of the run."""
    run, agent = self._run, self._agent
    first = index * run.group_size
    epsilons = agent.epsilons(run.num_environments)
    policy, scores = None, None
    if self._context.inference is not None:
      policy = server_lib.RemotePolicy(
        self._context.inference, index, agent.spec.frame_channels
      )
    if agent.learns_priorities:
      scores = self._learner.exchange_scores([])
    actor = vector_actor.VectorActor(
      agent,
      epsilons=epsilons[first : first + run.group_size],
      seed=self._seed,
      first_environment=first,
      sinks=[self._make_sink() for _ in range(run.group_size)],
      statistics=self._learner.get_statistics(first, run.group_size),
      policy=policy,
      scores=scores,
    )
    return actor_groups.Group(self._make_environments(self._seed, first), actor)

  def _make_environments(
    self, seed: int, first: int
  ) -> vector.VectorEnvironment:
    """Makes a group's environments, the first of which has index `first`."""
    return environments.make_vector(
      self._run.env,
      self._run.group_size,
      seed=seed,
      first_environment=first,
      num_stacked=self._run.num_stacked,
    )

  def _act(self) -> float | None:
    """Steps all environments once; returns the result of `iterate`."""
    if not self._vector_steps:
      self._taken = self._pipeline.prime()
      self._leased = -self._taken
    while self._leased <= 0:
      granted = self._coordinator.lease(
        self._index,
        self._context.attempt,
        self._run.envs_per_actor * self._report_period,
      )
      if granted is None:
        return None  # A later attempt of this actor has started.
      if not granted:
        self._episodes += self._pipeline.drain()
        self._report()
        return None
      self._leased += granted  # The last step may have overshot the lease.
    actor_steps, episodes = self._pipeline.step()
    self._vector_steps += 1
    self._leased -= actor_steps
    self._taken += actor_steps
    self._episodes += episodes
    if self._vector_steps % self._update_period == 0:
      self._update_variables()
    self.is_warm = True
    if self._vector_steps % self._report_period == 0:
      self._report()
    return node.AT_ONCE

  def _update_variables(self) -> None:
    """Fetches the parameters, unless a server selects the actions."""
    if self._context.inference is None:
      for group in self._pipeline.groups:
        group.actor.update_variables(assembly.Variables.fetch(self._learner))

  def _report(self) -> None:
    """Reports statistics, then steps; the report of steps may end the run."""
    for first_environment, statistics in self._pipeline.statistics().items():
      self._learner.put_statistics(first_environment, statistics)
    if self._agent.learns_priorities:
      self._pipeline.share_scores(self._learner.exchange_scores)
    self._coordinator.report_acting(
      self._index, self._context.attempt, self._taken, self._episodes
    )
    self._taken, self._episodes = 0, []


def _sink_states(state: dict[str, Any]) -> list[dict[str, Any]]:
  """Returns the states of the sinks, which may be those of an older version."""
  sinks = list(state['sinks'])
  # Formerly, the states of the writers contained the data of finished blocks.
  for i, written in enumerate(state.get('writers', ())):
    steps = sinks[i]['finished']
    data = written[len(written) - len(steps) :]
    finished = [(*own, x) for own, x in zip(data, steps, strict=True)]
    sinks[i] = {**sinks[i], 'finished': finished}
  return sinks
