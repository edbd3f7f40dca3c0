"""Effects: numbers that are positive if a claim holds.

An effect compares arms on the same worlds. Its interval is bootstrapped over
the seeds of each world and arm. `data/effects.csv` lists the effects.
"""

import functools
from typing import (
  Any,
  Callable,
  Dict,
  List,
  Mapping,
  NamedTuple,
  Sequence,
  Tuple,
)

import numpy as np

from bt_acme.evaluation import intervals
from experiments.paper import (
  artifacts,
  data_files,
  metrics,
  published,
  results,
)

_NAN = float('nan')


def _beyond(metric: intervals.Statistic, first: Any, *others: Any) -> Any:
  return metric(first) - np.max([metric(other) for other in others], axis=0)


def _share_won(sample: Any, other: Any) -> np.ndarray:
  won = np.mean(sample, axis=-2) > np.mean(other, axis=-2)
  return np.mean(won, axis=-1) - 0.5


def _advantage(sample: Any, other: Any) -> np.ndarray:
  return intervals.probability_of_improvement(sample, other) - 0.5


def _gain(*samples: Any) -> Any:
  """Of the arm's gain with pre-training, minus another's if there is one."""
  longest, shortest, *others = map(intervals.median, samples)
  return longest - shortest - (_gain(*samples[2:]) if others else 0)


def _num_at_random(runs: np.ndarray) -> np.ndarray:
  """The number of worlds in which an arm is no better than random."""
  return runs.shape[-1] - intervals.num_above(runs, 0)


def _minus_mean(runs: np.ndarray) -> np.ndarray:
  return -intervals.mean(runs)


class Statistic(NamedTuple):
  """How an effect is computed.

  Attributes:
    name: what is subtracted from what, with fields of the effect.
    compute: maps samples [..., seeds, worlds], one for each arm, to [...].
    is_normalized: whether it is of normalized returns.
    reading: what it reads of a run; its return if None.
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
      is_normalized=name != 'mean',  # It is of one task, on its own scale.
    )
    for name, metric in metrics.METRICS.items()
  },
  # What the largest budget of pre-training adds to the smallest.
  'gain': Statistic(
    'median of {where}, longest - shortest pre-training: {arms}', _gain
  ),
  'minus_mean': Statistic(
    'minus the mean of {where}: {arm}', _minus_mean, False
  ),
  'num_at_random': Statistic(
    'worlds in which {arm} is no better than random', _num_at_random
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
  # Rewards of different tasks have no common scale; a probability needs none.
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
    statistic: one of `STATISTICS`.
    share: of the budget, at which it is taken; NaN for the early part.
    suite: the role of its worlds.
    worlds: their places in the suite; all if empty.
    arms: what the statistic is a function of.
    decides: whether the claim's verdict depends on it.
  """

  statistic: str
  share: float
  suite: str
  worlds: Tuple[int, ...]
  arms: Tuple[str, ...]
  decides: bool

  @property
  def name(self) -> str:
    """What is subtracted from what."""
    at = (
      '' if self.share == 1 else f' at {100 * self.share:.0f} % of the budget'
    )
    return STATISTICS[self.statistic].name.format(
      where=f'{self.suite} {list(self.worlds)}' if self.worlds else self.suite,
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
    """Reads a run."""
    statistic = STATISTICS[self.statistic]
    of_return = results.early_area if self.is_early else results.at(self.share)
    reading = statistic.reading or of_return
    return results.normalized(reading) if statistic.is_normalized else reading

  def envs(self, suites: artifacts.Suites) -> List[str]:
    """Its worlds at a scale, as far as there are any."""
    envs = list(suites.get(self.suite, ()))
    if not self.worlds:
      return envs
    return [envs[i] for i in self.worlds if i < len(envs)]


def read() -> Mapping[str, Tuple[Effect, ...]]:
  """The effects of `data/effects.csv`, by claim."""
  found: Dict[str, Tuple[Effect, ...]] = {}
  for row in data_files.rows('effects.csv'):
    effect = Effect(
      row['statistic'],
      _NAN if row['at'] == 'early' else float(row['at']),
      row['suite'],
      tuple(map(int, row['worlds'].split())),
      tuple(row['arms'].split()),
      row['decides'] == '1',
    )
    found[row['claim']] = (*found.get(row['claim'], ()), effect)
  return found


class Finding(NamedTuple):
  """What an effect came to.

  Attributes:
    effect: the effect.
    estimate: its value and 95 % interval; NaN where they cannot be computed.
    seeds: the fewest of an arm.
    worlds: those that all arms were run on.
    scales: of the runs.
    problems: what is missing.
  """

  effect: Effect
  estimate: intervals.Estimate
  seeds: int
  worlds: Tuple[str, ...]
  scales: Tuple[str, ...]
  problems: Tuple[results.Problem, ...]

  @property
  def is_measured(self) -> bool:
    return not np.isnan(self.estimate.value)


def measure(
  effect: Effect, indexed: results.Results, suites: artifacts.Suites
) -> Finding:
  """Computes an effect on the worlds that all its arms were run on.

  Args:
    effect: the effect.
    indexed: what runs came to.
    suites: the worlds of each role, at the data set's scale.
  """
  envs = effect.envs(suites)
  samples = _samples(effect, envs, indexed)
  common = [e for e in envs if all(e in sample.envs for sample in samples)]
  problems = [p for sample in samples for p in sample.problems]
  if not envs:
    problems.append(results.Problem('The scale lacks worlds for', effect.suite))
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
) -> List[results.Sample]:
  """A sample for each arm; for a gain two, of the most pre-training first."""
  read = functools.partial(indexed.sample, envs=envs, reading=effect.reading)
  samples = []
  for arm in effect.arms:
    samples.append(read(arm))
    if effect.statistic == 'gain':
      budgets = {n for env in envs for n in indexed.budgets(arm, env)}
      what = f'{arm} has no two budgets of pre-training on'
      missing = tuple(results.Problem(what, env) for env in envs)
      samples.append(
        read(arm, pretraining_steps=min(budgets))
        if len(budgets) > 1
        else results.Sample(np.empty((0, 0)), (), (), missing)
      )
  return samples


def of_the_paper(effect: Effect, artifact: str) -> float:
  """An effect in the paper's numbers; NaN if it has none.

  Args:
    effect: the effect.
    artifact: the table with the numbers. Summaries that it prints come first;
      the scores of games behind it have the rest.
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
