"""Does behavior transfer do what it is for? Small worlds, ten seeds each.

Each claim is a table or several (`experiments/learning/claims.py`):

  exploration  NGU's policy visits more of a world than others do.
  transfer     BT solves hard worlds in a budget in which others do not.
  no_harm      BT loses nothing where the reward is easy to find.
  deception    BT helps although the behavior itself loses reward.
  ablation     Flights and extra action, apart and together.
  weights      Loading the behavior's weights, with and without BT.
  settings     The preset, with one setting at a time as another one.
  memory       The LSTM recalls what was seen before.

Each run is one process with one thread, and its seed reproduces it exactly. A
result that is there, in `--folder` or published with the code, is not made
again; after Ctrl-C the same command goes on. The order is by seed, so that all
algorithms have equally many whenever it is stopped. `--publish` adds the
results to the published ones and writes the tables into README.md.
"""

import dataclasses
import os
import pathlib
from typing import List

from absl import flags as absl_flags

from bt_acme.cli import flags
from bt_acme.config import names
from experiments.learning import claims, readme, report, results, runs

FLAGS = absl_flags.FLAGS
absl_flags.DEFINE_list(
  'claims',
  list(claims.CLAIMS),
  f'Those to show, of {", ".join(claims.CLAIMS)}.',
)
absl_flags.DEFINE_integer('seeds', 10, 'Seeds of each algorithm, at most.')
absl_flags.DEFINE_integer('jobs', os.cpu_count() or 1, 'Runs at a time.')
absl_flags.DEFINE_string('folder', 'runs/learning', 'Where results go.')
absl_flags.DEFINE_bool('run', True, 'Executes the runs that have no result.')
absl_flags.DEFINE_bool(
  'publish', False, 'Keeps the results with the code, and renders README.md.'
)


def _check_flags() -> None:
  for claim in FLAGS.claims:
    if claim not in claims.CLAIMS:
      raise ValueError(
        f'claims={claim!r} is unknown: {names.suggest(claim, claims.CLAIMS)}'
      )
  for name, value in (('seeds', FLAGS.seeds), ('jobs', FLAGS.jobs)):
    if value < 1:
      raise ValueError(f'{name}={value} must be positive.')


def main(argv: List[str]) -> int:
  del argv
  _check_flags()
  folder = pathlib.Path(FLAGS.folder).absolute()
  folder.mkdir(parents=True, exist_ok=True)
  tables = [
    dataclasses.replace(table, seeds=table.seeds[: FLAGS.seeds])
    for table in claims.tables()
    if table.claim in FLAGS.claims
  ]
  jobs = results.jobs(tables)
  if FLAGS.run:
    found = runs.complete(jobs, folder, processes=FLAGS.jobs)
  else:
    found = results.read(jobs, (results.PUBLISHED, folder / 'results.csv'))
  print(report.report(tables, found))
  if FLAGS.publish:
    results.add(found, results.PUBLISHED)
    readme.render()
  return 0


if __name__ == '__main__':
  flags.run_main(main)
