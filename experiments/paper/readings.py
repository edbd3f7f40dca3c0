"""What is read of a run beside its return: how it learned, how it acted."""

from typing import Optional, Tuple

import numpy as np

from experiments.harness import dataset as dataset_lib
from experiments.paper import results

# Shares of the budget that count as early. The first is the paper's 100M of 5B
# frames. Where a run was evaluated fewer than three times in it, the second
# counts.
EARLY = (0.02, 0.1)


def early_area(
  indexed: results.Results, run: dataset_lib.Run
) -> Optional[float]:
  """The mean return over the early part of training, its area by its width.

  The curve is linear between evaluations. None unless the first evaluation
  comes in the first half of that part, and the last one not before its end.
  """
  steps, returns = column(indexed, run, 'return_mean')
  fine, coarse = (share * run.budget_steps for share in EARLY)
  end = fine if np.sum(steps <= fine) >= 3 else coarse
  if not len(steps) or steps[0] > end / 2 or steps[-1] < end:
    return None
  x = np.unique(np.concatenate([[0.0, end], steps[steps < end]]))
  y = np.interp(x, steps, returns)
  return float(np.sum(np.diff(x) * (y[1:] + y[:-1]) / 2) / end)


def peak_over_rest(
  indexed: results.Results, run: dataset_lib.Run
) -> Optional[float]:
  """How far use of the extra action peaks in the first third of a run.

  The largest share of greedy choices in the rest is subtracted from the
  largest within it.
  """
  first, rest = _thirds(indexed, run)
  return float(first.max() - rest.max()) if len(first) and len(rest) else None


def peak_over_end(
  indexed: results.Results, run: dataset_lib.Run
) -> Optional[float]:
  """As `peak_over_rest`; the share at the end of the run is subtracted."""
  first, rest = _thirds(indexed, run)
  return float(first.max() - rest[-1]) if len(first) and len(rest) else None


def _thirds(
  indexed: results.Results, run: dataset_lib.Run
) -> Tuple[np.ndarray, np.ndarray]:
  """The greedy shares of the extra action, in the first third and after it."""
  steps, shares = column(indexed, run, 'greedy_extra_share')
  first = steps <= run.budget_steps / 3
  return shares[first], shares[~first]


def column(
  indexed: results.Results, run: dataset_lib.Run, name: str
) -> Tuple[np.ndarray, np.ndarray]:
  """A column of a run's evaluations by actor steps, without NaN."""
  scores = indexed.scores(run, dataset_lib.EVALUATOR)
  steps = np.array([score.actor_steps for score in scores], np.float64)
  values = np.array([getattr(score, name) for score in scores], np.float64)
  is_there = ~np.isnan(values)
  return steps[is_there], values[is_there]
