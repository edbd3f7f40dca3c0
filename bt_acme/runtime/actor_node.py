"""An actor's process: it steps its environments and fills the replay."""

import functools
from typing import Any, Dict, List

from bt_acme import assembly, environments
from bt_acme.acting import server as server_lib
from bt_acme.acting import variables, vector_actor
from bt_acme.config import run as run_config
from bt_acme.core import epsilon
from bt_acme.replay import sinks as sinks_lib
from bt_acme.replay import writer as writer_lib
from bt_acme.runtime import actor_groups, seeds
from bt_acme.runtime import context as context_lib

_LEASE_TURNS = 32  # Turns between two reports to the coordinator.
# How long a process whose inference server is gone waits to be stopped.
_SERVER_IS_GONE_SECONDS = 5.0


class ActorNode:
  """Steps its environments until the budget is used up."""

  def __init__(
    self,
    run: run_config.RunConfig,
    agent: assembly.Agent,
    index: int,
    context: context_lib.Context,
  ):
    """Builds nothing yet.

    Args:
      run: the run.
      agent: the agent that acts.
      index: this actor's index among those of the run.
      context: has clients of the coordinator, the learner and the replay, and
        of the inference server if there is one.
    """
    assert context.coordinator is not None and context.learner is not None
    self._run = run
    self._agent = agent
    self._index = index
    self._context = context
    self._coordinator = context.coordinator
    self._learner = context.learner
    # Another life is to play other episodes.
    self._seed = seeds.of_node(run.seed, context.life)
    self._clients: List[variables.VariableClient] = []

  def run(self) -> None:
    """Acts until the budget is used up or the program stops."""
    pipeline = actor_groups.Pipeline(self._make_groups())
    try:
      self._act(pipeline)
    except ConnectionError:
      # The inference server may have been told to stop before this process is,
      # or it has died, and this process is killed to start anew with it.
      if self._context.inference is None or not self._context.wait_for_stop(
        _SERVER_IS_GONE_SECONDS
      ):
        raise
    pipeline.close()

  def _make_groups(self) -> List[actor_groups.Group]:
    """Makes all groups of environments, with their actors and sinks."""
    run, agent = self._run, self._agent
    writers = [
      writer_lib.ReverbWriter(
        self._context.replay,
        agent.config.replay,
        agent.replay_shapes,
        on_wait=self._context.alive,
      )
      for _ in range(run.envs_per_actor)
    ]
    sinks = [
      sinks_lib.make_sink(
        agent.config,
        agent.replay_shapes,
        writer,
        num_actions=agent.spec.num_actions,
        largest_priority=self._learner.get_max_priority,
      )
      for writer in writers
    ]
    # A writer waits while the learner is behind. Once the learner has stopped,
    # it would wait for ever.
    self._context.register_stop_handler(functools.partial(_stop, writers))
    return [
      self._make_group(
        self._index * run.groups_per_actor + i,
        sinks[i * run.group_size : (i + 1) * run.group_size],
      )
      for i in range(run.groups_per_actor)
    ]

  def _make_group(self, index: int, sinks: List[Any]) -> actor_groups.Group:
    """Makes the group of this index among the groups of the run."""
    run, agent = self._run, self._agent
    acting = agent.config.acting
    first = index * run.group_size
    epsilons = epsilon.ladder(
      run.num_environments,
      base=acting.epsilon_base,
      alpha=acting.epsilon_alpha,
    )
    policy = None
    if self._context.inference is not None:
      policy = server_lib.RemotePolicy(
        self._context.inference, index, agent.spec.frame_channels
      )
    actor = vector_actor.VectorActor(
      agent,
      epsilons=epsilons[first : first + run.group_size],
      seed=self._seed,
      first_environment=first,
      sinks=sinks,
      statistics=self._learner.get_statistics(first, run.group_size),
      policy=policy,
    )
    if policy is None:
      self._clients.append(
        variables.VariableClient(
          self._learner, actor, acting.variable_update_period
        )
      )
    group_environments = environments.make_vector(
      run.env,
      run.group_size,
      seed=self._seed,
      first_environment=first,
      num_stacked=run.num_stacked,
    )
    return actor_groups.Group(group_environments, actor, first)

  def _act(self, pipeline: actor_groups.Pipeline) -> None:
    """Takes turns as long as the coordinator grants steps for them."""
    lease = self._run.envs_per_actor * _LEASE_TURNS
    taken = pipeline.prime()  # Actor steps since the last report.
    left = -taken  # Actor steps left of the lease.
    episodes: List[Dict[str, float]] = []
    while not self._context.wait_for_stop(0):
      if left > 0:
        actor_steps, ended = pipeline.turn()
        left -= actor_steps
        taken += actor_steps
        episodes += ended
        for client in self._clients:
          client.update()
        self._context.alive()
        continue
      granted = self._coordinator.lease(self._index, self._context.life, lease)
      if granted is None:
        break  # This actor was given up, and has begun another life.
      if not granted:
        episodes += pipeline.drain()
      self._report(pipeline, taken, episodes)
      taken, episodes = 0, []
      if not granted:
        break
      left += granted  # The last turn may have overshot the lease.

  def _report(
    self,
    pipeline: actor_groups.Pipeline,
    taken: int,
    episodes: List[Dict[str, float]],
  ) -> None:
    """Reports statistics before the steps, because these may end the run."""
    for first_environment, statistics in pipeline.statistics().items():
      self._learner.put_statistics(first_environment, statistics)
    self._coordinator.report_acting(
      self._index, self._context.life, taken, episodes
    )


def _stop(writers: List[writer_lib.ReverbWriter]) -> None:
  for writer in writers:
    writer.stop()
