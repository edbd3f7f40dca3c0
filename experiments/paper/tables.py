"""Computes the paper's tables from a dataset.

With the paper's own scores of games (`published.data`), the result matches the
paper to the digit.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from bt_acme.evaluation import intervals
from experiments.harness import dataset as dataset_lib
from experiments.harness.dataset import Problem, RunRow
from experiments.paper import (
  artifacts,
  captions,
  effects,
  hyperparameters,
  published,
  results,
)
from experiments.paper.table_formats import Cell, PaperTable

# Titles of suites in column headers.
_SUITE_TITLES = {'full': 'all', 'atari_26': '26', 'atari_47': '47'}


def make(artifact: artifacts.Artifact, found: results.Results) -> PaperTable:
  """Computes a table; cells without data are marked as missing."""
  if artifact.kind == 'settings':
    return hyperparameters.table(artifact)
  if artifact.kind == 'suites':
    corner, columns, numbers = _by_algorithm(artifact)
  else:
    corner, columns, numbers = _by_environment(artifact, found.suites)
  cells = _Cells(artifact, found)
  rows = {title: list(map(cells.make, row)) for title, row in numbers}
  return PaperTable(
    *(artifact, corner, columns, rows),
    captions.of_table(
      artifact,
      cells.used,
      itertools.chain(*rows.values()),
      found.suites,
    ),
    (*artifact.notes, *dataset_lib.sentences(cells.problems)),
  )


class _Number(NamedTuple):
  """The number that a cell shows.

  Attributes:
    arm: the algorithm, ours or a published one.
    place: a suite, or an environment for its score.
    metric: `score` or a summary.
    share: the share of the budget at which the number is measured.
  """

  arm: str
  place: str
  metric: str
  share: float = 1.0


# The title of the first column, the other titles, and the numbers of each row.
_Layout = tuple[str, tuple[str, ...], list[tuple[str, list[_Number]]]]


def _by_algorithm(artifact: artifacts.Artifact) -> _Layout:
  """Lays out a row per arm and share, and a column per suite and metric.

  Published algorithms, which only the paper's table has, come first.
  """
  titles = {}
  for number in published.numbers(artifact.id):
    if number.arm not in artifacts.ARMS:
      at = f', {number.frames // 4:,} interactions' if number.frames else ''
      share = number.frames / artifacts.PAPER_TRANSFER_FRAMES
      titles[number.arm, share] = number.arm + at
  for share in artifact.points:
    several = len(artifact.points) > 1
    at = f', {100 * share:.0f}% of the budget' if several else ''
    titles.update(
      {(a, share): artifacts.ARMS[a].title + at for a in artifact.arms}
    )
  columns = list(itertools.product(artifact.suites, artifact.metrics))
  rows = [
    (title, [_Number(arm, *column, share) for column in columns])
    for (arm, share), title in titles.items()
  ]
  headers = (
    f'{_SUITE_TITLES.get(suite, suite)}: {effects.STATISTICS[metric]["title"]}'
    for suite, metric in columns
  )
  return 'algorithm', tuple(headers), rows


def _by_environment(
  artifact: artifacts.Artifact, suites: artifacts.Suites
) -> _Layout:
  """Lays out a row per environment, with medians last, and a column per arm."""
  (suite,) = artifact.suites
  titles = {(env, 'score'): env for env in suites.get(suite, ())}
  for metric in artifact.metrics[1:]:
    titles[suite, metric] = f'{effects.STATISTICS[metric]["title"]}, normalized'
  rows = [
    (title, [_Number(arm, *row) for arm in artifact.arms])
    for row, title in titles.items()
  ]
  columns = tuple(artifacts.ARMS[arm].title for arm in artifact.arms)
  return 'environment', columns, rows


class _Cells:
  """Computes the cells of one table and collects the underlying samples."""

  def __init__(self, artifact: artifacts.Artifact, found: results.Results):
    self._results = found
    self._samples: dict[_Number, results.ArmResults] = {}
    self._artifact = artifact
    here, paper = found.suites.get('tasks', ()), artifacts.PAPER_SUITES['tasks']
    self._stands_for: Mapping[str, str] = {}
    if artifact.suites == ('tasks',) and len(here) == len(paper):
      self._stands_for = dict(zip(here, paper, strict=True))

  @property
  def used(self) -> list[RunRow]:
    """The runs behind the cells."""
    return [run for sample in self._samples.values() for run in sample.runs]

  @property
  def problems(self) -> list[Problem]:
    """The missing data, including runs that failed after their evaluation."""
    found = [p for sample in self._samples.values() for p in sample.problems]
    failed = (r for r in self.used if r.status == dataset_lib.FAILED)
    return [*found, *(dataset_lib.problem_of(run, '') for run in failed)]

  def make(self, number: _Number) -> Cell:
    """Makes a cell; comparable numbers get as many decimals as the paper's."""
    # Tasks of this scale correspond to tasks of the paper.
    place = self._stands_for.get(number.place, number.place)
    frames = artifacts.paper_frames(number.arm, number.share)
    paper = published.find(
      self._artifact.id, number.arm, place, number.metric, frames
    )
    cell = Cell()
    if number.arm in artifacts.ARMS:
      paper_envs = artifacts.PAPER_SUITES.get(place, (place,))
      cell = self._ours(number, paper_envs, paper.frames if paper else frames)
    if paper is None:
      return cell
    return cell._replace(
      paper=paper.value,
      paper_spread=paper.spread,
      decimals=paper.decimals if cell.comparable else cell.decimals,
    )

  def _ours(
    self, number: _Number, paper_envs: Sequence[str], frames: float
  ) -> Cell:
    is_score = number.metric == 'score'
    suites = self._results.suites
    envs = (number.place,) if is_score else suites.get(number.place, ())
    if not envs:
      return Cell(note='unknown environments')
    # All summaries of a suite share a sample, in the environments of all arms.
    key = number._replace(metric='')
    if key not in self._samples:
      reading = results.at(number.share, is_normalized=not is_score)
      found = results.in_shared_environments(
        lambda arm, envs: self._results.sample(arm, envs, reading),
        [number.arm] if is_score else self._artifact.arms,
        envs,
      )
      self._samples |= {key._replace(arm=arm): found[arm] for arm in found}
    sample = self._samples[key]
    note = ' '.join(dataset_lib.sentences(sample.problems))
    if not sample.envs:
      return Cell(note=note)
    statistic = effects.METRICS['mean' if is_score else number.metric]
    has_spread = is_score and sample.seeds > 1
    return Cell(
      *intervals.bootstrap(statistic, sample.values),
      spread=float(np.std(sample.values)) if has_spread else math.nan,
      seeds=sample.seeds,
      games=len(sample.envs),
      decimals=0 if number.metric.startswith('num_') else 2,
      comparable=set(sample.envs) == set(paper_envs)
      and all(_is_comparable(r, number.share, frames) for r in sample.runs),
      note=note,
    )


def _is_comparable(run: RunRow, share: float, frames: float) -> bool:
  """Returns whether the budget and the scale of a run match the paper."""
  # The frames of training with rewards.
  learned = share * run.budget_steps * run.frames_per_step
  return (
    run.scale == 'paper'
    and (0 if run.stage == 'zero_shot' else round(learned)) == frames
    and run.pretraining_steps in (0, artifacts.PAPER_PRETRAINING_STEPS)
  )
