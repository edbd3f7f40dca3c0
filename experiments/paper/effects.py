"""Effects: numbers that are positive if a claim holds.

An effect compares arms in the same environments. Its interval is bootstrapped
over the seeds of each environment and arm. See `data/effects.csv` for the list.
"""

import functools
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from bt_acme.evaluation import intervals, tables
from experiments.harness import dataset
from experiments.paper import artifacts, published, results

# Statistics that map float64 [..., seeds, envs] to float64 [...]. The score of
# an environment is the mean over seeds, as in the paper. The interquartile mean
# is an exception and is taken over all runs (Agarwal et al. 2021,
# arXiv:2108.13264).
METRICS: Mapping[str, intervals.Statistic] = {
  'median': intervals.median,
  'mean': intervals.mean,
  'normalized_mean': intervals.mean,
  'capped_mean': intervals.capped_mean,
  'iqm': intervals.interquartile_mean,
  **{
    f'p{percent}': functools.partial(intervals.percentile, percent=percent)
    for percent in (5, 10, 20, 40, 50)
  },
  'num_above_random': functools.partial(intervals.num_above, level=0),
  'num_above_human': functools.partial(intervals.num_above, level=100),
}


def _beyond(metric: intervals.Statistic, first: Any, *others: Any) -> Any:
  return metric(first) - np.max([metric(other) for other in others], axis=0)


def _share_won(sample: Any, other: Any) -> np.ndarray:
  won = np.mean(sample, axis=-2) > np.mean(other, axis=-2)
  return np.mean(won, axis=-1) - 0.5


def _advantage(sample: Any, other: Any) -> np.ndarray:
  return intervals.probability_of_improvement(sample, other) - 0.5


def _gain(*samples: Any) -> Any:
  """Computes an arm's gain from pre-training, minus another arm's if given."""
  longest, shortest, *others = map(intervals.median, samples)
  return longest - shortest - (_gain(*samples[2:]) if others else 0)


# Functions of the samples of an effect, [..., seeds, envs] for each arm, that
# return [...].
COMPUTE: Mapping[str, Callable[..., Any]] = {
  **{name: functools.partial(_beyond, METRICS[name]) for name in METRICS},
  # The gain from the smallest to the largest budget of pre-training.
  'gain': _gain,
  'minus_mean': lambda runs: -intervals.mean(runs),
  # Environments in which an arm does not beat a random policy.
  'num_at_random': lambda runs: runs.shape[-1] - intervals.num_above(runs, 0),
  **dict.fromkeys(('first_over_second', 'first_over_last'), intervals.mean),
  'probability': _advantage,
  'share_won': _share_won,
}
# Functions that return the number to compare; the return if there is none.
READINGS: Mapping[str, results.Reading] = {
  'first_over_second': functools.partial(results.first_third_over, 1),
  'first_over_last': functools.partial(results.first_third_over, 2),
}


# The texts and properties of statistics by id; the file describes its columns.
STATISTICS: Mapping[str, Mapping[str, str]] = {
  row['id']: row for row in tables.read_csv(artifacts.DATA / 'statistics.csv')
}


class Effect(NamedTuple):
  """A number that is positive if a claim holds.

  Attributes:
    claim: the id of the claim.
    statistic: one of `STATISTICS`.
    share: the share of the budget at which the effect is measured; NaN for the
      early part of training.
    suite: the suite of the environments.
    indices: the indices of the environments in the suite; empty for all.
    arms: the arms that the statistic compares.
    decides: whether the verdict on the claim depends on the effect.
  """

  claim: str
  statistic: str
  share: float
  suite: str
  indices: tuple[int, ...]
  arms: tuple[str, ...]
  decides: bool

  @property
  def name(self) -> str:
    """A description of the difference, for readers."""
    is_early = math.isnan(self.share)
    at = '' if self.share == 1 else f' at {100 * self.share:.0f}% of the budget'
    return STATISTICS[self.statistic]['effect'].format(
      where=f'{self.suite} {list(self.indices) or ""}'.strip(),
      at=' early in training' if is_early else at,
      then='early' if is_early else 'at the end',
      arm=self.arms[0],
      others=' or '.join(self.arms[1:]),
      arms=' - '.join(self.arms),
    )

  @property
  def reading(self) -> results.Reading:
    """The function that returns the number that the effect needs of a run."""
    is_normalized = STATISTICS[self.statistic]['is_normalized'] == '1'
    return READINGS.get(self.statistic, results.at(self.share, is_normalized))

  def envs(self, suites: artifacts.Suites) -> list[str]:
    """Returns the existing environments of the effect at a scale."""
    envs = suites.get(self.suite, ())
    return [envs[i] for i in self.indices or range(len(envs)) if i < len(envs)]


EFFECTS = dataset.read_rows(artifacts.DATA / 'effects.csv', Effect)


class Finding(NamedTuple):
  """A measured effect.

  Attributes:
    effect: the effect.
    estimate: value and 95% interval; NaN if they cannot be computed.
    seeds: the number of seeds of the arm that has the fewest.
    envs: the environments in which all arms were run.
    scales: the scales of the runs.
    problems: the missing data.
    one_pretraining: whether the effect is one of policies that do not learn, or
      of budgets of pre-training, and all seeds have the policy of one run.
  """

  effect: Effect
  estimate: intervals.Estimate
  seeds: int
  envs: tuple[str, ...]
  scales: tuple[str, ...]
  problems: tuple[dataset.Problem, ...]
  one_pretraining: bool = False

  @property
  def is_measured(self) -> bool:
    return not math.isnan(self.estimate.value)


def measure(effect: Effect, found: results.Results) -> Finding:
  """Measures an effect in the environments in which all its arms were run."""
  envs = effect.envs(found.suites)
  samples = _samples(effect, envs, found)
  problems = [p for sample in samples for p in sample.problems]
  if not envs:
    where = ' '.join([effect.suite, *map(str, effect.indices)])
    problems.append(results.no_environments(where))
  scales = sorted({run.scale for sample in samples for run in sample.runs})
  estimate, seeds = intervals.Estimate(math.nan, math.nan, math.nan), 0
  shared: tuple[str, ...] = ()
  if all(sample.envs for sample in samples):
    values = (sample.values for sample in samples)
    estimate = intervals.bootstrap(COMPUTE[effect.statistic], *values)
    seeds, shared = min(s.seeds for s in samples), samples[0].envs
  policies = {
    (run.arm, run.env, run.pretraining_steps, run.pretraining_run)
    for sample in samples
    for run in sample.runs
    if run.arm in artifacts.ZERO_SHOT or effect.statistic == 'gain'
  }
  is_shared = len({policy[:3] for policy in policies}) == len(policies)
  return Finding(
    *(effect, estimate, seeds, shared, tuple(scales), tuple(problems)),
    one_pretraining=bool(policies) and seeds > 1 and is_shared,
  )


def _samples(
  effect: Effect, envs: Sequence[str], found: results.Results
) -> list[results.ArmResults]:
  """Reads the samples that the statistic of an effect compares.

  For a gain, each arm has two samples: the one with the most pre-training, then
  the one with the least. For any other statistic, each arm has one sample.
  """

  def read(key: tuple[str, bool], envs: Sequence[str]) -> results.ArmResults:
    arm, is_shortest = key
    budgets = found.budgets(arm, envs)
    if not is_shortest:
      return found.sample(arm, envs, effect.reading)
    if len(budgets) > 1:
      return found.sample(arm, envs, effect.reading, budgets[0])
    what = f'{arm} has fewer than two budgets of pre-training on'
    missing = tuple((what, env) for env in envs)
    return results.ArmResults(np.empty((0, 0)), (), (), missing)

  kinds = (False, True) if effect.statistic == 'gain' else (False,)
  keys = list(itertools.product(effect.arms, kinds))
  return list(results.in_shared_environments(read, keys, envs).values())


@functools.cache
def of_the_paper(effect: Effect, artifact: str) -> float:
  """Computes an effect from the paper's numbers; NaN if there are none.

  Args:
    effect: the effect.
    artifact: the table with the numbers. Printed summaries are preferred;
      otherwise the effect is computed from the scores of games.
  """
  printed = [
    published.find(
      *(artifact, arm, effect.suite, effect.statistic),
      artifacts.paper_frames(arm, effect.share),
    )
    for arm in effect.arms
  ]
  if all(printed):
    first, *others = (float(number.value) for number in printed if number)
    return first - max(others)
  data = results.Results(published.data(artifact))
  return measure(effect, data).estimate.value
