"""Writes tables, figures and the report that combines them."""

import pathlib
from typing import Mapping, Sequence

from bt_acme import files
from bt_acme.evaluation import panels
from bt_acme.evaluation import tables as table_text
from experiments.harness import dataset as dataset_lib
from experiments.paper import (
  artifacts,
  claims,
  figures,
  folders,
  hyperparameters,
  planning,
  results,
  table_formats,
  tables,
)

FORMATS = tuple(dict.fromkeys((*table_formats.FORMATS, *panels.FORMATS)))
RESULTS = 'results'  # The directory of artifacts, next to the report.
_MOST_NAMES = 100  # Maximum number of failed or missing runs to list.


def render(
  artifact_id: str,
  found: results.Results,
  folder: pathlib.Path,
  formats: Sequence[str] = FORMATS,
) -> tuple[tuple[pathlib.Path, ...], str]:
  """Writes an artifact in all requested formats that apply to it.

  The caption of a figure is always written as text, even if nothing is drawn.

  Args:
    artifact_id: the id of the artifact.
    found: the results of one scale.
    folder: the output directory.
    formats: the requested formats, a subset of `FORMATS`.

  Returns:
    The files written, and the Markdown section of a report in the parent
    directory of the files.

  Raises:
    ValueError: if the artifact is unknown or cannot be made from the dataset.
  """
  path = folder / artifact_id
  artifact = artifacts.ARTIFACTS[artifact_id]
  if artifact.is_figure:
    figure = figures.Figure(artifact, found)
    return _figure(artifact, path, figure, formats)
  if artifact.kind == 'drawing':
    csv_text, text = hyperparameters.network_texts()
    texts = {'csv': csv_text, 'txt': f'{text}\n'}
    section = table_formats.section(artifact, [f'```\n{text}\n```'])
  else:
    table = tables.make(artifact, found)
    known = table_formats.FORMATS
    texts = {one: known[one](table) for one in formats if one in known}
    section = known['md'](table)
  return _written(path, texts), section


def _written(
  path: pathlib.Path, texts: Mapping[str, str]
) -> tuple[pathlib.Path, ...]:
  """Writes texts, given by file suffix, and returns the paths."""
  for suffix, text in texts.items():
    files.write_text(path.with_suffix(f'.{suffix}'), text)
  return tuple(path.with_suffix(f'.{suffix}') for suffix in texts)


def _figure(
  artifact: artifacts.Artifact,
  path: pathlib.Path,
  figure: figures.Figure,
  formats: Sequence[str],
) -> tuple[tuple[pathlib.Path, ...], str]:
  missing = dataset_lib.sentences(figure.problems, _MOST_NAMES)
  caption = '\n'.join([figure.caption, *missing, ''])
  paths = _written(path, {'txt': caption})
  blocks = [figure.caption]
  formats = [one for one in formats if one in panels.FORMATS]
  if figure.draw(path, formats) is not None:
    paths = (*(path.with_suffix(f'.{one}') for one in formats), *paths)
    if 'png' in formats:
      picture = f'{path.parent.name}/{path.name}.png'
      blocks.insert(0, f'![{artifact.title}]({picture})')
  return paths, table_formats.section(artifact, blocks, missing)


def write(
  path: pathlib.Path,
  folder: folders.Folder,
  found: results.Results,
  sections: Sequence[str],
) -> Sequence[claims.Verdict]:
  """Writes the report of a directory as Markdown.

  Args:
    path: the path of the report.
    folder: the directory of the runs.
    found: the results of the runs.
    sections: the Markdown of each artifact.

  Returns:
    The verdicts on the paper's claims.
  """
  scale, verdicts = folder.scale, claims.evaluate(found)
  parts = [
    f'# Tables and figures of Campos et al. 2021 at the scale `{scale.name}`\n',
    '\n'.join(['```', *folder.commands(), '```\n']),
    f'{planning.pretraining(scale)}\n',
    f'## Runs\n\n{runs_table(found.dataset.runs)}',
    f'## Claims\n\n{claims.verdict_table(verdicts)}',
    *sections,
    claims.details(verdicts),
  ]
  files.write_text(path, '\n'.join(parts))
  return verdicts


def runs_table(runs: Sequence[dataset_lib.RunRow]) -> str:
  """Formats the counts, duration, commits and devices of runs as Markdown."""
  stages: dict[str, list[dataset_lib.RunRow]] = {}
  for run in runs:
    stages.setdefault(planning.STAGES[run.stage], []).append(run)
  statuses = (dataset_lib.DONE, dataset_lib.FAILED)
  rows = [
    [
      *(title, len(found)),
      *([run.status for run in found].count(status) for status in statuses),
      f'{sum(run.seconds for run in found) / 3600:.2f}',
    ]
    for title, found in (*stages.items(), ('all', runs))
  ]
  failures = dataset_lib.sentences(
    (
      dataset_lib.problem_of(run, '')
      for run in runs
      if run.status == dataset_lib.FAILED
    ),
    _MOST_NAMES,
  )
  commits = '; '.join(sorted({_short(run.commit) for run in runs} - {''}))
  devices = '; '.join(sorted({run.device for run in runs} - {''}))
  return '\n'.join(
    [
      table_text.markdown(['', 'requested', *statuses, 'hours'], rows),
      '',
      'Hours refer to one slot and exclude evaluations after training. '
      f'Commit: {commits or "unknown"}. Device: {devices or "unknown"}.',
      '',
      *(f'- {one}' for one in failures),
    ]
  )


def _short(commit: str) -> str:
  """Abbreviates a commit hash; keeps the note about uncommitted changes."""
  digits, comma, changed = commit.partition(',')
  return f'{digits[:10]}{comma}{changed}'
