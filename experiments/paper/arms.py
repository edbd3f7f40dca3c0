"""The paper's algorithms, as `data/arms.csv` lists them.

What repeats an action (`ez`) has no state and no epsilon, whatever the preset
says about those of an exported behavior.
"""

from typing import Any, Iterator, Mapping, NamedTuple, Tuple

from bt_acme.config import names
from experiments.harness import runs
from experiments.paper import data_files


class Arm(NamedTuple):
  """An algorithm of the paper.

  Attributes:
    script: what trains it.
    settings: the flags that make it this algorithm.
    needs: flags that take the policy of a pre-training, with its arm.
  """

  script: str
  settings: Mapping[str, Any]
  needs: Tuple[Tuple[str, str], ...]


def _read() -> Iterator[Tuple[str, Arm]]:
  rows = data_files.rows('arms.csv')
  arms = {row['arm'] for row in rows}
  for row in rows:
    used = {n: row[n] for n in ('behavior', 'init', 'init_from') if row[n]}
    settings = {n: of for n, of in used.items() if of not in arms}
    for text in row['settings'].split():
      name, _, value = text.partition('=')
      settings[name] = runs.parsed(name, value)
    if row['script']:
      yield (
        row['arm'],
        Arm(
          row['script'],
          settings,
          tuple((n, of) for n, of in used.items() if of in arms),
        ),
      )


ARMS: Mapping[str, Arm] = dict(_read())


def get(name: str) -> Arm:
  """Returns an arm; raises ValueError for an unknown one."""
  if name not in ARMS:
    raise ValueError(f'arms={name!r} is unknown: {names.suggest(name, ARMS)}')
  return ARMS[name]
