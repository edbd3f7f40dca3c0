"""What is read of a run beside its return: how it learned, how it acted."""

from typing import Callable, Optional

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
  scores = indexed.scores(run, dataset_lib.EVALUATOR)
  steps = np.array([score.actor_steps for score in scores], np.float64)
  returns = np.array([score.return_mean for score in scores], np.float64)
  fine, coarse = (share * run.budget_steps for share in EARLY)
  end = fine if np.sum(steps <= fine) >= 3 else coarse
  if not scores or steps[0] > end / 2 or steps[-1] < end:
    return None
  x = np.unique(np.concatenate([[0.0, end], steps[steps < end]]))
  y = np.interp(x, steps, returns)
  return float(np.sum(np.diff(x) * (y[1:] + y[:-1]) / 2) / end)


def peak_over(
  rest: Callable[[np.ndarray], float],
) -> Callable[[results.Results, dataset_lib.Run], Optional[float]]:
  """Reads how far use of the extra action peaks in the first third of a run.

  Args:
    rest: maps the shares of greedy choices after the first third to the number
      that is subtracted from their maximum within it.
  """

  def read(indexed: results.Results, run: dataset_lib.Run) -> Optional[float]:
    scores = [
      score
      for score in indexed.scores(run, dataset_lib.EVALUATOR)
      if np.isfinite(score.greedy_extra_share)
    ]
    shares = np.array([score.greedy_extra_share for score in scores])
    steps = np.array([score.actor_steps for score in scores])
    first = steps <= run.budget_steps / 3
    if first.all() or not first.any():
      return None
    return float(np.max(shares[first]) - rest(shares[~first]))

  return read
