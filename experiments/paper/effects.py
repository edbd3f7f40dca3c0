"""Effects: numbers that are positive if a claim holds.

An effect compares arms in the same environments. Its interval is bootstrapped
over the seeds of each environment and arm. See `data/effects.csv` for the list.
"""

import functools
from typing import Any, Callable, Mapping, NamedTuple, Sequence

import numpy as np

from bt_acme.evaluation import intervals
from experiments.harness import diagnosis
from experiments.paper import artifacts, data_files, published, results

_NAN = float('nan')


class Metric(NamedTuple):
  """A statistic over seeds and environments, with its title in tables.

  The statistic maps float64 [..., seeds, envs] to float64 [...]. The score of
  an environment is the mean over seeds, as in the paper. The interquartile mean
  is an exception and is taken over all runs (Agarwal et al. 2021,
  arXiv:2108.13264).
  """

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


def _num_at_random(runs: np.ndarray) -> np.ndarray:
  """Counts the environments in which an arm does not beat a random policy."""
  return runs.shape[-1] - intervals.num_above(runs, 0)


def _minus_mean(runs: np.ndarray) -> np.ndarray:
  return -intervals.mean(runs)


class Statistic(NamedTuple):
  """The computation of an effect.

  Attributes:
    name: a template of the effect's name.
    compute: maps samples [..., seeds, envs], one per arm, to [...].
    is_normalized: whether the samples are normalized returns.
    reading: returns a number for a run; None for the return.
  """

  name: str
  compute: Callable[..., Any]
  is_normalized: bool = True
  reading: Any = None


STATISTICS: Mapping[str, Statistic] = {
  **{
    name: Statistic(
      f'{name} of {{where}}{{at}}: {{arm}} - {{others}}',
      functools.partial(_beyond, metric.statistic),
      is_normalized=name != 'mean',  # Means are of one task, on its own scale.
    )
    for name, metric in METRICS.items()
  },
  # The gain from the smallest to the largest budget of pre-training.
  'gain': Statistic(
    'median of {where}, longest - shortest pre-training: {arms}', _gain
  ),
  'minus_mean': Statistic(
    'minus the mean of {where}: {arm}', _minus_mean, False
  ),
  'num_at_random': Statistic(
    'environments in which {arm} does not beat random', _num_at_random
  ),
  'peak_over_end': Statistic(
    'greedy share of a+: maximum of the first third - at the end',
    intervals.mean,
    False,
    results.peak_over_end,
  ),
  'peak_over_rest': Statistic(
    'greedy share of a+: maximum of the first third - of the rest',
    intervals.mean,
    False,
    results.peak_over_rest,
  ),
  # A probability, because rewards of different tasks have no common scale.
  'probability': Statistic(
    'probability that {arm} beats {others} on modified tasks, {then}, - 1/2',
    _advantage,
    False,
  ),
  'share_won': Statistic(
    'share of {where} in which {arm} beats {others}, - 1/2', _share_won, False
  ),
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
    where = self.suite
    if self.indices:
      where = f'{self.suite} {list(self.indices)}'
    at = '' if self.share == 1 else f' at {100 * self.share:.0f}% of the budget'
    return STATISTICS[self.statistic].name.format(
      where=where,
      at=' early in training' if self.is_early else at,
      then='early' if self.is_early else 'at the end',
      arm=self.arms[0],
      others=' or '.join(self.arms[1:]),
      arms=' - '.join(self.arms),
    )

  @property
  def is_early(self) -> bool:
    return np.isnan(self.share)

  @property
  def reading(self) -> results.Reading:
    """The function that returns the number that the effect needs of a run."""
    statistic = STATISTICS[self.statistic]
    of_return = results.early_area if self.is_early else results.at(self.share)
    reading = statistic.reading or of_return
    return results.normalized(reading) if statistic.is_normalized else reading

  def envs(self, suites: artifacts.Suites) -> list[str]:
    """Returns the existing environments of the effect at a scale."""
    envs = list(suites.get(self.suite, ()))
    if not self.indices:
      return envs
    return [envs[i] for i in self.indices if i < len(envs)]


def of_claim(claim: str) -> tuple[Effect, ...]:
  """Returns the effects of a claim, such as `C3`."""
  return tuple(effect for effect in _effects() if effect.claim == claim)


@functools.lru_cache
def _effects() -> tuple[Effect, ...]:
  return data_files.typed_rows('effects.csv', Effect)


class Finding(NamedTuple):
  """A measured effect.

  Attributes:
    effect: the effect.
    estimate: value and 95% interval; NaN if they cannot be computed.
    seeds: the number of seeds of the arm that has the fewest.
    envs: the environments in which all arms were run.
    scales: the scales of the runs.
    problems: the missing data.
  """

  effect: Effect
  estimate: intervals.Estimate
  seeds: int
  envs: tuple[str, ...]
  scales: tuple[str, ...]
  problems: tuple[diagnosis.Problem, ...]

  @property
  def is_measured(self) -> bool:
    return not np.isnan(self.estimate.value)


def measure(
  effect: Effect, indexed: results.Results, suites: artifacts.Suites
) -> Finding:
  """Measures an effect in the environments in which all its arms were run.

  Args:
    effect: the effect.
    indexed: the results.
    suites: the environments of each suite at the dataset's scale.
  """
  envs = effect.envs(suites)
  samples = _samples(effect, envs, indexed)
  common = [e for e in envs if all(e in sample.envs for sample in samples)]
  problems = [p for sample in samples for p in sample.problems]
  if not envs:
    problems.append(
      diagnosis.Problem('The scale has no environments for', effect.suite)
    )
  estimate = intervals.Estimate(_NAN, _NAN, _NAN)
  if common:
    samples = _samples(effect, common, indexed)
    estimate = intervals.bootstrap(
      STATISTICS[effect.statistic].compute,
      *(sample.values for sample in samples),
    )
  return Finding(
    effect,
    estimate,
    min(sample.seeds for sample in samples) if common else 0,
    tuple(common),
    tuple(sorted({run.scale for sample in samples for run in sample.runs})),
    tuple(dict.fromkeys(problems)),
  )


def _samples(
  effect: Effect, envs: Sequence[str], indexed: results.Results
) -> list[results.ArmResults]:
  """Reads the samples that the statistic of an effect compares.

  For a gain, each arm has two samples: the one with the most pre-training, then
  the one with the least. For any other statistic, each arm has one sample.
  """
  read = functools.partial(indexed.sample, envs=envs, reading=effect.reading)
  samples = []
  for arm in effect.arms:
    samples.append(read(arm))
    if effect.statistic == 'gain':
      budgets = {n for env in envs for n in indexed.budgets(arm, env)}
      what = f'{arm} has fewer than two budgets of pre-training on'
      missing = tuple(diagnosis.Problem(what, env) for env in envs)
      samples.append(
        read(arm, pretraining_steps=min(budgets))
        if len(budgets) > 1
        else results.ArmResults(np.empty((0, 0)), (), (), missing)
      )
  return samples


def of_the_paper(effect: Effect, artifact: str) -> float:
  """Computes an effect from the paper's numbers; NaN if there are none.

  Args:
    effect: the effect.
    artifact: the table with the numbers. Printed summaries are preferred;
      otherwise the effect is computed from the scores of games.
  """
  printed = {
    number.arm: float(number.value)
    for number in published.numbers(artifact)
    if (number.suite, number.metric) == (effect.suite, effect.statistic)
    and number.frames == artifacts.paper_frames(number.arm, effect.share)
  }
  if set(effect.arms) <= set(printed):
    first, *others = (printed[arm] for arm in effect.arms)
    return first - max(others)
  indexed = _published(artifact)
  return measure(effect, indexed, artifacts.PAPER_SUITES).estimate.value


@functools.lru_cache
def _published(artifact: str) -> results.Results:
  return results.Results(published.data(artifact))
