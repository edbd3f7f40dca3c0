"""From the data to files: tables, figures, and the report that joins them."""

import pathlib
from typing import Dict, List, Mapping, NamedTuple, Sequence, Tuple

from bt_acme import files
from bt_acme.config import names
from bt_acme.evaluation import panels
from experiments.harness import dataset as dataset_lib
from experiments.paper import (
  artifacts,
  claims,
  figures,
  network_table,
  planning,
  results,
  scales,
  table_formats,
  tables,
)

TABLE_FORMATS = tuple(table_formats.FORMATS)
FORMATS = tuple(dict.fromkeys((*TABLE_FORMATS, *panels.FORMATS)))
_MOST_NAMES = 100  # Of runs that have failed, or are missing in a figure.


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
  artifact_id: str,
  dataset: dataset_lib.Dataset,
  suites: artifacts.Suites,
  folder: pathlib.Path,
  formats: Sequence[str] = FORMATS,
) -> Rendered:
  """Writes an artifact in those of the formats that it has.

  A figure's caption is written as text, and alone if nothing can be shown.

  Args:
    artifact_id: its id.
    dataset: what the runs of one scale have come to.
    suites: the scale's worlds, by the roles that `artifacts` lists.
    folder: takes the files.
    formats: some of `FORMATS`.

  Raises:
    ValueError: if the artifact is unknown, or cannot be made of such data.
  """
  path = folder / artifact_id
  title = artifacts.find(artifact_id).title
  if artifact_id == 'fig7':
    csv_text, text = network_table.texts()
    paths = _written(path, {'csv': csv_text, 'txt': f'{text}\n'})
    return Rendered(paths, f'## {artifact_id}: {title}\n\n```\n{text}\n```\n')
  if artifact_id in figures.FIGURES:
    figure = figures.make(artifact_id, dataset, suites)
    wanted = [one for one in formats if one in panels.FORMATS]
    return _figure(path, title, figure, wanted)
  table = tables.make(artifact_id, dataset, suites)
  texts = {
    one: table_formats.render(table, one)
    for one in formats
    if one in TABLE_FORMATS
  }
  return Rendered(_written(path, texts), table_formats.render(table, 'md'))


def _written(
  path: pathlib.Path, texts: Mapping[str, str]
) -> Tuple[pathlib.Path, ...]:
  """Writes texts by the suffix of their files, and returns these."""
  for suffix, text in texts.items():
    files.write_text(path.with_suffix(f'.{suffix}'), text)
  return tuple(path.with_suffix(f'.{suffix}') for suffix in texts)


def _figure(
  path: pathlib.Path, title: str, figure: figures.Figure, formats: Sequence[str]
) -> Rendered:
  missing = results.sentences(figure.problems, _MOST_NAMES)
  caption = '\n'.join([figure.caption, *missing, ''])
  paths = _written(path, {'txt': caption})
  picture = ''
  if figures.draw(path, figure, formats) is not None:
    paths = (*(path.with_suffix(f'.{one}') for one in formats), *paths)
    if 'png' in formats:
      picture = f'![{title}]({path.parent.name}/{path.name}.png)\n\n'
  listed = ''.join(f'- {one}\n' for one in missing)
  text = f'{picture}{figure.caption}\n' + (f'\n{listed}' if listed else '')
  return Rendered(paths, f'## {figure.id}: {title}\n\n{text}')


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


def runs_table(runs: Sequence[dataset_lib.Run]) -> str:
  """How many there are, how long they took, which code they ran."""
  stages: Dict[str, List[dataset_lib.Run]] = {}
  for run in runs:
    stages.setdefault(planning.STAGES[run.stage], []).append(run)
  rows = [
    f'| {title} | {len(found)} | {_count(found, dataset_lib.DONE)} '
    f'| {_count(found, dataset_lib.FAILED)} '
    f'| {sum(run.seconds for run in found) / 3600:.2f} |'
    for title, found in (*stages.items(), ('all', runs))
  ]
  failed = [run for run in runs if run.status == dataset_lib.FAILED]
  failures = results.sentences(map(results.failure, failed), _MOST_NAMES)
  commits = '; '.join(sorted({_short(run.commit) for run in runs} - {''}))
  devices = '; '.join(sorted({run.device for run in runs} - {''}))
  return '\n'.join(
    [
      '| | asked for | done | failed | hours |',
      '| --- | --: | --: | --: | --: |',
      *rows,
      '',
      'Hours are those of one slot, without evaluations after training. '
      f'Commit: {commits or "not known"}. Device: {devices or "not known"}.',
      '',
      *(f'- {one}' for one in failures),
    ]
  )


def _count(runs: Sequence[dataset_lib.Run], status: str) -> int:
  return sum(run.status == status for run in runs)


def _short(commit: str) -> str:
  """A commit by its first digits, and whether the code was changed since."""
  digits, comma, changed = commit.partition(',')
  return f'{digits[:10]}{comma}{changed}'
