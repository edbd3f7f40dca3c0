"""Stores results in the repository and updates the texts based on them.

`experiments/paper/measured/SCALE` contains the data of a scale and a report
with its figures. `experiments/README.md` shows the claims.
"""

import pathlib

from PIL import Image

from bt_acme import files
from experiments.harness import dataset as dataset_lib
from experiments.harness import sections
from experiments.paper import (
  claims,
  folders,
  planning,
  report,
  results,
  scales,
)

FOLDER = pathlib.Path(__file__).with_name('measured')
README = pathlib.Path(__file__).parents[1] / 'README.md'
_SCALE = 'laptop'  # The scale whose claims the README shows.
_BEGIN = (
  f'<!-- Of paper/measured/{_SCALE}: python -m experiments.paper publish '
  f'--scale={_SCALE} -->'
)
_END = '<!-- End of the claims. -->'
_NUM_COLORS = 128


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
    pictures = folder / report.RESULTS
    found = results.Results(kept, scale.suites)
    rendered = [
      report.render(artifact, found, pictures, ('png',))[1]
      for artifact in source.artifacts()
    ]
    report.write(folder / 'README.md', source, found, rendered)
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
  runs = report.runs_table(dataset.runs)
  about = planning.pretraining(scale)
  text = f'{runs}\n{about}\n\n{claims.verdict_table(verdicts)}'
  return sections.replaced(readme, _BEGIN, text, _END)
