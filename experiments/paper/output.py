"""From the data to tables, figures and verdicts: one place that knows who does.

The modules that make them are imported when they are asked for, so that runs
can be planned, executed and gathered without matplotlib.
"""

import importlib
import pathlib
from typing import Any, List, Sequence, Tuple

from bt_acme import files
from bt_acme.config import names
from experiments.harness import dataset as dataset_lib
from experiments.paper import scales

TABLE_FORMATS = ('md', 'csv', 'tex')
FIGURE_FORMATS = ('csv', 'png', 'pdf')
FORMATS = tuple(dict.fromkeys((*TABLE_FORMATS, *FIGURE_FORMATS)))


def check_formats(formats: Sequence[str]) -> None:
  """Raises ValueError for an unknown format."""
  for one in formats:
    if one not in FORMATS:
      raise ValueError(f'format={one!r}: {names.suggest(one, FORMATS)}')


def render(
  artifact: str,
  dataset: dataset_lib.Dataset,
  scale: scales.Scale,
  folder: pathlib.Path,
  formats: Sequence[str],
) -> List[pathlib.Path]:
  """Writes an artifact in those of the formats that it has.

  Args:
    artifact: its id.
    dataset: what the runs have come to.
    scale: their scale.
    folder: takes the files.
    formats: some of `FORMATS`.

  Returns:
    The files.

  Raises:
    ValueError: if this version cannot make the artifact.
  """
  if artifact.startswith('table'):
    table = _module('tables').make(artifact, dataset, scale.suites)
    rendering = _module('rendering')
    paths = []
    for one in formats:
      if one in TABLE_FORMATS:
        paths.append(folder / f'{artifact}.{one}')
        files.write_text(paths[-1], rendering.render(table, one))
    return paths
  wanted = tuple(one for one in formats if one in FIGURE_FORMATS)
  figures = _module('figures')
  return list(figures.render(artifact, dataset, scale.suites, folder, wanted))


def claims(dataset: dataset_lib.Dataset, scale: scales.Scale) -> str:
  """Returns the verdict on each claim of the paper, as Markdown.

  Raises:
    ValueError: if this version cannot tell.
  """
  return str(_module('claims').report(dataset, scale.suites))


def titles() -> Tuple[Tuple[str, str], ...]:
  """Returns what each artifact shows, by its id, as far as that is known."""
  try:
    artifacts = _module('artifacts').ARTIFACTS
  except ValueError:
    return ()
  return tuple((name, one.title) for name, one in artifacts.items())


def _module(name: str) -> Any:
  try:
    return importlib.import_module(f'experiments.paper.{name}')
  except ModuleNotFoundError as error:
    raise ValueError(
      f'this version cannot do that yet: {error.name} is missing. What was '
      'run and gathered is kept.'
    ) from error
