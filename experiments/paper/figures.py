"""Makes the paper's figures from a dataset.

A figure lists what to draw and what data are missing. Figure 7, a drawing of
the network, is replaced by a table of the network's parameters.
Source: Campos et al. 2021, arXiv:2102.13515.
"""

import collections
import functools
import itertools
from typing import Any, Callable, Iterator, Mapping, NamedTuple, Sequence

import numpy as np

from bt_acme import files
from bt_acme.evaluation import intervals, plots
from bt_acme.evaluation import panels as panels_lib
from experiments.harness import dataset as dataset_lib
from experiments.harness import diagnosis
from experiments.paper import (
  artifacts,
  captions,
  curves,
  published,
  results,
  small_scores,
)
from experiments.paper.results import ArmResults

FIGURES = tuple(
  artifact.id
  for artifact in artifacts.ARTIFACTS.values()
  if artifact.kind in ('curves', 'budgets')
)


class _Metric(NamedTuple):
  """The metric of a panel.

  Attributes:
    ylabel: the label of the y-axis.
    how: a sentence that explains the lines.
    bands: a sentence that explains the bands.
    column: the column of scores that is read.
  """

  ylabel: str
  how: str = 'Lines are means over seeds.'
  bands: str = 'Bands span the range over seeds.'
  column: str = 'return_mean'


_METRICS: Mapping[str, _Metric] = {
  'score': _Metric('score'),
  'greedy_extra_share': _Metric(
    'share of the extra action', column='greedy_extra_share'
  ),
  'median': _Metric(
    'median normalized score, %',
    'Lines are medians over environments of the mean over seeds. Normalized '
    'scores are 0 for a uniform policy, and 100 for a human on Atari or the '
    'best possible score elsewhere.',
    'Bands are 95% bootstrap intervals over seeds.',
  ),
}
_ONE_SEED = 'A single seed has no band.'

# Figure 2: policies alone, and a policy before and after transfer.
_BUDGET_ARMS = {
  'full': ('ngu', 'rnd', 'constant'),
  'budgets': ('ngu', 'bt_ngu'),
}
# Published algorithms in figure 2, after 100k interactions.
_PUBLISHED = ('VISR', 'APT')
_PUBLISHED_FRAMES = 400_000


class Figure(NamedTuple):
  """The content of a figure.

  Attributes:
    id: identifier such as `fig9`.
    panels: the panels, row by row.
    columns: the number of panels in a row.
    caption: a description of seeds, budget, scale, lines and bands.
    problems: the missing data.
    xlabel: the label of the x-axis.
    log_x: whether the x-axis is logarithmic.
  """

  id: str
  panels: tuple[panels_lib.Panel, ...]
  columns: int
  caption: str
  problems: tuple[diagnosis.Problem, ...]
  xlabel: str
  log_x: bool


def make(
  figure_id: str,
  dataset: dataset_lib.Dataset,
  suites: artifacts.Suites,
  normalize: Callable[[str, Any], Any] = small_scores.normalize,
) -> Figure:
  """Makes a figure from the runs of one scale.

  Args:
    figure_id: one of `FIGURES`.
    dataset: the runs and scores.
    suites: the scale's environments by suite.
    normalize: maps an environment and its returns to percent.

  Raises:
    ValueError: if the figure is unknown or the runs belong to several scales.
  """
  if figure_id not in FIGURES:
    raise ValueError(
      f'figure_id={figure_id!r} is not a figure with curves. Choose one of '
      f'{", ".join(FIGURES)}.'
    )
  scales = {run.scale for run in dataset.runs}
  if len(scales) > 1:
    raise ValueError(
      f'dataset has runs of the scales {", ".join(sorted(scales))}, which '
      'cannot be combined. Pass the runs of one scale.'
    )
  artifact = artifacts.find(figure_id)
  source = _Panels(artifact, dataset, suites, normalize)
  panels = tuple(source.make())
  problems = [problem for one in source.used for problem in one.problems]
  problems += [
    diagnosis.Problem('The scale has no environments for', suite)
    for suite in artifact.suites
    if not suites.get(suite)
  ]
  # For example, 57 panels fill ten rows.
  across = 6 if len(panels) > 12 else 4 if len(panels) > 9 else 3
  is_by_budget = artifact.kind == 'budgets'
  return Figure(
    figure_id,
    panels,
    artifact.columns or across,
    _caption(artifact, source),
    tuple(dict.fromkeys(problems)),
    'frames of pre-training' if is_by_budget else 'frames',
    log_x=is_by_budget,
  )


def draw(
  path: files.PathLike,
  figure: Figure,
  formats: Sequence[str] = panels_lib.FORMATS,
) -> plots.Picture | None:
  """Draws a figure as PATH.png and PATH.pdf and writes its points to PATH.csv.

  Returns None and draws nothing if no panel has lines.
  """
  if not any(panel.lines for panel in figure.panels):
    return None
  # Only counts, because names of runs would need more space than the panels.
  kinds = collections.Counter(problem.what for problem in figure.problems)
  counts = '; '.join(f'{what}: {count}' for what, count in kinds.items())
  return panels_lib.draw(
    path,
    figure.panels,
    columns=figure.columns,
    xlabel=figure.xlabel,
    log_x=figure.log_x,
    caption=figure.caption + (f' Incomplete: {counts}.' if counts else ''),
    formats=formats,
  )


class _Panels:
  """Makes the panels of one figure.

  Attributes:
    used: the samples behind all lines and levels.
    how: the sentences that explain lines and bands; a dictionary without
      values, which keeps their order.
  """

  def __init__(
    self,
    artifact: artifacts.Artifact,
    dataset: dataset_lib.Dataset,
    suites: artifacts.Suites,
    normalize: Callable[[str, Any], Any],
  ):
    self.used: list[ArmResults] = []
    self.how: dict[str, None] = {}
    self._artifact = artifact
    self._dataset = dataset
    self._results = results.Results(dataset)
    self._suites = suites
    self._normalize = normalize

  def make(self) -> Iterator[panels_lib.Panel]:
    """Yields a panel for a suite's median, or one for each environment."""
    artifact = self._artifact
    for suite, metric in zip(artifact.suites, artifact.metrics, strict=True):
      envs = self._suites.get(suite, ())
      if metric != 'median':
        if artifact.columns == 2:
          # One column for each of the two environments with three rewards.
          envs = [env for i in range(3) for env in envs[i::3]]
        yield from (self._panel(suite, [env], metric) for env in envs)
      elif envs:
        yield self._panel(suite, envs, metric)

  def _panel(
    self, suite: str, envs: Sequence[str], metric: str
  ) -> panels_lib.Panel:
    found, ends = self._read(suite, envs, metric), self._ends(envs)
    self.used += (*found.values(), *ends.values())
    lines = tuple(
      self._line(artifacts.TITLES[arm], one, metric)
      for arm, one in found.items()
      if len(one.frames)
    )
    levels = [
      panels_lib.Level(artifacts.TITLES[arm], float(np.mean(one.values)))
      for arm, one in ends.items()
      if one.envs
    ]
    title = _title(suite if metric == 'median' else '', envs, found)
    if metric == 'median' and self._artifact.kind == 'budgets':
      levels += self._published()
    shown = _METRICS[metric]
    if lines:
      has_bands = any(one.seeds > 1 for one in found.values())
      self.how[shown.how] = None
      if self._artifact.has_bands:
        self.how[shown.bands if has_bands else _ONE_SEED] = None
    return panels_lib.Panel(title, shown.ylabel, lines, tuple(levels))

  def _line(self, label: str, one: ArmResults, metric: str) -> panels_lib.Line:
    """Makes a line of medians with intervals, or of means with ranges."""
    if metric == 'median':
      statistic = intervals.over_points(intervals.median)
      estimate = intervals.bootstrap(statistic, one.values)
      return panels_lib.Line(label, one.frames, *estimate)
    values = one.values[:, 0]  # [seeds, N]
    line = panels_lib.Line(label, one.frames, values.mean(axis=0))
    if one.seeds < 2 or not self._artifact.has_bands:
      return line
    return line._replace(low=values.min(axis=0), high=values.max(axis=0))

  def _read(
    self, suite: str, envs: Sequence[str], metric: str
  ) -> dict[str, ArmResults]:
    """Reads the curves of a panel by arm."""
    scale = self._normalize if metric == 'median' else _unchanged
    arms = [a for a in self._artifact.arms if a not in artifacts.ZERO_SHOT]
    read: Callable[[str, Sequence[str]], ArmResults] = functools.partial(
      curves.read,
      self._results,
      column=_METRICS[metric].column,
      scale=scale,
      window=self._artifact.window,
    )
    if self._artifact.kind == 'budgets':
      arms = list(_BUDGET_ARMS[suite])
      every = (self._results.budgets(arm, env) for arm in arms for env in envs)
      if metric == 'median' and len(set(itertools.chain(*every))) < 2:
        # With fewer than two budgets, use the evaluations of pre-training.
        found = results.Results(_pretraining_as_zero_shot(self._dataset))
        read = functools.partial(curves.read, found, scale=scale)
      else:
        read = functools.partial(
          curves.read_by_pretraining, self._results, scale=scale
        )
    return curves.in_shared_environments(read, arms, envs)

  def _ends(self, envs: Sequence[str]) -> dict[str, ArmResults]:
    """Reads the final results of arms that do not learn the task."""
    ends = {}
    for arm in self._artifact.arms:
      if arm in artifacts.ZERO_SHOT and self._artifact.kind == 'curves':
        ends[arm] = self._results.sample(arm, envs, results.at(1.0))
    return ends

  def _published(self) -> tuple[panels_lib.Level, ...]:
    """Returns medians of published algorithms if the games are the same."""
    if set(self._suites['full']) != set(artifacts.PAPER_SUITES['full']):
      return ()
    return tuple(
      panels_lib.Level(f'{number.arm}, 100k interactions', float(number.value))
      for number in published.numbers('table2')
      if number.arm in _PUBLISHED
      and (number.suite, number.metric) == ('full', 'median')
      and number.frames == _PUBLISHED_FRAMES
    )


def _unchanged(env: str, value: Any) -> Any:
  del env
  return value


def _title(
  suite: str, envs: Sequence[str], found: dict[str, ArmResults]
) -> str:
  """Returns the title of a panel for a suite or for a single environment."""
  if not suite:
    # Omit the parts that all MiniGrid names have in common.
    return envs[0].replace('MiniGrid-', '').replace('-v0', '')
  shared = max(len(one.envs) for one in found.values())
  some = f'{shared} of {len(envs)}' if 0 < shared < len(envs) else len(envs)
  return f'{suite}: {some} environment{"" if len(envs) == 1 else "s"}'


def _pretraining_as_zero_shot(
  dataset: dataset_lib.Dataset,
) -> dataset_lib.Dataset:
  """Converts pre-training runs to zero-shot runs, to use their evaluations."""
  return dataset._replace(
    runs=tuple(
      run._replace(stage='zero_shot')
      for run in dataset.runs
      if run.stage == 'pretraining'
    )
  )


def _caption(artifact: artifacts.Artifact, source: _Panels) -> str:
  """Describes the figure and the underlying runs."""
  used = [sample for sample in source.used if sample.runs]
  if not used:
    return (
      f'{artifact.title}. Nothing is drawn, because none of its runs has been '
      'evaluated.'
    )
  runs = [run for one in used for run in one.runs]
  return ' '.join(
    [
      f'{artifact.title}.',
      captions.made_of(runs, (one.seeds for one in used)),
      *source.how,
      *artifact.notes,
    ]
  )
