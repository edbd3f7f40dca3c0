"""The paper's own numbers.

`data/paper.csv` is their only home. The scores of single games also make a data
set, from which artifacts and claims are computed as if the runs were ours.
"""

import csv
import functools
import pathlib
from typing import Dict, List, NamedTuple, Tuple

from experiments.harness import dataset
from experiments.paper import artifacts

_DATA = pathlib.Path(__file__).parent / 'data'


class Printed(NamedTuple):
  """A number that the paper prints.

  Attributes:
    artifact: the table.
    arm: the arm, or the name of a published algorithm.
    env: the game; empty for a summary over a suite.
    suite: the suite; empty for a game.
    metric: `score`, or a summary of human-normalized scores in percent.
    frames: frames with reward; 0 if there are none, or if the paper does not
      say.
    value: its digits.
    spread: the digits of the standard deviation over seeds; empty without one.
    bold: whether it is printed in bold.
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
    """The number of digits after the point."""
    return len(self.value.partition('.')[2])


def rows(name: str) -> List[Dict[str, str]]:
  """The rows of a table of `data`, without its comments."""
  with (_DATA / name).open(newline='') as file:
    lines = [line for line in file if not line.startswith('#')]
  return list(csv.DictReader(lines))


@functools.lru_cache
def numbers(artifact: str) -> Tuple[Printed, ...]:
  """All numbers of an artifact, in the paper's order; of a figure, none."""
  return tuple(
    Printed(
      row['artifact'],
      row['arm'],
      row['env'],
      row['suite'],
      row['metric'],
      int(row['frames'] or 0),
      row['value'],
      row['spread'],
      row['bold'] == '1',
    )
    for row in rows('paper.csv')
    if row['artifact'] == artifact
  )


# The tables whose scores of single games an artifact is made of. Tables 9 and
# 10 have other runs of the same arms and games than table 6.
_SUITE_TABLES = ('table6', 'table7', 'table8')
_SOURCES = {
  **{f'table{i}': _SUITE_TABLES for i in range(3, 9)},
  **{f'fig{i}': _SUITE_TABLES for i in (1, 3, 6, 8, 9, 10)},
  'table9': ('table9',),
  'fig11': ('table9',),
  'table10': ('table10',),
  'fig5': ('table10',),
}


def data(artifact: str) -> dataset.Dataset:
  """The paper's runs behind an artifact: their mean, as one run a game.

  Args:
    artifact: its id; without published scores of games the data set is empty.
  """
  unique = {
    (number.arm, number.env): number
    for table in _SOURCES.get(artifact, ())
    for number in numbers(table)
    if number.env
  }
  return dataset.Dataset(
    tuple(_run(number) for number in unique.values()),
    tuple(_score(number) for number in unique.values()),
  )


def _run(number: Printed) -> dataset.Run:
  steps = number.frames // artifacts.PAPER_FRAMES_PER_STEP
  return dataset.Run(
    run_id=_run_id(number),
    scale='published',
    stage='zero_shot' if number.arm in artifacts.ZERO_SHOT else 'transfer',
    arm=number.arm,
    env=number.env,
    seed=0,
    budget_steps=steps,
    frames_per_step=artifacts.PAPER_FRAMES_PER_STEP,
    status=dataset.DONE,
    actor_steps=steps,
  )


def _score(number: Printed) -> dataset.Score:
  steps = number.frames // artifacts.PAPER_FRAMES_PER_STEP
  return dataset.Score(
    _run_id(number), dataset.FINAL, steps, 0, float(number.value)
  )


def _run_id(number: Printed) -> str:
  return f'published/{number.artifact}/{number.arm}/{number.env}'
