"""Statistics over seeds and environments for artifacts and claims.

Each statistic maps float64 [..., seeds, envs] to float64 [...]. The score of an
environment is the mean over seeds, as in the paper. The interquartile mean is
an exception and is taken over all runs (Agarwal et al. 2021, arXiv:2108.13264).
"""

import functools
from typing import Any, Mapping, NamedTuple

import numpy as np

from bt_acme.evaluation import intervals


class Metric(NamedTuple):
  """A statistic with its title in tables."""

  title: str
  statistic: intervals.Statistic


def _percentile(percent: float, runs: Any) -> np.ndarray:
  return intervals.percentiles(runs, [percent])[..., 0]


METRICS: Mapping[str, Metric] = {
  'median': Metric('median', intervals.median),
  'mean': Metric('mean', intervals.mean),
  'capped_mean': Metric('capped mean', intervals.capped_mean),
  'iqm': Metric('IQM', intervals.interquartile_mean),
  **{
    f'p{percent}': Metric(
      f'{percent}th percentile', functools.partial(_percentile, percent)
    )
    for percent in intervals.PERCENTILES
  },
  'num_above_random': Metric(
    'environments > 0', functools.partial(intervals.num_above, level=0)
  ),
  'num_above_human': Metric(
    'environments > 100', functools.partial(intervals.num_above, level=100)
  ),
}
