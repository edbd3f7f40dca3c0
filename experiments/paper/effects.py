"""Effects: numbers that are positive if a claim holds.

An effect compares arms on the same worlds. Its interval is bootstrapped over
the seeds of each world and arm.
"""

import dataclasses
import functools
from typing import Any, List, NamedTuple, Sequence, Tuple

import numpy as np

from bt_acme.evaluation import intervals
from experiments.paper import (
  artifacts,
  metrics,
  published,
  readings,
  results,
)


class Term(NamedTuple):
  """What enters an effect.

  Attributes:
    arm: the arm.
    reading: what is read of each of its runs.
    shortest: whether its runs with the least pre-training count, instead of
      those with the most.
  """

  arm: str
  reading: results.Reading
  shortest: bool = False


@dataclasses.dataclass(frozen=True)
class Effect:
  """A number that is positive if a claim holds.

  Attributes:
    name: what is subtracted from what.
    suite: the role of its worlds.
    terms: what `statistic` is a function of.
    statistic: maps samples [..., seeds, worlds], one for each term, to [...].
    worlds: the indices of the worlds in the suite; all if empty.
    decides: whether the claim's verdict depends on it.
    metric: the statistic of each arm, if the effect is the first arm's minus
      the largest of the others'; empty for other effects.
    share: the share of the budget at which it is taken.
  """

  name: str
  suite: str
  terms: Tuple[Term, ...]
  statistic: intervals.Statistic
  worlds: Tuple[int, ...] = ()
  decides: bool = True
  metric: str = ''
  share: float = 1.0


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


def compare(
  arm: str,
  *others: str,
  suite: str = 'full',
  metric: str = 'median',
  share: float = 1.0,
  worlds: Tuple[int, ...] = (),
  is_normalized: bool = True,
  decides: bool = True,
) -> Effect:
  """A metric of one arm minus the largest of the others'."""
  reading = results.at(share)
  if is_normalized:
    reading = results.normalized(reading)
  against = ' or '.join(others)
  where = f'{suite} {list(worlds)}' if worlds else suite
  at = '' if share == 1 else f' at {100 * share:.0f} % of the budget'
  return Effect(
    f'{metric} of {where}{at}: {arm} - {against}',
    suite,
    tuple(Term(one, reading) for one in (arm, *others)),
    functools.partial(_beyond, metrics.METRICS[metric].statistic),
    worlds,
    decides,
    metric,
    share,
  )


def early(arm: str, other: str, suite: str = 'full') -> Effect:
  """The median of two arms' returns over the early part of training."""
  reading = results.normalized(readings.early_area)
  return Effect(
    f'median of {suite} early in training: {arm} - {other}',
    suite,
    (Term(arm, reading), Term(other, reading)),
    functools.partial(_beyond, intervals.median),
  )


def wins(arm: str, other: str, suite: str, *, decides: bool = True) -> Effect:
  """The share of worlds in which an arm's mean is higher, minus a half."""
  reading = results.at(1.0)
  return Effect(
    f'share of {suite} in which {arm} beats {other}, - 1/2',
    suite,
    (Term(arm, reading), Term(other, reading)),
    _share_won,
    decides=decides,
  )


def better_on_tasks(
  arm: str, other: str, reading: results.Reading, name: str
) -> Effect:
  """How likely an arm's run beats another's on a modified task, minus a half.

  Rewards of different tasks have no common scale; a probability needs none.
  """
  return Effect(
    f'probability that {arm} beats {other} on modified tasks, {name}, - 1/2',
    'tasks',
    (Term(arm, reading), Term(other, reading)),
    _advantage,
    MODIFIED,
  )


def gain(
  arm: str,
  suite: str,
  *,
  over: str = '',
  worlds: Tuple[int, ...] = (),
  decides: bool = True,
) -> Effect:
  """What the largest budget of pre-training adds to the smallest.

  Args:
    arm: the arm.
    suite: the role of its worlds.
    over: an arm whose own gain is subtracted.
    worlds: as `Effect` has them.
    decides: as `Effect` has it.
  """
  reading = results.normalized(results.at(1.0))
  arms = (arm, over) if over else (arm,)
  where = f'{suite} {list(worlds)}' if worlds else suite
  return Effect(
    f'median of {where}, longest - shortest pre-training: ' + ' - '.join(arms),
    suite,
    tuple(Term(a, reading, b) for a in arms for b in (False, True)),
    _gain,
    worlds,
    decides,
  )


# The tasks of the suite `tasks`: each world's own reward comes first, then the
# easier one and the harder one.
ORIGINAL, MODIFIED, HARDER = (0, 3), (1, 2, 4, 5), (2, 5)


def measure(
  effect: Effect, indexed: results.Results, suites: artifacts.Suites
) -> Finding:
  """Computes an effect on the worlds that all its arms were run on.

  Args:
    effect: the effect.
    indexed: what runs came to.
    suites: the worlds of each role, at the data set's scale.
  """
  envs = _envs(effect, suites)
  samples = [_sample(term, envs, indexed) for term in effect.terms]
  common = [e for e in envs if all(e in sample.envs for sample in samples)]
  problems = [p for sample in samples for p in sample.problems]
  if not envs:
    problems.append(results.Problem('The scale lacks worlds for', effect.suite))
  estimate = intervals.Estimate(*(float('nan'),) * 3)
  if common:
    samples = [_sample(term, common, indexed) for term in effect.terms]
    estimate = intervals.bootstrap(
      effect.statistic, *(sample.values for sample in samples)
    )
  used = [run for sample in samples for run in sample.runs]
  return Finding(
    effect,
    estimate,
    min(sample.seeds for sample in samples) if common else 0,
    tuple(common),
    tuple(sorted({run.scale for run in used})),
    tuple(dict.fromkeys(problems)),
  )


def of_the_paper(effect: Effect, artifact: str) -> float:
  """An effect in the paper's numbers; NaN if it has none.

  Args:
    effect: the effect.
    artifact: the table with the numbers. Summaries that it prints come first;
      the scores of games behind it have the rest.
  """
  printed = _printed(effect, artifact)
  if not np.isnan(printed):
    return printed
  indexed = _published(artifact)
  return measure(effect, indexed, artifacts.PAPER_SUITES).estimate.value


@functools.lru_cache
def _published(artifact: str) -> results.Results:
  return results.Results(published.data(artifact))


def _envs(effect: Effect, suites: artifacts.Suites) -> List[str]:
  envs = list(suites.get(effect.suite, ()))
  if not effect.worlds:
    return envs
  return [envs[i] for i in effect.worlds if i < len(envs)]


def _sample(
  term: Term, envs: Sequence[str], indexed: results.Results
) -> results.Sample:
  if not term.shortest:
    return indexed.sample(term.arm, envs, term.reading)
  budgets = sorted({n for env in envs for n in indexed.budgets(term.arm, env)})
  if len(budgets) > 1:
    return indexed.sample(term.arm, envs, term.reading, budgets[0])
  missing = (
    results.Problem(f'{term.arm} has no two budgets of pre-training on', env)
    for env in envs
  )
  return results.Sample(np.empty((0, 0)), (), (), tuple(missing))


def _printed(effect: Effect, artifact: str) -> float:
  """The effect between summaries that the paper prints; else NaN."""
  frames = round(
    effect.share
    * artifacts.PAPER_TRANSFER_STEPS
    * artifacts.PAPER_FRAMES_PER_STEP
  )
  arms = [term.arm for term in effect.terms]
  values = {
    number.arm: float(number.value)
    for number in published.numbers(artifact)
    if (number.suite, number.metric) == (effect.suite, effect.metric)
    and number.frames == (0 if number.arm in artifacts.ZERO_SHOT else frames)
  }
  if effect.metric and not effect.worlds and set(arms) <= set(values):
    first, *others = (values[arm] for arm in arms)
    return first - max(others)
  return float('nan')


def _beyond(
  metric: intervals.Statistic, sample: Any, *others: Any
) -> np.ndarray:
  best = functools.reduce(np.maximum, [metric(other) for other in others])
  return metric(sample) - best


def _share_won(sample: Any, other: Any) -> np.ndarray:
  won = np.mean(sample, axis=-2) > np.mean(other, axis=-2)
  return np.mean(won, axis=-1) - 0.5


def _advantage(sample: Any, other: Any) -> np.ndarray:
  return intervals.probability_of_improvement(sample, other) - 0.5


def _gain(*samples: Any) -> np.ndarray:
  values = [intervals.median(sample) for sample in samples]
  gained = values[0] - values[1]
  return gained - (values[2] - values[3]) if len(values) > 2 else gained
