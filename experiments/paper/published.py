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
  """

  artifact: str
  arm: str
  env: str
  suite: str
  metric: str
  frames: int
  value: str
  spread: str

  @property
  def decimals(self) -> int:
    """The number of decimals."""
    return len(self.value.partition('.')[2])


@functools.lru_cache
def numbers(artifact: str) -> tuple[Printed, ...]:
  """Returns all numbers of a table in the paper's order; none for a figure."""
  printed = dataset.read_rows(artifacts.DATA / 'paper.csv', Printed)
  return tuple(number for number in printed if number.artifact == artifact)


def find(
  artifact: str, arm: str, place: str, metric: str, frames: float
) -> Printed | None:
  """Returns a number of a table; None if the paper does not print it.

  Args:
    artifact: the table.
    arm: the arm, or the name of a published algorithm.
    place: a suite, or a game.
    metric: `score`, or a summary over a suite.
    frames: frames with reward. A game has one score, whose frames are not
      always stated, so they only select a summary.
  """
  for number in numbers(artifact):
    key = (number.arm, number.env or number.suite, number.metric)
    if key == (arm, place, metric) and (number.env or number.frames == frames):
      return number
  return None


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
  runs, scores = [], []
  for number in unique.values():
    run_id = f'published/{number.artifact}/{number.arm}/{number.env}'
    stage = artifacts.stage_of(number.arm)
    steps = number.frames // artifacts.PAPER_FRAMES_PER_STEP
    run = dataset.RunRow(
      *(run_id, 'paper', stage, number.arm, number.env, 0, steps),
      frames_per_step=artifacts.PAPER_FRAMES_PER_STEP,
      status=dataset.DONE,
      actor_steps=steps,
    )
    value = float(number.value)
    runs.append(run)
    scores.append(dataset.Score(run_id, dataset.FINAL, steps, 0, value))
  return dataset.Dataset(tuple(runs), tuple(scores))
