"""From the data to files: tables, figures, and the report that joins them."""

import pathlib
from typing import Dict, List, NamedTuple, Sequence, Tuple

from bt_acme import files
from bt_acme.config import names
from bt_acme.evaluation import panels
from experiments.harness import dataset as dataset_lib
from experiments.paper import (
  artifacts,
  claims,
  figures,
  planning,
  results,
  scales,
  table_formats,
  tables,
)

TABLE_FORMATS = tuple(table_formats.FORMATS)
FORMATS = tuple(dict.fromkeys((*TABLE_FORMATS, *panels.FORMATS)))
_MOST_NAMES = 100  # Of runs that have failed.


class Rendered(NamedTuple):
  """An artifact that was written.

  Attributes:
    paths: its files.
    markdown: what a report in the folder above them shows of it.
  """

  paths: Tuple[pathlib.Path, ...]
  markdown: str


def check_formats(formats: Sequence[str]) -> None:
  """Raises ValueError for an unknown format."""
  for one in formats:
    if one not in FORMATS:
      raise ValueError(f'format={one!r}: {names.suggest(one, FORMATS)}')


def render(
  artifact: str,
  dataset: dataset_lib.Dataset,
  suites: artifacts.Suites,
  folder: pathlib.Path,
  formats: Sequence[str],
) -> Rendered:
  """Writes an artifact in those of the formats that it has.

  Args:
    artifact: its id.
    dataset: what the runs of one scale have come to.
    suites: the scale's worlds, by the roles that `artifacts` lists.
    folder: takes the files.
    formats: some of `FORMATS`.

  Raises:
    ValueError: if the artifact is unknown, or cannot be made of such data.
  """
  if artifact.startswith('table'):
    return _table(tables.make(artifact, dataset, suites), folder, formats)
  wanted = tuple(one for one in formats if one in panels.FORMATS)
  paths = figures.render(artifact, dataset, suites, folder, wanted)
  return Rendered(paths, _of_a_figure(artifact, paths))


def joined(
  scale: scales.Scale,
  dataset: dataset_lib.Dataset,
  commands: Sequence[str],
  verdicts: Sequence[claims.Verdict],
  sections: Sequence[str],
) -> str:
  """Returns the report of a scale, as Markdown.

  Args:
    scale: the scale.
    dataset: what its runs have come to.
    commands: those that have asked for the runs.
    verdicts: on the paper's claims.
    sections: the Markdown of each artifact.
  """
  parts = [
    f'# The tables and figures of Campos et al. 2021 at the scale '
    f'`{scale.name}`\n',
    '\n'.join(['```', *commands, '```\n']),
    f'{planning.pretraining(scale)}\n',
    f'## Runs\n\n{runs_table(dataset.runs)}',
    claims.summary(verdicts),
    *sections,
    claims.details(verdicts),
  ]
  return '\n'.join(parts)


def _table(
  table: tables.Table, folder: pathlib.Path, formats: Sequence[str]
) -> Rendered:
  paths = []
  for one in formats:
    if one in TABLE_FORMATS:
      paths.append(folder / f'{table.id}.{one}')
      files.write_text(paths[-1], table_formats.render(table, one))
  return Rendered(tuple(paths), table_formats.render(table, 'md'))


def _of_a_figure(artifact: str, paths: Sequence[pathlib.Path]) -> str:
  """The picture, if there is one, and the text that stands beside it."""
  (text,) = (path for path in paths if path.suffix == '.txt')
  lines = text.read_text().splitlines()
  title = artifacts.find(artifact).title
  parts = [f'## {artifact}: {title}', '']
  parts += [
    f'![{title}]({path.parent.name}/{path.name})\n'
    for path in paths
    if path.suffix == '.png'
  ]
  if artifacts.find(artifact).kind == 'drawing':
    parts += ['```', *lines, '```']
  else:
    caption, *missing = lines
    parts += [caption, '', *(f'- {one}' for one in missing)]
  return '\n'.join(parts).rstrip() + '\n'


def runs_table(runs: Sequence[dataset_lib.Run]) -> str:
  """How many there are, how long they took, which code they ran."""
  stages: Dict[str, List[dataset_lib.Run]] = {}
  for run in runs:
    stages.setdefault(run.stage, []).append(run)
  failed = [run for run in runs if run.status == dataset_lib.FAILED]
  commits = '; '.join(sorted({_short(run.commit) for run in runs} - {''}))
  devices = '; '.join(sorted({run.device for run in runs} - {''}))
  return '\n'.join(
    [
      '| | asked for | done | failed | hours |',
      '| --- | --: | --: | --: | --: |',
      *(_stage_row(planning.STAGES[stage], stages[stage]) for stage in stages),
      _stage_row('all', runs),
      '',
      'Hours are those of one slot, without evaluations after training. '
      f'Commit: {commits or "not known"}. Device: {devices or "not known"}.',
      '',
      *(
        f'- {one}'
        for one in results.sentences(map(results.failure, failed), _MOST_NAMES)
      ),
    ]
  )


def _short(commit: str) -> str:
  """A commit by its first digits, and whether the code was changed since."""
  digits, comma, changed = commit.partition(',')
  return f'{digits[:10]}{comma}{changed}'


def _stage_row(title: str, runs: Sequence[dataset_lib.Run]) -> str:
  counts = (
    sum(run.status == status for run in runs)
    for status in (dataset_lib.DONE, dataset_lib.FAILED)
  )
  hours = sum(run.seconds for run in runs) / 3600
  cells = (title, len(runs), *counts, f'{hours:.2f}')
  return f'| {" | ".join(map(str, cells))} |'
