"""Plays episodes of what a run has learned."""

import dataclasses
import html
from typing import Dict, List, Optional, Tuple, Union

import numpy as np

from bt_acme import assembly, behaviors, evaluation
from bt_acme.api import runs
from bt_acme.evaluation import recorder, tables
from bt_acme.runtime import requirements

# What the table of an evaluation shows, by the names of its metrics.
_SHOWN = (
  ('returns', 'return'),
  ('lengths', 'actor steps'),
  ('extra_shares', 'extra action'),
  ('cells', 'cells'),
)

Source = Union[runs.Run, behaviors.Exported]


@dataclasses.dataclass(frozen=True)
class Evaluation:
  """The episodes that were played.

  Attributes:
    env: the environment.
    returns: undiscounted sums of the task's reward, float64 [episodes].
    lengths: actor steps, float64 [episodes].
    extra_shares: the share of the agent's greedy choices that were the extra
      action, float64 [episodes]; 0 without one.
    cells: different cells that were visited, int64 [episodes]; None where the
      environment has no cells.
    recordings: every step of each episode.
  """

  env: str
  returns: np.ndarray
  lengths: np.ndarray
  extra_shares: np.ndarray
  cells: Optional[np.ndarray]
  recordings: List[recorder.Recording]

  @property
  def solved(self) -> float:
    """The share of episodes in which the task paid anything."""
    return float(np.mean(self.returns > 0))

  def summary(self) -> Dict[str, float]:
    """Returns the mean of each measure by its name, and `solved`."""
    means = {
      name: float(np.mean(getattr(self, name)))
      for name, _ in _SHOWN
      if getattr(self, name) is not None
    }
    return {'solved': self.solved, **means}

  def __repr__(self) -> str:
    return f'{self._title()}\n{tables.table(*self._table())}'

  def _repr_html_(self) -> str:
    header, rows = self._table()
    lines = [
      ''.join(f'<th>{html.escape(name)}</th>' for name in header),
      *(
        ''.join(f'<td>{html.escape(str(cell))}</td>' for cell in row)
        for row in rows
      ),
    ]
    body = ''.join(f'<tr>{line}</tr>' for line in lines)
    return f'<p>{html.escape(self._title())}</p><table>{body}</table>'

  def _title(self) -> str:
    return f'{self.env}: {len(self.returns)} episodes, solved {self.solved:.0%}'

  def _table(self) -> Tuple[List[str], List[List[str]]]:
    shown = [
      (title, getattr(self, name))
      for name, title in _SHOWN
      if getattr(self, name) is not None
    ]
    rows = [
      [title, *(f'{f(values):.3f}' for f in (np.mean, np.min, np.max))]
      for title, values in shown
    ]
    return ['', 'mean', 'lowest', 'highest'], rows


def evaluate(
  source: Source,
  *,
  env: str = '',
  episodes: int = 50,
  seed: int = 0,
  epsilon: Optional[float] = None,
  flights: bool = False,
) -> Evaluation:
  """Plays episodes, all at once.

  Args:
    source: a run, or a behavior that was exported.
    env: the environment; by default that of the training. It must have the same
      observations and actions.
    episodes: the number of episodes.
    seed: of the episodes.
    epsilon: the share of random actions; by default `evaluation_epsilon`.
    flights: whether flights start, as they do in training.

  Returns:
    The episodes.

  Raises:
    ValueError: for an environment that does not fit, or a number of episodes
      that cannot be.
  """
  if episodes < 1:
    raise ValueError(f'episodes={episodes} must be positive.')
  agent = assembly.moved(source.agent, env) if env else source.agent
  requirements.check_evaluation(agent, episodes)
  evaluator = evaluation.Evaluator(
    agent,
    episodes=episodes,
    seed=seed,
    first_environment=evaluation.FIRST_ENVIRONMENT,
    epsilon=epsilon,
    flights=flights,
  )
  try:
    recordings = recorder.record(evaluator, source.variables, source.statistics)
  finally:
    evaluator.close()

  def column(name: str) -> np.ndarray:
    return np.array([recording.metrics[name] for recording in recordings])

  has_cells = any(recording.cells for recording in recordings)
  return Evaluation(
    env=agent.spec.name,
    returns=column('episode_return'),
    lengths=column('episode_length'),
    extra_shares=column('greedy_extra_share'),
    cells=np.array([recording.num_cells for recording in recordings])
    if has_cells
    else None,
    recordings=recordings,
  )
