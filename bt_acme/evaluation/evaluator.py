"""Plays episodes of an agent's or a behavior's policy."""

from typing import Callable, Dict, List, Optional

import numpy as np

from bt_acme import assembly, environments
from bt_acme.acting import vector_actor
from bt_acme.core.intrinsic import reward as reward_lib
from bt_acme.environments import vector

Row = Dict[str, float]

# The index of the first environment of a run's evaluations. Environments are
# seeded by their index, so that no evaluation plays the episodes of an actor.
FIRST_ENVIRONMENT = 1_000_000


class Evaluator:
  """Plays whole episodes, several at once.

  Returns are undiscounted sums of the task's reward, whatever the agent
  maximizes. Flights are left out unless they are asked for. The extra action
  remains, and its behavior acts when it is chosen.

  Attributes:
    environment: the environments, one for each episode.
    actions: the actions that were chosen last, int32 [N].
    sources: who decided them, uint8 [N]: OWN, EXTRA or FLIGHT of
      `core/types.py`.
  """

  def __init__(
    self,
    agent: assembly.Agent,
    *,
    episodes: int,
    seed: int,
    first_environment: int = 0,
    epsilon: Optional[float] = None,
    flights: bool = False,
  ):
    """Starts the environments.

    Args:
      agent: the agent that acts.
      episodes: how many episodes one evaluation plays, all at once.
      seed: the run's seed.
      first_environment: the index that seeds the first environment.
      epsilon: the policy's epsilon; None for the configured
        `evaluation_epsilon`.
      flights: whether flights start, as they do in training.
    """
    if epsilon is None:
      epsilon = agent.config.acting.evaluation_epsilon
    self.environment = vector.VectorEnvironment(
      [
        environments.make(
          environments.name_of(agent.spec.name, i),
          num_stacked=agent.spec.num_stacked,
          seed=environments.seed_of(seed, i),
        )
        for i in range(first_environment, first_environment + episodes)
      ]
    )
    self._actor = vector_actor.VectorActor(
      agent,
      epsilons=[epsilon] * episodes,
      seed=seed,
      first_environment=first_environment,
      evaluation=not flights,
    )
    self._episodes = episodes
    self.actions = np.zeros(episodes, np.int32)
    self.sources = np.zeros(episodes, np.uint8)

  def run(
    self,
    variables: assembly.Variables,
    statistics: Optional[reward_lib.IntrinsicStatistics] = None,
    *,
    should_stop: Callable[[], bool] = lambda: False,
    on_step: Callable[[vector.VectorStep, np.ndarray], None] = (
      lambda step, going: None
    ),
    on_end: Callable[[int], None] = lambda i: None,
  ) -> List[Row]:
    """Plays one episode in each environment.

    Args:
      variables: the variables that the learner publishes.
      statistics: the statistics of the intrinsic reward, which is an input of
        an NGU policy; None without one.
      should_stop: a function that is asked now and then; the evaluation ends if
        it returns True.
      on_step: a function that is called with what the environments show, and a
        mask bool [N] of those whose episode has not ended. The actions have
        been chosen and not yet taken.
      on_end: a function that is called with the index of each environment whose
        episode has ended, while the environment still shows its last
        observation.

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
      self.actions = self._actor.select_actions(step)
      self.sources = self._actor.sources
      on_step(step, going)
      step = self.environment.step(self.actions)
      ended = np.flatnonzero(step.is_last)
      for i, row in zip(ended, self._actor.observe(step), strict=True):
        rows.setdefault(int(i), row)
        if going[i]:
          on_end(int(i))
      going &= ~step.is_last
      turns += 1
      if turns % 256 == 0 and should_stop():
        return []
    return [rows[i] for i in sorted(rows)]

  def close(self) -> None:
    """Closes the environments."""
    self.environment.close()
