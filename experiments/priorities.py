"""Compares how strongly initial priorities make the replay prioritize.

The simulation uses the in-process replay without a network. The priority of a
sequence is lognormal, and 100 times larger at the start of training than late
in training. A learner step changes a priority slightly, and the actor knows the
priority up to noise. The settings are those of the paper, except that the
replay is a tenth as large.

  .venv/bin/python -m experiments.priorities

The table covers the second half of the run: the mean priority of the samples
divided by the mean priority of the whole replay (1 is uniform sampling), the
estimate of this ratio that every run logs as `priority_over_uniform`, and the
share of first visits.
"""

import argparse
import itertools
from typing import Callable

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
RATES = (0.4, 1.0, 12.0)  # Samples per insert; the paper uses the first.

_BATCH = 64
_MEDIAN, _SPREAD = 0.01, 1.2  # Lognormal priorities late in training.
_FALL = 100.0  # Factor by which priorities are larger at the start.
_DRIFT = 0.1  # Std of the change in log priority between learner steps.
_NOISE = 0.3  # Std of the actor's log priority around the learner's.
_SHAPES = fields.ReplayShapes((1, 1, 1), 1, 1)  # Not used.


def simulate(
  kind: str,
  *,
  samples_per_insert: float,
  num_inserts: int,
  max_replay_size: int,
  seed: int,
) -> np.ndarray:
  """Fills and samples a replay.

  Args:
    kind: `ReplayConfig.initial_priority`.
    samples_per_insert: as in `ReplayConfig`.
    num_inserts: length of the simulation in inserts.
    max_replay_size: as in `ReplayConfig`.
    seed: random seed.

  Returns:
    The priority of samples over the mean priority, the share of first visits,
    and the logged estimate of the former, averaged over the second half.
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
  of_new: dict[str, Callable[[float], float]] = {
    'one': lambda priority: 1.0,
    'largest': lambda priority: largest(),
    'actor': lambda priority: priority * rng.lognormal(0, _NOISE),
  }
  # The index of an insert is its key. `center` is the median of the priorities
  # that the learner computes, and `true` is the latest of them.
  center, true = np.zeros(num_inserts), np.zeros(num_inserts)
  rows: list[list[float]] = []
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
        rows.append([before.mean() / held.mean(), *logged.values()])
  return np.mean(rows, axis=0)


def table(seeds: int, **sizes: int) -> str:
  """Formats the results of all kinds at all rates as a table.

  Args:
    seeds: the number of seeds.
    **sizes: `num_inserts` and `max_replay_size` of `simulate`.
  """
  rows = []
  for rate, kind in itertools.product(RATES, KINDS):
    results = [
      simulate(kind, samples_per_insert=rate, seed=seed, **sizes)
      for seed in range(seeds)
    ]
    ratio, first, estimate = np.mean(results, axis=0)
    rows.append(
      (f'{rate:g}', kind, f'{ratio:.2f}', f'{estimate:.2f}', f'{first:.0%}')
    )
  header = (
    *('samples per insert', 'initial_priority', 'priority over uniform'),
    *('as logged', 'first visits'),
  )
  return tables.table(header, rows)


if __name__ == '__main__':
  parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
  parser.add_argument('--num_inserts', type=int, default=40_000)
  parser.add_argument('--max_replay_size', type=int, default=12_500)
  parser.add_argument('--seeds', type=int, default=2)
  print(table(**vars(parser.parse_args())))
