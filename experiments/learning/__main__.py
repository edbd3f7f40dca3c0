"""Tests claims about behavior transfer in small environments, over seeds.

Each claim has one or more tables (`experiments/learning/claims.py`):

  exploration  NGU's policy visits more of an environment than others.
  transfer     BT solves hard tasks within a budget in which others do not.
  limits       Tasks that BT solves with only some of the seeds.
  margin       BT with and without a margin of the extra action.
  alone        BT with a behavior that often succeeds alone.
  dm_acme      BT around the DQN of dm-acme.
  short        BT with another preset and a behavior of short pre-training.
  both_presets The tasks of `transfer`, `limits` and `no_harm` with two presets.
  laws         Other rules for starting and ending flights.
  longer       The task of `alone` in which BT is worse, with more steps.
  wide         One behavior helps in many tasks.
  baselines    The tasks of `wide` with more baselines.
  smaller      The tasks of `wide` with a smaller policy of NGU.
  budget       Tasks of `wide` with more steps.
  preset       The tasks of `wide` with another preset.
  long         The paper's small tasks with a behavior of long pre-training.
  bank         Five behaviors, drawn uniformly or with learned priorities.
  sizes        Banks with more and more weak behaviors.
  roles        Flights or extra actions for the behaviors of a bank.
  single       Each of the five behaviors of `bank` as the only one.
  signals      Other scores for the priorities, and other ways to use a bank.
  continual    Policies of earlier goals help with later goals.
  atari        BT with a behavior that survives in an Atari game.
  hero         BT with a behavior that rescues miners in an Atari game.
  no_harm      BT does no harm if the reward is easy to find.
  deception    BT helps although the behavior itself loses reward.
  ablation     Flights and extra action, separately and together.
  weights      Loading the behavior's weights, with and without BT.
  settings     The preset with one setting changed at a time.
  memory       The LSTM recalls earlier observations.

Each run is a process with one thread, and its seed reproduces it exactly,
except those of dm_acme.
Results that exist in `--folder` or are published with the code are reused.
Rerun the same command to continue after Ctrl-C; any number of machines may
share one directory. Runs that fail three times are listed at the end. Runs are
ordered by seed, so that all algorithms have equally many results at any time.
`--publish` adds the results to the published ones and updates the tables in
README.md.
"""

import dataclasses
import pathlib

from bt_acme.config import checks
from bt_acme.runtime import environment_variables, output
from experiments import command_line
from experiments.harness import execution
from experiments.learning import claims, report, results

_FAILED = 1  # The exit code if some runs have failed.


@dataclasses.dataclass(frozen=True)
class LearningConfig:
  """Settings of the command.

  Attributes:
    claims: Claims to show, separated by commas.
    seeds: Maximum number of seeds per algorithm.
    jobs: Number of runs at a time.
    folder: Directory for results and behaviors.
    run: Whether to execute the runs that have no result.
    publish: Whether to store the results with the code and update the tables in
      README.md.
  """

  claims: str = checks.setting(','.join(claims.CLAIMS))
  seeds: int = checks.setting(10, above=0)
  jobs: int = checks.setting(len(environment_variables.cores()), above=0)
  folder: str = 'runs/learning'
  run: bool = True
  publish: bool = False

  def __post_init__(self) -> None:
    checks.check(self)
    for claim in self.chosen:
      command_line.known('claims', claim, claims.CLAIMS)

  @property
  def chosen(self) -> list[str]:
    """The claims to show."""
    return [claim.strip() for claim in self.claims.split(',')]


def run(config: LearningConfig) -> int:
  """Executes the runs without a result and prints the tables.

  Args:
    config: the settings.

  Returns:
    An exit code.
  """
  folder = pathlib.Path(config.folder).absolute()
  try:
    folder.mkdir(parents=True, exist_ok=True)
  except OSError as error:
    raise ValueError(f'folder: {error}. Choose another --folder.') from error
  tables = [
    dataclasses.replace(table, seeds=table.seeds[: config.seeds])
    for table in claims.tables()
    if table.claim in config.chosen
  ]
  runs = results.runs(tables)
  found = results.of_folder(runs, folder)
  code = 0
  if config.run:
    todo = [run for run in runs if run not in found]
    code = execution.complete(todo, folder, processes=config.jobs)
    if code > _FAILED:
      return code  # Interrupted.
    found = results.of_folder(runs, folder)
  output.show(report.report(tables, found))
  if config.publish:
    results.add(found, results.PUBLISHED)
    report.publish()
  return code


if __name__ == '__main__':
  command_line.run(LearningConfig, run)
