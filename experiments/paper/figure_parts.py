"""The panels that figures are put together from, and the runs behind them."""

import functools
from typing import (
  Any,
  Callable,
  Dict,
  List,
  NamedTuple,
  Optional,
  Sequence,
  Tuple,
)

import numpy as np

from bt_acme.evaluation import panels as panels_lib
from experiments.harness import dataset as dataset_lib
from experiments.paper import artifacts, curves, results
from experiments.paper.curves import Curves

SCORE = 'score'
NORMALIZED = 'median normalized score, %'

# How lines were computed, for captions.
_MEANS = 'Lines are means over seeds.'
_RANGES = 'Bands reach from the lowest seed to the highest.'
_MEDIANS = (
  'Medians are taken over worlds, of the mean over seeds. Normalized scores '
  'are 0 for a uniform policy, and 100 for a human on Atari or the best that '
  'there is elsewhere.'
)
_INTERVALS = 'Bands are 95 % bootstrap intervals over seeds.'
_ONE_SEED = 'One seed has no band.'


class Source(NamedTuple):
  """What figures are made of.

  Attributes:
    dataset: the runs of one scale, and their scores.
    suites: its worlds, by the roles that `artifacts` lists.
    normalize: maps a world and its returns to percent.
  """

  dataset: dataset_lib.Dataset
  suites: artifacts.Suites
  normalize: Callable[[str, Any], Any]

  def envs(self, suite: str) -> Sequence[str]:
    """The worlds of a suite; none if the scale does not fill it."""
    return self.suites.get(suite, ())

  def normalized(self, run: dataset_lib.Run, score: dataset_lib.Score) -> float:
    """Reads the normalized return of an evaluation."""
    return float(self.normalize(run.env, score.return_mean))

  def normalized_end(
    self, found: results.Results, run: dataset_lib.Run
  ) -> Optional[float]:
    """Reads the normalized return that a run has come to."""
    value = results.at(1.0)(found, run)
    return None if value is None else float(self.normalize(run.env, value))


class Part(NamedTuple):
  """A panel.

  Attributes:
    panel: what is drawn.
    curves: what its lines and levels were made of.
    how: how they were computed, in sentences.
  """

  panel: panels_lib.Panel
  curves: Tuple[Curves, ...]
  how: Tuple[str, ...]


def return_mean(run: dataset_lib.Run, score: dataset_lib.Score) -> float:
  """Reads the return of an evaluation."""
  del run
  return score.return_mean


def greedy_extra_share(run: dataset_lib.Run, score: dataset_lib.Score) -> float:
  """Reads the share of greedy decisions that were the extra action."""
  del run
  return score.greedy_extra_share


def scores(
  source: Source,
  arms: Sequence[str],
  envs: Sequence[str],
  *,
  value: curves.Value = return_mean,
  ylabel: str = SCORE,
  band: bool = True,
  level_of: str = '',
) -> List[Part]:
  """Makes a panel for each world, against frames of training.

  Args:
    source: the runs.
    arms: a line for each of them.
    envs: the worlds.
    value: what is read of an evaluation.
    ylabel: what that is.
    band: whether lines have bands.
    level_of: an arm that does not learn the task, as a level; empty for none.
  """
  found = results.Results(source.dataset)
  parts = []
  for env in envs:
    lines = {arm: curves.read(found, arm, [env], value) for arm in arms}
    part = _scores_part(env, lines, ylabel, band=band)
    if level_of:
      end = found.sample(level_of, [env], results.at(1.0))
      part = _with_level(part, artifacts.TITLES[level_of], end)
    parts.append(part)
  return parts


def scores_by_pretraining(
  source: Source, arms: Sequence[str], envs: Sequence[str]
) -> List[Part]:
  """Makes a panel for each world, of end scores by frames of pre-training."""
  found = results.Results(source.dataset)
  return [
    _scores_part(
      env,
      {
        arm: curves.read_by_pretraining(found, arm, [env], results.at(1.0))
        for arm in arms
      },
      SCORE,
      band=True,
    )
    for env in envs
  ]


def medians(
  source: Source,
  arms: Sequence[str],
  suites: Sequence[str],
  *,
  window: float = 1.0,
) -> List[Part]:
  """Makes a panel for each suite, against frames of training.

  Args:
    source: the runs.
    arms: a line for each of them.
    suites: those that the scale does not fill are left out.
    window: the share of the budget that is shown.
  """
  found = results.Results(source.dataset)
  read = functools.partial(
    curves.read, found, value=source.normalized, window=window
  )
  return [
    _medians_part(source, suite, arms, read)
    for suite in suites
    if source.envs(suite)
  ]


def medians_by_pretraining(
  source: Source,
  arms: Sequence[str],
  suite: str,
  levels: Tuple[panels_lib.Level, ...] = (),
) -> List[Part]:
  """Makes a panel of policies without transfer, by frames of pre-training.

  If there are policies of two budgets or more, each budget is a point.
  Otherwise the panel shows the evaluations that pre-training itself has made.

  Args:
    source: the runs.
    arms: a line for each of them.
    suite: the suite; without worlds, there is no panel.
    levels: numbers to compare with.
  """
  envs = source.envs(suite)
  if not envs:
    return []
  found = results.Results(source.dataset)
  read: Callable[..., Curves]
  if len({n for a in arms for env in envs for n in found.budgets(a, env)}) > 1:
    read = functools.partial(
      curves.read_by_pretraining, found, reading=source.normalized_end
    )
  else:
    read = functools.partial(
      curves.read,
      results.Results(_pretraining_as_zero_shot(source.dataset)),
      value=source.normalized,
    )
  part = _medians_part(source, suite, arms, read)
  return [part._replace(panel=part.panel._replace(levels=levels))]


def _scores_part(
  env: str, found: Dict[str, Curves], ylabel: str, *, band: bool
) -> Part:
  lines = tuple(
    curves.mean_line(one, artifacts.TITLES[arm], band=band)
    for arm, one in found.items()
    if len(one.frames)
  )
  panel = panels_lib.Panel(curves.title(env), ylabel, lines)
  how = (_MEANS, *_bands(found, _RANGES)) if band else (_MEANS,)
  return Part(panel, tuple(found.values()), how)


def _bands(found: Dict[str, Curves], what: str) -> Tuple[str, ...]:
  """Says what the bands are, if any line has one."""
  has_band = any(one.seeds > 1 for one in found.values())
  return (what,) if has_band else (_ONE_SEED,)


def _with_level(part: Part, label: str, end: results.Sample) -> Part:
  """Adds what an arm has come to without learning the task."""
  made_of = Curves(np.zeros(1), end.values[..., None], *end[1:])
  panel = part.panel
  if end.envs:
    level = panels_lib.Level(label, float(np.mean(end.values)))
    panel = panel._replace(levels=(level,))
  return part._replace(panel=panel, curves=(*part.curves, made_of))


def _medians_part(
  source: Source,
  suite: str,
  arms: Sequence[str],
  read: Callable[..., Curves],
) -> Part:
  envs = source.envs(suite)
  found = curves.on_shared_worlds(read, arms, envs)
  lines = tuple(
    curves.median_line(one, artifacts.TITLES[arm])
    for arm, one in found.items()
    if len(one.frames)
  )
  shared = max((len(one.envs) for one in found.values()), default=0)
  some = f'{shared} of {len(envs)}' if 0 < shared < len(envs) else len(envs)
  title = f'{suite}: {some} {"world" if len(envs) == 1 else "worlds"}'
  panel = panels_lib.Panel(title, NORMALIZED, lines)
  how = (_MEDIANS, *_bands(found, _INTERVALS))
  return Part(panel, tuple(found.values()), how)


def _pretraining_as_zero_shot(
  dataset: dataset_lib.Dataset,
) -> dataset_lib.Dataset:
  """Takes runs of pre-training for what they also are: policies evaluated."""
  return dataset._replace(
    runs=tuple(
      run._replace(stage='zero_shot')
      for run in dataset.runs
      if run.stage == 'pretraining'
    )
  )
