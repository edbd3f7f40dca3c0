"""Writes tables, figures and the report that combines them.

Published results are in the repository: `experiments/paper/measured/SCALE` has
the data of a scale and a report with its figures, and `README.md` here shows
the claims.
"""

import pathlib
from collections.abc import Mapping, Sequence

from PIL import Image

from bt_acme import files
from bt_acme.evaluation import curve_panels
from bt_acme.evaluation import tables as table_text
from experiments.harness import dataset as dataset_lib
from experiments.harness import sections as sections_lib
from experiments.paper import (
  artifacts,
  claims,
  figures,
  folders,
  hyperparameters,
  plan_and_status,
  results,
  scales,
  table_formats,
  tables,
)

FORMATS = tuple(dict.fromkeys((*table_formats.FORMATS, *curve_panels.FORMATS)))
RESULTS = 'results'  # The directory of artifacts, next to the report.
_MOST_NAMES = 100  # Maximum number of failed or missing runs to list.
FOLDER = pathlib.Path(__file__).with_name('measured')
README = pathlib.Path(__file__).with_name('README.md')
_SCALE = 'laptop'  # The scale whose claims the README shows.
_BEGIN = (
  f'<!-- Of paper/measured/{_SCALE}: python -m experiments.paper publish '
  f'--scale={_SCALE} -->'
)
_END = '<!-- End of the claims. -->'
_NUM_COLORS = 128


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
    return _figure(artifact, path, figures.Figure(artifact, found), formats)
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
  formats = [one for one in formats if one in curve_panels.FORMATS]
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
    f'{plan_and_status.pretraining(scale)}\n',
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
    stages.setdefault(plan_and_status.STAGES[run.stage], []).append(run)
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


def publish(
  source: folders.Folder, dataset: dataset_lib.Dataset
) -> pathlib.Path:
  """Replaces the published results of a scale.

  Args:
    source: the directory of the runs.
    dataset: the results of the runs.

  Returns:
    The path of the report.

  Raises:
    ValueError: if an artifact cannot be made from the dataset.
  """
  scale, kept = source.scale, lasting(dataset)
  with files.new_folder(FOLDER / scale.name) as folder:
    dataset_lib.write(folder, kept)
    pictures = folder / RESULTS
    found = results.Results(kept, scale.suites)
    rendered = [
      render(artifact, found, pictures, ('png',))[1]
      for artifact in source.artifacts()
    ]
    write(folder / 'README.md', source, found, rendered)
    for path in pictures.glob('*'):
      if path.suffix == '.png':
        # Lines need only a few colors, which reduces the size to a quarter.
        picture = Image.open(path).convert('RGB').quantize(_NUM_COLORS)
        picture.save(path, optimize=True)
      else:
        path.unlink()
  if scale.name == _SCALE:
    files.write_text(README, rendered_readme(README.read_text()))
  return FOLDER / scale.name / 'README.md'


def lasting(dataset: dataset_lib.Dataset) -> dataset_lib.Dataset:
  """Returns the part of a dataset that artifacts depend on.

  Training scores, host names and commands are removed, and running runs are
  marked as waiting.
  """
  status = {dataset_lib.RUNNING: dataset_lib.WAITING}
  runs = [
    run._replace(host='', command='', status=status.get(run.status, run.status))
    for run in dataset.runs
  ]
  scores = [s for s in dataset.scores if s.source != dataset_lib.ACTOR]
  return dataset_lib.Dataset(tuple(runs), tuple(scores))


def rendered_readme(readme: str) -> str:
  """Returns the README with updated claims."""
  scale, dataset = scales.get(_SCALE), dataset_lib.read(FOLDER / _SCALE)
  verdicts = claims.evaluate(results.Results(dataset, scale.suites))
  runs = runs_table(dataset.runs)
  about = plan_and_status.pretraining(scale)
  text = f'{runs}\n{about}\n\n{claims.verdict_table(verdicts)}'
  return sections_lib.replaced(readme, _BEGIN, text, _END)
