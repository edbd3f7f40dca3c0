"""The paper's own numbers, read from `data/paper.csv`.

The scores of single games also form a dataset, from which artifacts and claims
are computed in the same way as from our runs.
"""

import functools
from typing import NamedTuple

from experiments.harness import dataset
from experiments.paper import artifacts


class Printed(NamedTuple):
  """A number printed in the paper.

  Attributes:
    artifact: the table.
    arm: the arm, or the name of a published algorithm.
    env: the game; empty for a summary over a suite.
    suite: the suite; empty for a game.
    metric: `score`, or a summary of human-normalized scores in percent.
    frames: frames with reward; 0 if none or unknown.
    value: the printed digits.
    spread: the printed standard deviation over seeds; empty without one.
    bold: whether the number is printed in bold.
  """

  artifact: str
  arm: str
  env: str
  suite: str
  metric: str
  frames: int
  value: str
  spread: str
  bold: bool

  @property
  def decimals(self) -> int:
    """The number of decimals."""
    return len(self.value.partition('.')[2])


@functools.lru_cache
def numbers(artifact: str) -> tuple[Printed, ...]:
  """Returns all numbers of a table in the paper's order; none for a figure."""
  printed = dataset.read_rows(artifacts.DATA / 'paper.csv', Printed)
  return tuple(number for number in printed if number.artifact == artifact)


def data(artifact: str) -> dataset.Dataset:
  """Returns the paper's scores behind an artifact as a dataset.

  Each pair of an arm and a game has one run, whose score is the printed mean
  over seeds.

  Args:
    artifact: the id of the artifact. The dataset is empty if the artifact has
      no published scores of single games.
  """
  unique = {
    (number.arm, number.env): number
    for table in artifacts.ARTIFACTS[artifact].scores
    for number in numbers(table)
    if number.env
  }
  runs = tuple(map(_run, unique.values()))
  scores = (
    dataset.Score(run.run_id, dataset.FINAL, run.actor_steps, 0, float(n.value))
    for run, n in zip(runs, unique.values(), strict=True)
  )
  return dataset.Dataset(runs, tuple(scores))


def _run(number: Printed) -> dataset.RunRow:
  steps = number.frames // artifacts.PAPER_FRAMES_PER_STEP
  return dataset.RunRow(
    run_id=f'published/{number.artifact}/{number.arm}/{number.env}',
    scale='paper',
    stage=artifacts.stage_of(number.arm),
    arm=number.arm,
    env=number.env,
    seed=0,
    budget_steps=steps,
    frames_per_step=artifacts.PAPER_FRAMES_PER_STEP,
    status=dataset.DONE,
    actor_steps=steps,
  )
