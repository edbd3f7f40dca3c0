"""Evaluates runs and behaviors."""

import dataclasses
import functools
import html
from typing import Any

import numpy as np
import numpy.typing as npt

from bt_acme import environments
from bt_acme.api import loading
from bt_acme.config import checks
from bt_acme.evaluation import episode_records, tables

# The rows of the table of an evaluation: attribute and title.
_SHOWN = (
  ('returns', 'return'),
  ('lengths', 'actor steps'),
  ('extra_shares', 'extra action'),
  ('cells', 'cells'),
)


@dataclasses.dataclass(frozen=True)
class Evaluation:
  """The evaluation episodes of a policy.

  A notebook shows an evaluation as a table.

  Attributes:
    env: the name of the environment.
    recordings: the record of each episode, with every step.

  Example:
    ```python
    behavior = bt_acme.load_behavior('minigrid-explorer')
    evaluation = bt_acme.evaluate(
      behavior, env='MiniGrid-Empty-5x5-v0', episodes=10
    )
    print(f'solved {evaluation.solved:.0%}')
    print('mean length', evaluation.lengths.mean())
    ```
  """

  env: str
  recordings: list[episode_records.Recording]

  @functools.cached_property
  def returns(self) -> npt.NDArray[np.float64]:
    """Undiscounted return of the task's reward, float64 [episodes]."""
    return self._column('episode_return')

  @functools.cached_property
  def lengths(self) -> npt.NDArray[np.float64]:
    """Length in actor steps, float64 [episodes]."""
    return self._column('episode_length')

  @functools.cached_property
  def extra_shares(self) -> npt.NDArray[np.float64]:
    """Fraction of the agent's greedy actions that were the extra action.

    It is 0 for an agent without extra action; float64 [episodes].
    """
    return self._column('greedy_extra_share')

  @functools.cached_property
  def cells(self) -> npt.NDArray[np.int64] | None:
    """Number of distinct cells in which the agent acted, int64 [episodes].

    The cell in which an episode ends, such as a goal, does not count. The
    result is None if the environment has no cells.
    """
    if not any(recording.cells for recording in self.recordings):
      return None
    return np.array([recording.num_cells for recording in self.recordings])

  def by_environment(self) -> dict[str, 'Evaluation']:
    """Splits the episodes of a policy that plays several environments.

    Returns:
      The episodes in each environment, by its name.

    Example:
      ```python
      for name, episodes in evaluation.by_environment().items():
        print(name, episodes.solved)
      ```
    """
    names = environments.names_in(self.env)
    split = {name: Evaluation(name, []) for name in names}
    for recording in self.recordings:
      index = int(recording.metrics['environment'])
      name = environments.name_of(self.env, index)
      split[name].recordings.append(recording)
    return split

  def _column(self, name: str) -> npt.NDArray[np.float64]:
    return np.array([recording.metrics[name] for recording in self.recordings])

  @property
  def solved(self) -> float:
    """Fraction of episodes with a positive return."""
    return float(np.mean(self.returns > 0))

  def summary(self) -> dict[str, float]:
    """Computes the mean of each measure.

    Returns:
      `solved`, and the means over episodes of `returns`, `lengths`,
      `extra_shares` and, if the environment has cells, `cells`.

    Example:
      ```python
      print(evaluation.summary()['returns'])
      ```
    """
    means = {name: float(np.mean(each)) for name, _, each in self._shown()}
    return {'solved': self.solved, **means}

  def __repr__(self) -> str:
    return f'{self._title()}\n{tables.table(*self._table())}'

  def _repr_html_(self) -> str:
    return f'<p>{html.escape(self._title())}</p>{tables.html(*self._table())}'

  def _shown(self) -> list[tuple[str, str, npt.NDArray[Any]]]:
    """Returns attribute, title and values of each measure that exists."""
    every = [(name, title, getattr(self, name)) for name, title in _SHOWN]
    return [shown for shown in every if shown[-1] is not None]

  def _title(self) -> str:
    episodes = tables.counted(len(self.returns), 'episode')
    return f'{self.env}: {episodes}, solved {self.solved:.0%}'

  def _table(self) -> tuple[list[str], list[list[str]]]:
    rows = [
      [title, *(f'{f(values):.3f}' for f in (np.mean, np.min, np.max))]
      for _, title, values in self._shown()
    ]
    return ['', 'mean', 'lowest', 'highest'], rows


def evaluate(
  source: loading.Source,
  *,
  env: str = '',
  episodes: int = 50,
  seed: int = 0,
  epsilon: float | None = None,
  flights: bool = False,
) -> Evaluation:
  """Plays evaluation episodes in parallel, one per environment.

  Args:
    source: a run, any behavior, the workdir of a run, or anything that
      `load_behavior` accepts.
    env: the name of the environment; empty for the one used in training. The
      shapes of observations and actions must equal those of training. Behaviors
      that were not trained, such as `FromCallable`, need a name.
    episodes: the number of episodes, and of environments.
    seed: the random seed of the episodes.
    epsilon: the probability of a random action; None for the agent's
      `evaluation_epsilon`.
    flights: whether the agent starts flights, as in training.

  Returns:
    The evaluation.

  Raises:
    ValueError: if the behavior cannot be loaded, if the environment does not
      exist or has other shapes, if `episodes` is not positive, if `seed` is
      not between 0 and 2^32 - 1, if `epsilon` is not a probability, if the
      agent has no flights to start, or if the episodes need more memory than
      this machine has.

  Example:
    ```python
    behavior = bt_acme.load_behavior('minigrid-explorer')
    env = 'MiniGrid-Empty-5x5-v0'
    print(bt_acme.evaluate(behavior, env=env, episodes=10))
    random = bt_acme.evaluate(behavior, env=env, episodes=10, epsilon=1.0)
    ```
  """
  checks.check_value('episodes', episodes, checks.setting(1, above=0))
  agent, learned = loading.load_agent(source, env)
  recordings = episode_records.play(
    agent,
    learned,
    episodes=episodes,
    seed=seed,
    epsilon=epsilon,
    flights=flights,
  )
  return Evaluation(agent.spec.name, recordings)
