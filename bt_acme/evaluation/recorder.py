"""Plays episodes and records each step."""

from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

import numpy as np

from bt_acme import assembly
from bt_acme.core.intrinsic import reward as reward_lib
from bt_acme.environments import vector
from bt_acme.evaluation import evaluator as evaluator_lib


class Recording(NamedTuple):
  """The record of an episode.

  Attributes:
    metrics: the metrics of the episode, by the names of `EpisodeMetrics`.
    actions: the actions.
    sources: who selected each action: OWN, EXTRA or FLIGHT.
    cells: the column and row of the agent before each action; empty if the
      environment has no cells.
  """

  metrics: Dict[str, float]
  actions: List[int]
  sources: List[int]
  cells: List[Tuple[int, int]]

  @property
  def row(self) -> Dict[str, float]:
    """The metrics, and the number of visited `cells` if there are any."""
    return {
      **self.metrics,
      **({'cells': self.num_cells} if self.cells else {}),
    }

  @property
  def num_cells(self) -> int:
    """The number of distinct visited cells."""
    return len(set(self.cells))

  @property
  def is_solved(self) -> bool:
    """Whether the return of the task is positive."""
    return self.metrics['episode_return'] > 0


def record(
  evaluator: evaluator_lib.Evaluator,
  variables: assembly.Variables,
  statistics: Optional[reward_lib.IntrinsicStatistics] = None,
  *,
  watch: Callable[[vector.VectorStep, np.ndarray], None] = lambda step, going: (
    None
  ),
  on_end: Callable[[int], None] = lambda i: None,
) -> List[Recording]:
  """Plays one episode in each environment of an evaluator.

  Args:
    evaluator: the evaluator that plays.
    variables: the parameters of the agent.
    statistics: the statistics of the intrinsic reward, if the agent has one.
    watch: the `on_step` of `Evaluator.run`.
    on_end: the `on_end` of `Evaluator.run`.

  Returns:
    The episodes, in the order of the environments.
  """
  environments: Any = evaluator.environment.environments
  recordings = [Recording({}, [], [], []) for _ in environments]

  def on_step(step: vector.VectorStep, going: np.ndarray) -> None:
    watch(step, going)
    for i in np.flatnonzero(going):
      recordings[i].actions.append(int(evaluator.actions[i]))
      recordings[i].sources.append(int(evaluator.sources[i]))
      if hasattr(environments[i], 'agent_cell'):
        recordings[i].cells.append(environments[i].agent_cell())

  rows = evaluator.run(variables, statistics, on_step=on_step, on_end=on_end)
  return [
    recording._replace(metrics=row)
    for recording, row in zip(recordings, rows, strict=True)
  ]
