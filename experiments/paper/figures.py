"""The figures of the paper, out of runs.

A figure is a function of the data set: it says what there is to draw, and what
is missing. Figure 7, a drawing of the network, is a table of its parameters.
Source: Campos et al. 2021, arXiv:2102.13515.
"""

import collections
import pathlib
from typing import (
  Any,
  Callable,
  Mapping,
  NamedTuple,
  Optional,
  Sequence,
  Tuple,
)

from bt_acme import files
from bt_acme.evaluation import panels as panels_lib
from bt_acme.evaluation import plots
from experiments.harness import dataset as dataset_lib
from experiments.paper import (
  artifacts,
  captions,
  figure_parts,
  network_table,
  normalization,
  published,
  results,
)
from experiments.paper.figure_parts import Part, Source

# Published algorithms with which fig2 compares, after 100k interactions.
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
  xlabel: str = 'frames'
  log_x: bool = False

  @property
  def is_empty(self) -> bool:
    """Whether no run has come to anything that it could show."""
    return not any(panel.lines for panel in self.panels)


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
  return FIGURES[figure_id](Source(dataset, suites, normalize))


def render(
  figure_id: str,
  dataset: dataset_lib.Dataset,
  suites: artifacts.Suites,
  folder: files.PathLike,
  formats: Sequence[str] = panels_lib.FORMATS,
) -> Tuple[pathlib.Path, ...]:
  """Writes a figure into a folder, and its caption as text.

  Args:
    figure_id: one of `FIGURES`, or `fig7`, a table in CSV and in text.
    dataset: the runs and scores, of one scale.
    suites: the scale's worlds, by the roles that `artifacts` lists.
    folder: where FIGURE.png and the others are written.
    formats: some of `panels.FORMATS`.

  Returns:
    The files; the caption alone if there is nothing to show, as it then says.

  Raises:
    ValueError: if there is no such figure, or if runs are of several scales.
  """
  path = pathlib.Path(folder) / figure_id
  caption, points = path.with_suffix('.txt'), path.with_suffix('.csv')
  if figure_id == 'fig7':
    parameters = network_table.parameters()
    files.write_text(points, network_table.as_csv(parameters))
    files.write_text(caption, network_table.as_text(parameters) + '\n')
    return (points, caption)
  figure = make(figure_id, dataset, suites)
  sentences = [figure.caption, *results.sentences(figure.problems, most=100)]
  files.write_text(caption, '\n'.join(sentences) + '\n')
  if draw(path, figure, formats) is None:
    return (caption,)
  return (*(path.with_suffix(f'.{one}') for one in formats), caption)


def draw(
  path: files.PathLike,
  figure: Figure,
  formats: Sequence[str] = panels_lib.FORMATS,
) -> Optional[plots.Picture]:
  """Draws a figure as PATH.png and PATH.pdf, and writes its points as PATH.csv.

  Nothing is drawn if there is nothing to show, as the caption then says.
  """
  if figure.is_empty:
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


def fig1(source: Source) -> Figure:
  """Strategies of transfer."""
  parts = figure_parts.scores(source, _arms('fig1'), source.envs('strategies'))
  return _figure('fig1', source, parts, columns=2)


def fig2(source: Source) -> Figure:
  """Budgets of pre-training: zero-shot on the left, then with transfer."""
  parts = [
    *figure_parts.medians_by_pretraining(
      source, ('ngu', 'rnd', 'constant'), 'full', _published_medians(source)
    ),
    *figure_parts.scores_by_pretraining(
      source, ('ngu', 'bt_ngu'), source.envs('budgets')
    ),
  ]
  return _figure('fig2', source, parts, columns=3)._replace(
    xlabel='frames of pre-training', log_x=True
  )


def fig3(source: Source) -> Figure:
  """Learning over the suite."""
  parts = figure_parts.medians(source, _arms('fig3'), ('full', 'hard'))
  return _figure('fig3', source, parts, columns=2)


def fig4(source: Source) -> Figure:
  """Use of the extra action."""
  parts = figure_parts.scores(
    source,
    _arms('fig4'),
    source.envs('ablation'),
    value=figure_parts.greedy_extra_share,
    ylabel='share of the extra action',
  )
  return _figure('fig4', source, parts, columns=_across(parts))


def fig5(source: Source) -> Figure:
  """Learning with modified rewards, beside the policy that is transferred."""
  parts = figure_parts.scores(
    source,
    [arm for arm in _arms('fig5') if arm != 'ngu'],
    source.envs('tasks'),
    level_of='ngu',
  )
  return _figure('fig5', source, parts, columns=3)


def fig6(source: Source) -> Figure:
  """Learning with loaded weights, over suites and with modified rewards."""
  tasks = source.envs('tasks')
  # A column for each of the two worlds, which have three rewards.
  by_reward = [env for i in range(3) for env in tasks[i::3]]
  parts = [
    *figure_parts.medians(source, _arms('fig6'), ('full', 'hard')),
    *figure_parts.scores(source, _arms('fig6'), by_reward),
  ]
  return _figure('fig6', source, parts, columns=2)


def fig8(source: Source) -> Figure:
  """The beginning of learning with loaded weights."""
  parts = figure_parts.medians(
    source,
    _arms('fig8'),
    ('full', 'hard'),
    window=artifacts.find('fig8').window,
  )
  return _figure('fig8', source, parts, columns=2)


def fig9(source: Source) -> Figure:
  """Learning in each world, from scratch."""
  parts = figure_parts.scores(source, _arms('fig9'), source.envs('full'))
  return _figure('fig9', source, parts, columns=_across(parts))


def fig10(source: Source) -> Figure:
  """Learning in each world, with loaded weights; as in the paper, no bands."""
  parts = figure_parts.scores(
    source, _arms('fig10'), source.envs('full'), band=False
  )
  return _figure('fig10', source, parts, columns=_across(parts))


def fig11(source: Source) -> Figure:
  """Learning in the ablation."""
  parts = figure_parts.scores(source, _arms('fig11'), source.envs('ablation'))
  return _figure('fig11', source, parts, columns=_across(parts))


FIGURES: Mapping[str, Callable[[Source], Figure]] = {
  'fig1': fig1,
  'fig2': fig2,
  'fig3': fig3,
  'fig4': fig4,
  'fig5': fig5,
  'fig6': fig6,
  'fig8': fig8,
  'fig9': fig9,
  'fig10': fig10,
  'fig11': fig11,
}


def _across(parts: Sequence[Part]) -> int:
  """Panels in a row, where each world has one: 57 stand in ten rows."""
  return 6 if len(parts) > 12 else 4 if len(parts) > 9 else 3


def _arms(figure_id: str) -> Tuple[str, ...]:
  return artifacts.find(figure_id).arms


def _published_medians(source: Source) -> Tuple[panels_lib.Level, ...]:
  """Medians of published algorithms, if the games are the same."""
  if set(source.envs('full')) != set(artifacts.PAPER_SUITES['full']):
    return ()
  return tuple(
    panels_lib.Level(f'{number.arm}, 100k interactions', float(number.value))
    for number in published.numbers('table2')
    if number.arm in _PUBLISHED
    and (number.suite, number.metric) == ('full', 'median')
    and number.frames == _PUBLISHED_FRAMES
  )


def _figure(
  figure_id: str, source: Source, parts: Sequence[Part], *, columns: int
) -> Figure:
  artifact = artifacts.find(figure_id)
  problems = [p for part in parts for c in part.curves for p in c.problems]
  problems += [
    results.Problem('The scale has no worlds for', suite)
    for suite in artifact.suites
    if not source.envs(suite)
  ]
  return Figure(
    figure_id,
    tuple(part.panel for part in parts),
    columns,
    _caption(artifact, parts),
    tuple(dict.fromkeys(problems)),
  )


def _caption(artifact: artifacts.Artifact, parts: Sequence[Part]) -> str:
  """Says what is drawn, and of which runs."""
  used = [c for part in parts for c in part.curves if c.runs]
  if not used:
    return (
      f'{artifact.title}. Nothing is drawn, because no run of it has been '
      'evaluated.'
    )
  runs = [run for one in used for run in one.runs]
  sentences = [
    f'{artifact.title}.',
    captions.made_of(runs, (one.seeds for one in used)),
    *dict.fromkeys(
      one for part in parts if part.panel.lines for one in part.how
    ),
    *artifact.notes,
  ]
  return ' '.join(sentences)
