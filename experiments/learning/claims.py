"""The claims, from `claims.json`: tables of runs, as data.

A run says what is trained in which environment; several tables may show the
same run, and it is executed once. Run `s` of an algorithm that transfers a
behavior uses the behavior that pre-training run `s` has learned, so that a
result tells how consistent pre-training and transfer are together.

How the environments were chosen: each cell of the chain has its own mapping of
the two actions, so that no constant action walks it. `transfer` has layouts
whose goal is 11 to 16 actions away, or where exploring costs
(`new_cell=-0.15`). `deception` has environments in which what the behavior does
pays, does not, or costs: to visit cells, and to open the door. `settings` first
has the values of version 0.1.0, or the paper's, in an environment and with
seeds that no other table has. `ez-greedy` repeats one action, which has no
state and no epsilon. Episodes of `memory` have eight steps.
"""

import dataclasses
import json
import pathlib
from typing import Any, Dict, List, Sequence, Tuple

from experiments.harness import small_runs

Run = small_runs.Run

PRETRAINING_STEPS = 40_000
_PATH = pathlib.Path(__file__).with_name('claims.json')
_DATA: List[Dict[str, Any]] = json.loads(_PATH.read_text())

# What the tables of each claim ask.
CLAIMS: Dict[str, str] = {each['claim']: each['question'] for each in _DATA}


@dataclasses.dataclass(frozen=True)
class Table:
  """Runs to compare in one environment.

  Attributes:
    claim: one of `CLAIMS`.
    world: the environment of all runs.
    runs: the rows.
    columns: what is shown of each run, of `report`'s columns.
    seeds: of each run.
  """

  claim: str
  world: str
  runs: Tuple[Run, ...]
  columns: Tuple[str, ...]
  seeds: Sequence[int] = range(10)


def tables() -> List[Table]:
  """All tables, in the order of the report."""
  return [
    Table(
      each['claim'],
      table['world'],
      tuple(_run(table['world'], run) for run in table['runs']),
      tuple(table['columns']),
      range(*table['seeds']),
    )
    for each in _DATA
    for table in each['tables']
  ]


def _run(world: str, data: Dict[str, Any]) -> Run:
  explored = data.get('behavior')
  behavior = None
  if explored:
    settings = {'intrinsic_reward': 'ngu'}
    behavior = Run('NGU', 'ngu', explored, PRETRAINING_STEPS, settings)
  return Run(**{**data, 'world': world, 'behavior': behavior})
