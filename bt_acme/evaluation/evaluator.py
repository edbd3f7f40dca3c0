"""Plays episodes with the policy of an agent or a behavior."""

import time
from collections.abc import Callable

import numpy as np

from bt_acme import assembly, environments
from bt_acme.acting import vector_actor
from bt_acme.config import checks
from bt_acme.core import epsilon as epsilon_lib
from bt_acme.environments import vector

Row = dict[str, float]

# Index of the first environment of evaluations. Environments are seeded by
# their index, so evaluations and actors play different episodes.
FIRST_ENVIRONMENT = 1_000_000
_SECONDS_TO_STOP = 1.0  # Of slow steps between two calls of `should_stop`.


class Evaluator:
  """Plays whole episodes, several in parallel.

  Returns are undiscounted sums of the task's reward, even if the agent
  maximizes another reward. Flights are disabled by default. The extra action
  remains available.

  Attributes:
    environment: the environments, one per episode.
    actor: the actor that selects all actions. Its `sources` and `in_control`
      are who selected the most recent actions.
    actions: the most recent actions, int32 [N].

  Example:
    ```python
    from bt_acme import evaluation

    behavior = bt_acme.load_behavior('minigrid-explorer')
    evaluator = evaluation.Evaluator(behavior.agent, episodes=2, seed=0)
    ```
  """

  def __init__(
    self,
    agent: assembly.Agent,
    *,
    episodes: int,
    seed: int,
    epsilon: float | None = None,
    flights: bool = False,
  ):
    """Starts the environments.

    Args:
      agent: the agent that acts.
      episodes: the number of episodes of an evaluation, played in parallel.
      seed: the seed of the run. Actors with the same seed play other episodes.
      epsilon: the epsilon of the policy; None for the configured
        `evaluation_epsilon`.
      flights: whether the agent starts flights, as in training.

    Raises:
      ValueError: if an environment does not exist, if epsilon is not a
        probability, if there are no episodes, or if the agent has no flights to
        start.
    """
    checks.require(episodes > 0, f'episodes={episodes} must be positive.')
    if flights and not (agent.transfer and agent.transfer.flights):
      raise ValueError(
        'flights=True needs an agent that was trained with flights. Remove it.'
      )
    if epsilon is None:
      epsilon = agent.config.acting.evaluation_epsilon
    epsilon_lib.check(epsilon)
    self.environment = environments.make_vector(
      agent.spec.name,
      episodes,
      seed=seed,
      first_environment=FIRST_ENVIRONMENT,
      num_stacked=agent.spec.num_stacked,
      joint_emulator=False,  # Videos need the environments themselves.
    )
    self.actor = vector_actor.VectorActor(
      agent,
      epsilons=[epsilon] * episodes,
      seed=seed,
      first_environment=FIRST_ENVIRONMENT,
      evaluation=not flights,
    )
    self._episodes = episodes
    self.actions = np.zeros(episodes, np.int32)

  def run(
    self,
    learned: assembly.Learned,
    *,
    should_stop: Callable[[], bool] = lambda: False,
    on_step: Callable[[vector.VectorStep, np.ndarray], None] = (
      lambda step, going: None
    ),
    on_end: Callable[[int], None] = lambda i: None,
  ) -> list[Row]:
    """Plays one episode in each environment.

    Args:
      learned: the policy of the agent. Its statistics are those of the
        intrinsic reward, which is an input of NGU policies.
      should_stop: a function that is called every 256 steps, and at least
        every second; the evaluation stops if it returns True.
      on_step: a function that is called before each step with the current
        observations and a mask bool [N] of unfinished episodes. The next
        actions are already selected.
      on_end: a function that is called with the index of an environment at the
        end of its episode, before the environment is reset.

    Returns:
      The metrics of each episode; an empty list if the evaluation was stopped.

    Example:
      ```python
      for row in evaluator.run(behavior.learned):
        print(row['episode_return'])
      ```
    """
    self.actor.update_variables(learned.variables)
    if learned.statistics is not None:
      self.actor.restore_statistics(learned.statistics)
    rows: dict[int, Row] = {}
    step = self.environment.reset()
    # An environment whose episode ended first has played on until the end of
    # the last evaluation.
    self.actor.discard_episodes()
    going = np.ones(self._episodes, bool)
    turns, asked = 0, time.monotonic()
    while going.any():
      self.actions = self.actor.select_actions(step)
      on_step(step, going)
      step = self.environment.step(self.actions)
      ended = np.flatnonzero(step.is_last)
      for i, row in zip(ended, self.actor.observe(step), strict=True):
        rows.setdefault(int(i), row)
        if going[i]:
          on_end(int(i))
      going &= ~step.is_last
      turns += 1
      if turns % 256 == 0 or time.monotonic() - asked > _SECONDS_TO_STOP:
        asked = time.monotonic()
        if should_stop():
          return []
    return [rows[i] for i in sorted(rows)]

  def close(self) -> None:
    """Closes the environments."""
    self.environment.close()
