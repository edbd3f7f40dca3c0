"""Describes missing and omitted data."""

import collections
from typing import Iterable, NamedTuple

from experiments.harness import dataset


class Problem(NamedTuple):
  """Missing data: a description and the affected run or environment."""

  what: str
  name: str


def of_run(run: dataset.RunRow, done: str) -> Problem:
  """Describes why a run lacks a result.

  Args:
    run: the run.
    done: the description for a run that is done.
  """
  what = {
    dataset.DONE: done,
    dataset.FAILED: f'Failed with exit code {run.exit_code}',
  }
  return Problem(what.get(run.status, f'Not done ({run.status})'), run.run_id)


def sentences(problems: Iterable[Problem], most: int = 10) -> tuple[str, ...]:
  """Returns a sentence per kind of problem, with at most `most` names each."""
  names: dict[str, list[str]] = collections.defaultdict(list)
  for problem in dict.fromkeys(problems):
    names[problem.what].append(problem.name)
  return tuple(
    f'{what}: {", ".join(found[:most])}'
    + (f' and {len(found) - most} more.' if len(found) > most else '.')
    for what, found in names.items()
  )
