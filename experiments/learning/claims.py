"""The claims and their tables of runs, read from `claims.json`.

Several tables may show the same run, which is executed only once. Run `s` of an
algorithm that transfers a behavior uses the behavior of pre-training run `s`,
or always the same behavior (`margin`, `alone`, `dm_acme`, `laws`, `longer`,
`long`, `wide`, `baselines`, `smaller`, `budget`, `preset`, `atari`, `hero`).
Most results therefore show how consistent pre-training and transfer are
together.

The environments were chosen as follows. Each cell of the chain has its own
mapping of the two actions, so that no constant action moves along the chain.
`transfer` uses layouts whose goal is 11 to 15 actions away, or in which
exploring is penalized (`new_cell=-0.15`). `deception` uses environments in
which the habits of the behavior, visiting cells and opening the door, are
rewarded, neutral or penalized. `settings` starts with the values of version
0.1.0 or of the paper, in an environment and with seeds that no other table
uses. `ez-greedy` repeats one action, so it has no state and no epsilon.
Episodes of `memory` have eight steps. `bank` uses, of five environments, the
first layout from number 8 on in which `minigrid-explorer` alone solves between
1 and 50% of 64 episodes, and a task that this behavior always solves. Rule and
settings were fixed after these scores of the behavior, and before the first run
of `bank` that learns. The tasks of `budget`, `sizes` and `roles` were chosen by
results of `wide` and `bank`. The maze of `continual` was used in an earlier
trial of learned priorities.
"""

import dataclasses
import json
import pathlib
from collections.abc import Sequence
from typing import Any

from experiments.harness import small_runs

Run = small_runs.SmallRun

_PATH = pathlib.Path(__file__).with_name('claims.json')
_DATA: list[dict[str, Any]] = json.loads(_PATH.read_text())

# The question behind each claim.
CLAIMS: dict[str, str] = {each['claim']: each['question'] for each in _DATA}


@dataclasses.dataclass(frozen=True)
class Table:
  """A comparison of runs in one environment.

  Attributes:
    claim: one of `CLAIMS`.
    env: the environment of all runs.
    runs: the runs, one per row.
    columns: the columns of `report` to show.
    seeds: the seeds of each run.
  """

  claim: str
  env: str
  runs: tuple[Run, ...]
  columns: tuple[str, ...]
  seeds: Sequence[int] = range(10)


def tables() -> list[Table]:
  """Returns all tables in the order of the report."""
  return [
    Table(
      each['claim'],
      env,
      tuple(_run(env, run) for run in table['runs']),
      tuple(table['columns']),
      range(*table['seeds']),
    )
    for each in _DATA
    for table in each['tables']
    for env in table['envs']
  ]


def _run(env: str, data: dict[str, Any]) -> Run:
  """Returns a run of a table.

  Args:
    env: the environment.
    data: the arguments of the run. With `order`, environments in the order in
      which they are learned, the run also transfers the policies learned in
      those before its own, which have the role `learned_role`.
  """
  values = {**data, 'env': env}
  role = values.pop('learned_role', '')
  if order := values.pop('order', []):
    earlier = [_run(each, data) for each in order[: order.index(env)]]
    values['behavior'] = [*data['behavior'], *earlier]
    if earlier and role:
      roles = ['both'] * len(data['behavior']) + [role] * len(earlier)
      settings = {'behavior_roles': ','.join(roles)}
      values['settings'] = {**data['settings'], **settings}
  return small_runs.of_data(values)
