"""The figures of the paper, out of runs.

A figure is a function of the data set: it says what there is to draw, and what
is missing. Figure 7, a drawing of the network, is a table of its parameters.
Source: Campos et al. 2021, arXiv:2102.13515.
"""

import collections
import functools
import itertools
from typing import (
  Any,
  Callable,
  Dict,
  Iterator,
  Mapping,
  NamedTuple,
  Optional,
  Sequence,
  Tuple,
)

import numpy as np

from bt_acme import files
from bt_acme.evaluation import intervals, plots
from bt_acme.evaluation import panels as panels_lib
from experiments.harness import dataset as dataset_lib
from experiments.paper import (
  artifacts,
  captions,
  curves,
  normalization,
  published,
  results,
)
from experiments.paper.curves import Curves

FIGURES = tuple(
  artifact.id
  for artifact in artifacts.ARTIFACTS.values()
  if artifact.kind in ('curves', 'budgets')
)


class _Metric(NamedTuple):
  """What a panel shows.

  Attributes:
    ylabel: what stands at its axis.
    how: how its lines were computed, in a sentence.
    bands: and how their bands were.
    column: what is read of an evaluation.
  """

  ylabel: str
  how: str = 'Lines are means over seeds.'
  bands: str = 'Bands reach from the lowest seed to the highest.'
  column: str = 'return_mean'


_METRICS: Mapping[str, _Metric] = {
  'score': _Metric('score'),
  'greedy_extra_share': _Metric(
    'share of the extra action', column='greedy_extra_share'
  ),
  'median': _Metric(
    'median normalized score, %',
    'Medians are taken over worlds, of the mean over seeds. Normalized scores '
    'are 0 for a uniform policy, and 100 for a human on Atari or the best that '
    'there is elsewhere.',
    'Bands are 95 % bootstrap intervals over seeds.',
  ),
}
_ONE_SEED = 'One seed has no band.'

# Figure 2: policies by themselves, and then what transfer makes of one.
_BUDGET_ARMS = {
  'full': ('ngu', 'rnd', 'constant'),
  'budgets': ('ngu', 'bt_ngu'),
}
# Published algorithms with which it compares, after 100k interactions.
_PUBLISHED = ('VISR', 'APT')
_PUBLISHED_FRAMES = 400_000


class Figure(NamedTuple):
  """What there is to draw.

  Attributes:
    id: such as `fig9`.
    panels: row by row.
    columns: the panels in a row.
    caption: seeds, budget, scale and how lines were computed, in sentences.
    problems: what is missing.
    xlabel: what the frames are.
    log_x: whether frames are on a logarithmic axis.
  """

  id: str
  panels: Tuple[panels_lib.Panel, ...]
  columns: int
  caption: str
  problems: Tuple[results.Problem, ...]
  xlabel: str
  log_x: bool


def make(
  figure_id: str,
  dataset: dataset_lib.Dataset,
  suites: artifacts.Suites,
  normalize: Callable[[str, Any], Any] = normalization.normalize,
) -> Figure:
  """Makes a figure of the runs of one scale.

  Args:
    figure_id: one of `FIGURES`.
    dataset: the runs and scores.
    suites: the scale's worlds, by the roles that `artifacts` lists.
    normalize: maps a world and its returns to percent.

  Raises:
    ValueError: if there is no such figure, or if runs are of several scales.
  """
  if figure_id not in FIGURES:
    raise ValueError(
      f'figure_id={figure_id!r} is not a figure with curves: choose one of '
      f'{", ".join(FIGURES)}.'
    )
  scales = {run.scale for run in dataset.runs}
  if len(scales) > 1:
    raise ValueError(
      f'dataset has runs of the scales {", ".join(sorted(scales))}, whose '
      'numbers do not belong together: pass the runs of one of them.'
    )
  artifact = artifacts.find(figure_id)
  parts = tuple(_Source(artifact, dataset, suites, normalize).parts())
  problems = [p for part in parts for c in part.curves for p in c.problems]
  problems += [
    results.Problem('The scale has no worlds for', suite)
    for suite in artifact.suites
    if not suites.get(suite)
  ]
  # 57 panels stand in ten rows.
  across = 6 if len(parts) > 12 else 4 if len(parts) > 9 else 3
  is_by_budget = artifact.kind == 'budgets'
  return Figure(
    figure_id,
    tuple(part.panel for part in parts),
    artifact.columns or across,
    _caption(artifact, parts),
    tuple(dict.fromkeys(problems)),
    'frames of pre-training' if is_by_budget else 'frames',
    log_x=is_by_budget,
  )


def draw(
  path: files.PathLike,
  figure: Figure,
  formats: Sequence[str] = panels_lib.FORMATS,
) -> Optional[plots.Picture]:
  """Draws a figure as PATH.png and PATH.pdf, and writes its points as PATH.csv.

  Nothing is drawn if there is nothing to show, as the caption then says.
  """
  if not any(panel.lines for panel in figure.panels):
    return None
  # Names of runs would take more room than the panels.
  kinds = collections.Counter(problem.what for problem in figure.problems)
  counts = '; '.join(f'{what}: {count}' for what, count in kinds.items())
  return panels_lib.draw(
    path,
    figure.panels,
    columns=figure.columns,
    xlabel=figure.xlabel,
    log_x=figure.log_x,
    caption=figure.caption + (f' Not complete: {counts}.' if counts else ''),
    formats=formats,
  )


class _Part(NamedTuple):
  """A panel.

  Attributes:
    panel: what is drawn.
    curves: what its lines and levels were made of.
    how: how they were computed, in sentences.
  """

  panel: panels_lib.Panel
  curves: Tuple[Curves, ...]
  how: Tuple[str, ...]


class _Source:
  """Makes the panels of one figure."""

  def __init__(
    self,
    artifact: artifacts.Artifact,
    dataset: dataset_lib.Dataset,
    suites: artifacts.Suites,
    normalize: Callable[[str, Any], Any],
  ):
    self._artifact = artifact
    self._dataset = dataset
    self._results = results.Results(dataset)
    self._suites = suites
    self._normalize = normalize

  def parts(self) -> Iterator[_Part]:
    """Yields a panel for a suite's median, or one for each of its worlds."""
    artifact = self._artifact
    for suite, metric in zip(artifact.suites, artifact.metrics, strict=True):
      envs = self._suites.get(suite, ())
      if metric != 'median':
        if artifact.columns == 2:
          # A column for each of the two worlds, which have three rewards.
          envs = [env for i in range(3) for env in envs[i::3]]
        yield from (self._part(suite, [env], metric) for env in envs)
      elif envs:
        yield self._part(suite, envs, metric)

  def _part(self, suite: str, envs: Sequence[str], metric: str) -> _Part:
    found, ends = self._read(suite, envs, metric), self._ends(envs)
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
    has_bands = any(one.seeds > 1 for one in found.values())
    bands = shown.bands if has_bands else _ONE_SEED
    return _Part(
      panels_lib.Panel(title, shown.ylabel, lines, tuple(levels)),
      (*found.values(), *ends.values()),
      (shown.how, bands) if self._artifact.has_bands else (shown.how,),
    )

  def _line(self, label: str, one: Curves, metric: str) -> panels_lib.Line:
    """The median with its interval, or the mean from seed to seed."""
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
  ) -> Dict[str, Curves]:
    """Reads the lines of a panel, by arm."""
    scale = self._normalize if metric == 'median' else _as_it_is
    arms = [a for a in self._artifact.arms if a not in artifacts.ZERO_SHOT]
    read: Callable[[str, Sequence[str]], Curves] = functools.partial(
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
        # Then there is what pre-training itself has evaluated.
        found = results.Results(_pretraining_as_zero_shot(self._dataset))
        read = functools.partial(curves.read, found, scale=scale)
      else:
        read = functools.partial(
          curves.read_by_pretraining, self._results, scale=scale
        )
    return curves.on_shared_worlds(read, arms, envs)

  def _ends(self, envs: Sequence[str]) -> Dict[str, Curves]:
    """What arms have come to that do not learn the task."""
    ends = {}
    for arm in self._artifact.arms:
      if arm in artifacts.ZERO_SHOT and self._artifact.kind == 'curves':
        end = self._results.sample(arm, envs, results.at(1.0))
        ends[arm] = Curves(np.zeros(1), end.values[..., None], *end[1:])
    return ends

  def _published(self) -> Tuple[panels_lib.Level, ...]:
    """Medians of published algorithms, if the games are the same."""
    if set(self._suites['full']) != set(artifacts.PAPER_SUITES['full']):
      return ()
    return tuple(
      panels_lib.Level(f'{number.arm}, 100k interactions', float(number.value))
      for number in published.numbers('table2')
      if number.arm in _PUBLISHED
      and (number.suite, number.metric) == ('full', 'median')
      and number.frames == _PUBLISHED_FRAMES
    )


def _as_it_is(env: str, value: Any) -> Any:
  del env
  return value


def _title(suite: str, envs: Sequence[str], found: Dict[str, Curves]) -> str:
  """A suite and how many worlds are shown, or the name of a world."""
  if not suite:
    # What all worlds of its kind have in common is left out.
    return envs[0].replace('MiniGrid-', '').replace('-v0', '')
  shared = max(len(one.envs) for one in found.values())
  some = f'{shared} of {len(envs)}' if 0 < shared < len(envs) else len(envs)
  return f'{suite}: {some} {"world" if len(envs) == 1 else "worlds"}'


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


def _caption(artifact: artifacts.Artifact, parts: Sequence[_Part]) -> str:
  """Says what is drawn, and of which runs."""
  used = [c for part in parts for c in part.curves if c.runs]
  if not used:
    return (
      f'{artifact.title}. Nothing is drawn, because no run of it has been '
      'evaluated.'
    )
  runs = [run for one in used for run in one.runs]
  how = (one for part in parts if part.panel.lines for one in part.how)
  sentences = [
    f'{artifact.title}.',
    captions.made_of(runs, (one.seeds for one in used)),
    *dict.fromkeys(how),
    *artifact.notes,
  ]
  return ' '.join(sentences)
