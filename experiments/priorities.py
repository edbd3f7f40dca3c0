"""How sharply does the replay prioritize, by the priority of new sequences?

A simulation with the replay of runs in one process, and without a network: a
sequence's priority is lognormal, 100 times larger at first than late in
training; a learner step changes it a little, and the actor knows it up to
noise. The settings are the paper's, but the replay is a tenth as large.

  .venv/bin/python -m experiments.priorities

Measured over the second half of the run, each number of the table is the mean
priority of what is sampled over that of the whole replay; 1 is uniform
sampling. Beside it are the share of first visits, and the estimate of the ratio
that every run logs as `priority_over_uniform`.
"""

import argparse
from typing import Callable, Dict, List, NamedTuple

import numpy as np

from bt_acme import config as config_lib
from bt_acme.evaluation import tables
from bt_acme.replay import (
  fields,
  in_process,
  initial_priority,
  sampling_metrics,
)

KINDS = ('one', 'largest', 'actor')
RATES = (0.4, 1.0, 12.0)  # Samples an insert; the first is the paper's.

_BATCH = 64
_MEDIAN, _SPREAD = 0.01, 1.2  # Of the lognormal priorities, late in training.
_FALL = 100.0  # How much larger they are at first.
_DRIFT = 0.1  # Deviation of a sequence's logarithm between learner steps.
_NOISE = 0.3  # Deviation of the logarithm of the actor's from the learner's.
_SHAPES = fields.ReplayShapes((1, 1, 1), 1, 1)  # Nothing is decoded.


class Result(NamedTuple):
  """Means over the second half of a run."""

  priority_over_uniform: float
  first_visit_share: float
  estimate: float


def simulate(
  kind: str,
  *,
  samples_per_insert: float,
  num_inserts: int,
  max_replay_size: int,
  seed: int,
) -> Result:
  """Fills and samples a replay.

  Args:
    kind: `ReplayConfig.initial_priority`.
    samples_per_insert: as in `ReplayConfig`.
    num_inserts: length of the run.
    max_replay_size: as in `ReplayConfig`.
    seed: of the run.
  """
  rng = np.random.default_rng(seed)
  config = config_lib.ReplayConfig(
    max_replay_size=max_replay_size,
    min_replay_size=_BATCH,
    samples_per_insert=samples_per_insert,
  )
  replay = in_process.InProcessReplay(config, _SHAPES, seed=seed)
  largest = initial_priority.LargestPriority()
  metrics = sampling_metrics.SamplingMetrics(max_replay_size)
  of_new: Dict[str, Callable[[float], float]] = {
    'one': lambda priority: 1.0,
    'largest': lambda priority: largest(),
    'actor': lambda priority: priority * rng.lognormal(0, _NOISE),
  }
  # The number of an insert is its key. `center` is the priority around which
  # those that the learner computes lie, and `true` is the newest of these.
  center, true = np.zeros(num_inserts), np.zeros(num_inserts)
  rows: List[Result] = []
  for number in range(num_inserts):
    scale = 1 + _FALL * np.exp(-20 * number / num_inserts)
    center[number] = _MEDIAN * scale * rng.lognormal(0, _SPREAD)
    true[number] = center[number]
    replay.insert((), np.empty(0), of_new[kind](true[number]))
    while replay.num_allowed(_BATCH):
      keys, probabilities = replay.draw(_BATCH)
      before = true[keys]
      true[keys] = center[keys] * rng.lognormal(0, _DRIFT, _BATCH)
      replay.update_priorities(keys, true[keys])
      largest.update(true[keys])
      logged = metrics.compute(keys, probabilities, true[keys])
      if 2 * number >= num_inserts:
        held = true[max(0, number + 1 - max_replay_size) : number + 1]
        rows.append(Result(before.mean() / held.mean(), *logged.values()))
  return Result(*np.mean(rows, axis=0))


def table(num_inserts: int, max_replay_size: int, seeds: int) -> str:
  """The results of all kinds at all rates."""
  rows = []
  for rate in RATES:
    for kind in KINDS:
      results = [
        simulate(
          kind,
          samples_per_insert=rate,
          num_inserts=num_inserts,
          max_replay_size=max_replay_size,
          seed=seed,
        )
        for seed in range(seeds)
      ]
      ratio, first, estimate = np.mean(results, axis=0)
      rows.append(
        (f'{rate:g}', kind, f'{ratio:.2f}', f'{estimate:.2f}', f'{first:.0%}')
      )
  header = (
    'samples an insert',
    'initial_priority',
    'priority over uniform',
    'as logged',
    'first visits',
  )
  return tables.table(header, rows)


def main() -> None:
  parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
  parser.add_argument('--num_inserts', type=int, default=40_000)
  parser.add_argument('--max_replay_size', type=int, default=12_500)
  parser.add_argument('--seeds', type=int, default=2)
  print(table(**vars(parser.parse_args())))


if __name__ == '__main__':
  main()
