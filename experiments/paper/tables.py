"""The paper's tables as functions of a data set.

`make('table3', dataset, suites)` computes one. With the paper's own scores of
games (`published.data`) its numbers are the paper's, to the digit.
"""

from typing import Dict, Iterable, List, Mapping, Optional, Sequence, Tuple

import numpy as np

from bt_acme.evaluation import intervals
from experiments.harness import dataset as dataset_lib
from experiments.paper import (
  artifacts,
  captions,
  hyperparameters,
  metrics,
  published,
  results,
)
from experiments.paper.table_model import Cell, Row, Table

# Suites in titles of columns.
_SUITE_TITLES: Mapping[str, str] = {
  'full': 'all',
  'hard': 'hard',
  'atari_26': '26',
  'atari_47': '47',
}


def make(
  artifact_id: str,
  dataset: dataset_lib.Dataset,
  suites: artifacts.Suites = artifacts.PAPER_SUITES,
) -> Table:
  """Computes a table; what is missing in the data set is missing in it.

  Args:
    artifact_id: `table1` to `table10`.
    dataset: what runs came to.
    suites: the worlds of each role, at the data set's scale.

  Raises:
    ValueError: if there is no such table.
  """
  artifact = artifacts.find(artifact_id)
  if artifact.kind == 'settings':
    return hyperparameters.table(artifact)
  if artifact.kind not in ('suites', 'scores'):
    raise ValueError(
      f'artifact={artifact_id!r} is a figure: choose a table, table1 to '
      'table10.'
    )
  source = _Source(artifact, results.Results(dataset), suites)
  if artifact.kind == 'suites':
    corner, columns, rows = source.suite_rows()
  else:
    corner, columns, rows = source.score_rows()
  return Table(
    artifact.id,
    artifact.title,
    corner,
    columns,
    rows,
    captions.of_table(artifact, source.used, rows, suites),
    (*artifact.notes, *results.sentences(source.all_problems)),
  )


_Content = Tuple[str, Tuple[str, ...], Tuple[Row, ...]]


class _Source:
  """Computes the cells of one table, and keeps what they were made of."""

  def __init__(
    self,
    artifact: artifacts.Artifact,
    indexed: results.Results,
    suites: artifacts.Suites,
  ):
    self.artifact = artifact
    self.used: List[dataset_lib.Run] = []
    self.problems: List[results.Problem] = []
    self._results = indexed
    self._suites = suites
    self._samples: Dict[Tuple[object, ...], results.Sample] = {}
    self._paper = {
      (n.arm, n.env, n.suite, n.metric, n.frames): n
      for n in published.numbers(artifact.id)
    }

  @property
  def all_problems(self) -> List[results.Problem]:
    """What is missing; runs that failed late are named too."""
    failed = [r for r in self.used if r.status == dataset_lib.FAILED]
    return [*self.problems, *map(results.failure, failed)]

  def suite_rows(self) -> _Content:
    """A row for each arm and point, a column for each suite and metric."""
    artifact = self.artifact
    columns = [(s, m) for s in artifact.suites for m in artifact.metrics]
    rows = [
      Row(
        self._title(arm, share),
        tuple(self._summary(arm, s, m, share) for s, m in columns),
      )
      for share in artifact.points
      for arm in artifact.arms
    ]
    titles = tuple(
      f'{_SUITE_TITLES[suite]}: {metrics.METRICS[metric].title}'
      for suite, metric in columns
    )
    return 'algorithm', titles, (*self._others(columns), *rows)

  def score_rows(self) -> _Content:
    """A row for each world, a column for each arm; medians at the end."""
    (suite,) = self.artifact.suites
    arms = self.artifact.arms
    envs = self._suites.get(suite, ())
    stands_for = self._stands_for(suite)
    rows = [
      Row(
        env,
        tuple(self._score(arm, env, stands_for.get(env, env)) for arm in arms),
      )
      for env in envs
    ]
    rows += [
      Row(
        f'{metrics.METRICS[metric].title}, normalized',
        tuple(self._summary(arm, suite, metric, 1.0) for arm in arms),
      )
      for metric in self.artifact.metrics
      if metric != 'score'
    ]
    titles = tuple(artifacts.TITLES[arm] for arm in arms)
    return 'world', titles, tuple(rows)

  def _title(self, arm: str, share: float) -> str:
    title = artifacts.TITLES[arm]
    if len(self.artifact.points) == 1:
      return title
    return f'{title}, {100 * share:.0f} % of the budget'

  def _others(self, columns: Sequence[Tuple[str, str]]) -> Iterable[Row]:
    """Rows of published algorithms, which only the paper's table has."""
    others = dict.fromkeys(
      (arm, frames)
      for arm, _, _, _, frames in self._paper
      if arm not in artifacts.TITLES
    )
    for arm, frames in others:
      yield Row(
        f'{arm}, {frames // 4:,} interactions' if frames else arm,
        tuple(
          _with_paper(Cell(), self._paper.get((arm, '', s, m, frames)))
          for s, m in columns
        ),
      )

  def _summary(self, arm: str, suite: str, metric: str, share: float) -> Cell:
    """A statistic over the worlds of a suite, on their common scale."""
    frames = self._paper_frames(arm, share)
    paper = self._paper.get((arm, '', suite, metric, frames))
    envs = tuple(self._suites.get(suite, ()))
    if not envs:
      return _with_paper(Cell(note='the worlds are not known'), paper)
    sample = self._sample(arm, envs, share, True)
    if not sample.envs:
      return _with_paper(Cell(note=_note(sample)), paper)
    estimate = intervals.bootstrap(
      metrics.METRICS[metric].statistic, sample.values
    )
    cell = Cell(
      *estimate,
      seeds=sample.seeds,
      games=len(sample.envs),
      decimals=0 if metric.startswith('num_') else 2,
      comparable=self._comparable(
        sample, artifacts.PAPER_SUITES[suite], frames, share
      ),
      note=_note(sample),
    )
    return _with_paper(cell, paper)

  def _score(self, arm: str, env: str, paper_env: str) -> Cell:
    """The mean return of a world over seeds."""
    frames = self._score_frames()
    paper = self._paper.get((arm, paper_env, '', 'score', frames))
    sample = self._sample(arm, (env,), 1.0, False)
    if not sample.envs:
      return _with_paper(Cell(note=_note(sample)), paper)
    cell = Cell(
      *intervals.bootstrap(intervals.mean, sample.values),
      spread=float(np.std(sample.values)) if sample.seeds > 1 else float('nan'),
      seeds=sample.seeds,
      games=1,
      comparable=self._comparable(sample, (paper_env,), frames, 1.0),
      note=_note(sample),
    )
    return _with_paper(cell, paper)

  def _sample(
    self, arm: str, envs: Tuple[str, ...], share: float, normalized: bool
  ) -> results.Sample:
    key = (arm, envs, share, normalized)
    if key not in self._samples:
      reading = results.at(share)
      if normalized:
        reading = results.normalized(reading)
      sample = self._results.sample(arm, envs, reading)
      self._samples[key] = sample
      self.used += sample.runs
      self.problems += sample.problems
    return self._samples[key]

  def _paper_frames(self, arm: str, share: float) -> int:
    """The frames with reward at which the paper has its number."""
    if arm in artifacts.ZERO_SHOT:
      return 0
    return round(
      share * artifacts.PAPER_TRANSFER_STEPS * artifacts.PAPER_FRAMES_PER_STEP
    )

  def _score_frames(self) -> int:
    """As `_paper_frames`; 0 for table 10, whose budget is not stated."""
    return next((n.frames for n in self._paper.values() if n.env), 0)

  def _comparable(
    self,
    sample: results.Sample,
    paper_envs: Sequence[str],
    frames: int,
    share: float,
  ) -> bool:
    """Whether games, budget and scale are the paper's."""
    return set(sample.envs) == set(paper_envs) and all(
      run.scale in _PAPER_SCALES
      and _frames_with_reward(run, share) == frames
      and run.pretraining_steps in (0, artifacts.PAPER_PRETRAINING_STEPS)
      for run in sample.runs
    )

  def _stands_for(self, suite: str) -> Mapping[str, str]:
    """The paper's task that each task of this scale stands for."""
    here, paper = self._suites.get(suite, ()), artifacts.PAPER_SUITES[suite]
    if suite == 'tasks' and len(here) == len(paper):
      return dict(zip(here, paper, strict=True))
    return {}


# Scales whose numbers the paper's can stand beside: the paper's runs made
# again, and its own.
_PAPER_SCALES = ('paper', 'published')


def _frames_with_reward(run: dataset_lib.Run, share: float) -> int:
  """The frames from which a run has learned the task at a share of it."""
  if run.stage == 'zero_shot':
    return 0
  return round(share * run.budget_steps * run.frames_per_step)


def _note(sample: results.Sample) -> str:
  return ' '.join(results.sentences(sample.problems))


def _with_paper(cell: Cell, paper: Optional[published.Printed]) -> Cell:
  """Adds the paper's number; what is comparable has as many digits."""
  if paper is None:
    return cell
  return cell._replace(
    paper=paper.value,
    paper_spread=paper.spread,
    decimals=paper.decimals if cell.comparable else cell.decimals,
  )
