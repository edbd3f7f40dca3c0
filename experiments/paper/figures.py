"""Makes the paper's figures from a dataset.

A figure lists what to draw and what data are missing. Figure 7, a drawing of
the network, is replaced by a table of the network's parameters.
Source: Campos et al. 2021, arXiv:2102.13515.
"""

import collections
import functools
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from bt_acme import files
from bt_acme.evaluation import curve_panels as panels_lib
from bt_acme.evaluation import intervals, plots
from experiments.harness import dataset as dataset_lib
from experiments.paper import artifacts, captions, published, results

# The labels of the y-axis by metric.
_YLABELS = {
  'score': 'score',
  'greedy_extra_share': 'share of the extra action',
  'median': 'median normalized score, %',
}
# Sentences that explain the lines and bands of medians and of other metrics.
_MEDIANS = (
  'Lines are medians over environments of the mean over seeds. Normalized '
  'scores are 0 for a uniform policy, and 100 for a human on Atari or the '
  'best possible score elsewhere.',
  'Bands are 95% bootstrap intervals over seeds.',
)
_MEANS = ('Lines are means over seeds.', 'Bands span the range over seeds.')
_ONE_SEED = 'A single seed has no band.'

# Published algorithms in figure 2, after 100k interactions.
_PUBLISHED = ('VISR', 'APT')
_FRAMES = 400_000


class Figure:
  """The content of a figure.

  Attributes:
    panels: the panels, row by row.
  """

  def __init__(self, artifact: artifacts.Artifact, found: results.Results):
    self._artifact = artifact
    self._results = found
    # The samples behind all lines and levels.
    self._used: list[results.ArmResults] = []
    # The sentences that explain lines and bands: a dictionary without values,
    # which keeps their order.
    self._how: dict[str, None] = {}
    self.panels = tuple(self._make())

  @property
  def problems(self) -> list[dataset_lib.Problem]:
    """The missing data."""
    problems = [problem for one in self._used for problem in one.problems]
    problems += [
      results.no_environments(suite)
      for suite in self._artifact.suites
      if not self._results.suites.get(suite)
    ]
    return list(dict.fromkeys(problems))

  @property
  def caption(self) -> str:
    """A description of seeds, budget, scale, lines and bands."""
    title, notes = f'{self._artifact.title}.', self._artifact.notes
    runs = [run for one in self._used for run in one.runs]
    if not runs:
      return f'{title} Nothing is drawn, because no run has been evaluated.'
    seeds = (one.seeds for one in self._used if one.runs)
    made_of = captions.made_of(runs, seeds)
    if self._artifact.window < 1:
      end = max(one.frames.max(initial=0) for one in self._used)
      made_of += f' Shown are the first {panels_lib.with_unit(end)} frames.'
    return ' '.join([title, made_of, *self._how, *notes])

  def draw(
    self, path: files.PathLike, formats: Sequence[str]
  ) -> plots.Picture | None:
    """Draws PATH.png and PATH.pdf and writes all points to PATH.csv.

    Returns None and draws nothing if no panel has lines.
    """
    panels, by_budget = self.panels, self._artifact.by_budget
    if not any(panel.lines for panel in panels):
      return None
    # Only counts, because names of runs would need more space than the panels.
    kinds = collections.Counter(what for what, _ in self.problems)
    counts = '; '.join(f'{what}: {count}' for what, count in kinds.items())
    # For example, 57 panels fill ten rows.
    across = 6 if len(panels) > 12 else 4 if len(panels) > 9 else 3
    # Budgets of pre-training are far apart.
    return panels_lib.draw(
      path,
      panels,
      columns=self._artifact.columns or across,
      xlabel='frames of pre-training' if by_budget else 'frames',
      log_x=by_budget,
      caption=self.caption + (f' Incomplete: {counts}.' if counts else ''),
      formats=formats,
    )

  def _make(self) -> Iterator[panels_lib.Panel]:
    """Yields a panel for a suite's median, or one for each environment."""
    artifact = self._artifact
    for suite, metric in zip(artifact.suites, artifact.metrics, strict=True):
      envs = self._results.suites.get(suite, ())
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
    is_median = metric == 'median'
    found, ends = self._read(suite, envs, metric), self._ends(envs)
    self._used += (*found.values(), *ends.values())
    lines = tuple(
      self._line(artifacts.ARMS[arm].title, one, is_median)
      for arm, one in found.items()
      if len(one.frames)
    )
    levels = {
      artifacts.ARMS[arm].title: float(np.mean(one.values))
      for arm, one in ends.items()
      if one.envs
    }
    if is_median and self._artifact.by_budget:
      levels |= self._published()
    if lines:
      how, bands = _MEDIANS if is_median else _MEANS
      has_bands = any(one.seeds > 1 for one in found.values())
      self._how[how] = None
      if self._artifact.has_bands:
        self._how[bands if has_bands else _ONE_SEED] = None
    # Omit the parts that all MiniGrid names have in common.
    title = envs[0].replace('MiniGrid-', '').replace('-v0', '')
    if is_median:
      shared = max(len(one.envs) for one in found.values())
      some = f'{shared} of {len(envs)}' if 0 < shared < len(envs) else len(envs)
      title = f'{suite}: {some} environment{"" if len(envs) == 1 else "s"}'
    return panels_lib.Panel(title, _YLABELS[metric], lines, levels)

  def _line(
    self, label: str, one: results.ArmResults, is_median: bool
  ) -> panels_lib.Line:
    """Makes a line of medians with intervals, or of means with ranges."""
    if is_median:
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
  ) -> dict[str, results.ArmResults]:
    """Reads the curves of a panel by arm."""
    artifact, found = self._artifact, self._results
    arms, is_median = artifact.arms_of(suite), metric == 'median'
    read: Callable[..., results.ArmResults] = functools.partial(
      results.curve,
      column=metric if metric in dataset_lib.Score._fields else 'return_mean',
      window=artifact.window,
    )
    if not artifact.by_budget:
      arms = tuple(a for a in arms if a not in artifacts.ZERO_SHOT)
    elif (
      is_median and len({n for a in arms for n in found.budgets(a, envs)}) < 2
    ):
      # With fewer than two budgets, use the evaluations of pre-training.
      found = results.Results(found.dataset, zero_shot='pretraining')
    else:
      read = results.by_pretraining
    read = functools.partial(read, found, is_normalized=is_median)
    return results.in_shared_environments(read, arms, envs)

  def _ends(self, envs: Sequence[str]) -> dict[str, results.ArmResults]:
    """Reads the final results of arms that do not learn the task."""
    return {
      arm: self._results.sample(arm, envs, results.at(1.0))
      for arm in self._artifact.arms
      if arm in artifacts.ZERO_SHOT and not self._artifact.by_budget
    }

  def _published(self) -> dict[str, float]:
    """Returns medians of published algorithms if the games are the same."""
    if set(self._results.suites['full']) != set(artifacts.PAPER_SUITES['full']):
      return {}
    return {
      f'{arm}, 100k interactions': float(number.value)
      for arm in _PUBLISHED
      if (number := published.find('table2', arm, 'full', 'median', _FRAMES))
    }
