"""Does behavior transfer do what it is for? Small worlds, ten seeds each.

Each claim is a table or several (`experiments/learning/claims.py`):

  exploration  NGU's policy visits more of a world than others do.
  transfer     BT solves hard worlds in a budget in which others do not.
  limits       Worlds that BT solves with some seeds only.
  no_harm      BT loses nothing where the reward is easy to find.
  deception    BT helps although the behavior itself loses reward.
  ablation     Flights and extra action, apart and together.
  weights      Loading the behavior's weights, with and without BT.
  settings     The preset, with one setting at a time as another one.
  memory       The LSTM recalls what was seen before.

Each run is one process with one thread, and its seed reproduces it exactly. A
result that is there, in `--folder` or published with the code, is not made
again; after Ctrl-C the same command continues, and any number of machines may
do so on one folder. A run that fails three times is named at the end. The order
is by seed, so that all algorithms have equally many whenever it is stopped.
`--publish` adds the results to the published ones and writes the tables into
README.md.
"""

import dataclasses
import functools
import os
import pathlib
from typing import List, Sequence, Set

from bt_acme.cli import flags
from bt_acme.config import checks, names
from experiments.harness import driver
from experiments.learning import claims, readme, report, results

_FAILED = 1  # The exit code if some runs have failed.


@dataclasses.dataclass(frozen=True)
class LearningConfig:
  """Claims about exploration and transfer, shown over seeds."""

  claims: str = checks.setting(
    ','.join(claims.CLAIMS), 'The claims to show, separated by commas.'
  )
  seeds: int = checks.setting(
    10, 'The number of seeds of each algorithm, at most.', above=0
  )
  jobs: int = checks.setting(
    os.cpu_count() or 1, 'The number of runs at a time.', above=0
  )
  folder: str = checks.setting(
    'runs/learning', 'The folder for results and behaviors.'
  )
  run: bool = checks.setting(
    True, 'Whether the runs without a result are executed.'
  )
  publish: bool = checks.setting(
    False, 'Whether the results are kept with the code, and shown in README.md.'
  )

  def __post_init__(self) -> None:
    checks.check(self)
    for claim in self.chosen:
      if claim not in claims.CLAIMS:
        raise ValueError(
          f'claims={claim!r} is unknown: {names.suggest(claim, claims.CLAIMS)}'
        )

  @property
  def chosen(self) -> List[str]:
    """The claims to show."""
    return [claim.strip() for claim in self.claims.split(',')]


@dataclasses.dataclass(frozen=True)
class Settings:
  """All settings of the command."""

  learning: LearningConfig = LearningConfig()


def run(config: LearningConfig) -> int:
  """Executes what has no result yet, and prints the tables.

  Args:
    config: what to show, and where results are.

  Returns:
    An exit code.
  """
  folder = pathlib.Path(config.folder).absolute()
  folder.mkdir(parents=True, exist_ok=True)
  tables = [
    dataclasses.replace(table, seeds=table.seeds[: config.seeds])
    for table in claims.tables()
    if table.claim in config.chosen
  ]
  jobs = results.jobs(tables)
  code = 0
  if config.run:
    code = complete(jobs, folder, processes=config.jobs)
    if code > _FAILED:
      return code  # It was stopped.
  found = results.of_folder(jobs, folder)
  print(report.report(tables, found))
  if config.publish:
    results.add(found, results.PUBLISHED)
    readme.render()
  return code


def complete(
  jobs: Sequence[results.Job], folder: pathlib.Path, *, processes: int
) -> int:
  """Executes the runs that have no result, and those that these build on.

  Args:
    jobs: the runs that are wanted.
    folder: keeps results and behaviors, for any number of workers.
    processes: runs at a time.

  Returns:
    An exit code, after all that went wrong is printed.
  """
  found = results.of_folder(jobs, folder)
  todo = [
    each
    for job in jobs
    if job not in found
    for each in (*(() if job.is_ready(folder) else job.needed), job)
  ]
  missing = list(dict.fromkeys(todo))
  say = functools.partial(print, flush=True)
  done: Set[results.Job] = set()

  def on_done(job: results.Job) -> None:
    done.add(job)
    row = job.row(folder)
    say(
      f'{len(done)} of {len(missing)}: {job}: solves {row["solved"]:.0%}, '
      f'{row["cells"]:.1f} cells, {row["seconds"]:.0f} s'
    )

  return driver.complete(
    folder, missing, processes=processes, say=say, on_done=on_done
  )


def main(argv: List[str]) -> int:
  del argv
  return run(flags.from_flags(Settings).learning)


if __name__ == '__main__':
  flags.define(Settings)
  flags.run_main(main, Settings)
