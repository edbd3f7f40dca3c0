"""Episodes of an agent's or a behavior's policy, without flights."""

from typing import Callable, Dict, List, Optional

import numpy as np

from bt_acme import assembly, environments
from bt_acme.acting import vector_actor
from bt_acme.core.intrinsic import reward as reward_lib
from bt_acme.environments import vector

Row = Dict[str, float]


class Evaluator:
  """Plays whole episodes, several at once.

  Returns are undiscounted sums of the task's reward, whatever the agent
  maximizes. The extra action stays, and is resolved by its behavior.
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
      agent: what acts.
      episodes: of one evaluation, all at once.
      seed: of the run.
      first_environment: index that seeds the first environment.
      epsilon: of the policy; `evaluation_epsilon` of the configuration if None.
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
    statistics: Optional[reward_lib.IntrinsicStatistics] = None,
    *,
    should_stop: Callable[[], bool] = lambda: False,
    on_step: Callable[[vector.VectorStep, np.ndarray], None] = (
      lambda step, going: None
    ),
  ) -> List[Row]:
    """Plays one episode in each environment.

    Args:
      variables: of the learner.
      statistics: of the intrinsic reward, which an NGU policy has for input.
      should_stop: asked now and then; ends the evaluation.
      on_step: called with what the environments show and a mask bool [N] of
        those whose episode is going on.

    Returns:
      Metrics of each episode; none if it was stopped.
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
