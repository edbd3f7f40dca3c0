"""Plays episodes of an agent's or a behavior's policy, without flights."""

from typing import Any, Callable, Dict, List, Optional

import numpy as np

from bt_acme import assembly, environments
from bt_acme.acting import vector_actor
from bt_acme.environments import vector

Row = Dict[str, float]


class Evaluator:
  """Plays whole episodes, several at once.

  Returns are undiscounted sums of the task's reward, whatever the agent
  maximizes. The extra action remains, and its behavior acts when it is chosen.

  Attributes:
    environment: the environments, one for each episode.
  """

  def __init__(
    self,
    agent: assembly.Agent,
    *,
    episodes: int,
    seed: int,
    first_environment: int = 0,
    epsilon: Optional[float] = None,
  ):
    """Starts the environments.

    Args:
      agent: the agent that acts.
      episodes: how many episodes one evaluation plays, all at once.
      seed: the run's seed.
      first_environment: the index that seeds the first environment.
      epsilon: the policy's epsilon; None for the configured
        `evaluation_epsilon`.
    """
    if epsilon is None:
      epsilon = agent.config.acting.evaluation_epsilon
    self.environment = vector.VectorEnvironment(
      [
        environments.make(
          agent.spec.name,
          num_stacked=agent.spec.num_stacked,
          seed=environments.seed_of(seed, first_environment + i),
        )
        for i in range(episodes)
      ]
    )
    self._actor = vector_actor.VectorActor(
      agent,
      epsilons=[epsilon] * episodes,
      seed=seed,
      first_environment=first_environment,
      evaluation=True,
    )
    self._episodes = episodes

  def run(
    self,
    variables: assembly.Variables,
    statistics: Optional[Any] = None,
    *,
    should_stop: Callable[[], bool] = lambda: False,
    on_step: Callable[[vector.VectorStep, np.ndarray], None] = (
      lambda step, going: None
    ),
  ) -> List[Row]:
    """Plays one episode in each environment.

    Args:
      variables: the variables that the learner publishes.
      statistics: the statistics of the intrinsic reward, which is an input of
        an NGU policy; None without one.
      should_stop: a function that is asked now and then; the evaluation ends if
        it returns True.
      on_step: a function that is called with what the environments show, and a
        mask bool [N] of those whose episode is going on.

    Returns:
      The metrics of each episode; none if the evaluation was stopped.
    """
    self._actor.update_variables(variables)
    if statistics is not None:
      self._actor.restore_statistics(statistics)
    rows: Dict[int, Row] = {}
    step = self.environment.reset()
    going = np.ones(self._episodes, bool)
    turns = 0
    while going.any():
      on_step(step, going)
      step = self.environment.step(self._actor.select_actions(step))
      ended = np.flatnonzero(step.is_last)
      for i, row in zip(ended, self._actor.observe(step), strict=True):
        rows.setdefault(int(i), row)
      going &= ~step.is_last
      turns += 1
      if turns % 256 == 0 and should_stop():
        return []
    return [rows[i] for i in sorted(rows)]

  def close(self) -> None:
    """Closes the environments."""
    self.environment.close()
