"""Metrics of episodes for the logs of actors and evaluators."""

import array
import dataclasses

import numpy as np

from bt_acme.core import types
from bt_acme.environments import saving


@dataclasses.dataclass(eq=False)
class EpisodeMetrics:
  """Accumulates the metrics of one episode of one environment.

  Attributes:
    task_return: the sum of the rewards of the task.
    discovery: the sum of the positive rewards of the task.
    intrinsic_return: the sum of the intrinsic rewards.
    length: the number of steps.
    flights: the number of flights.
    flight_steps: the number of flight steps by behavior.
    seen: the checksums of observations.
    steps_by_source: int64 [3], the number of steps of each component.
    greedy_extra_steps: the number of steps with a greedy extra action.
    alphas: the modulator of every step, float32.
  """

  task_return: float = 0.0
  discovery: float = 0.0
  intrinsic_return: float = 0.0
  length: int = 0
  flights: int = 0
  flight_steps: dict[int, int] = dataclasses.field(default_factory=dict)
  seen: set[int] = dataclasses.field(default_factory=set)
  steps_by_source: np.ndarray = dataclasses.field(
    default_factory=lambda: np.zeros(3, np.int64)
  )
  greedy_extra_steps: int = 0
  alphas: array.array = dataclasses.field(
    default_factory=lambda: array.array('f')
  )

  @property
  def flown(self) -> list[int]:
    """The behaviors that flew in the episode, most steps first."""
    return sorted(self.flight_steps, key=lambda k: (-self.flight_steps[k], k))

  @property
  def scores(self) -> dict[str, float]:
    """The score of the episode for each signal of `priority_signal`."""
    return {
      'discovery': self.discovery,
      'return': self.task_return,
      'novelty': len(self.seen),
    }

  def count(
    self,
    *,
    source: int,
    flight_length: int = 0,
    flight_behavior: int = 0,
    task_reward: float = 0.0,
    intrinsic_reward: float = 0.0,
    alpha: float | None = None,
    greedy_extra: bool = False,
    observation: int | None = None,
  ) -> None:
    """Adds one step.

    Args:
      source: the component that selected the action: OWN, EXTRA or FLIGHT of
        `core/types.py`.
      flight_length: the drawn length of a flight that starts at this step; 0 if
        no flight starts.
      flight_behavior: the behavior of the flight, if the source is FLIGHT.
      task_reward: the task's reward for the step.
      intrinsic_reward: the reward of the observation before the step, even if
        `reward_observation` assigns this reward to another action.
      alpha: the life-long modulator of that reward; None if the reward has no
        modulator.
      greedy_extra: whether the agent's greedy choice was an extra action.
      observation: a checksum of the observation before the step, to count the
        distinct observations; None if they are not counted.
    """
    self.length += 1
    self.task_return += task_reward
    self.discovery += max(task_reward, 0.0)
    self.intrinsic_return += intrinsic_reward
    self.steps_by_source[source] += 1
    self.flights += int(flight_length > 0)
    self.greedy_extra_steps += int(greedy_extra)
    if source == types.FLIGHT:
      behavior = int(flight_behavior)
      self.flight_steps[behavior] = self.flight_steps.get(behavior, 0) + 1
    if observation is not None:
      self.seen.add(observation)
    if alpha is not None:
      self.alphas.append(alpha)

  def state(self) -> saving.State:
    """Returns the accumulated values and the modulator of every step."""
    return {
      **vars(self),
      'flight_steps': list(self.flight_steps.items()),
      'seen': sorted(self.seen),
      'steps_by_source': self.steps_by_source.copy(),
      'alphas': np.array(self.alphas),
    }

  @classmethod
  def restored(cls, state: saving.State) -> 'EpisodeMetrics':
    """Returns the metrics with a state returned by `state()`."""
    return cls(
      **{
        **state,
        'flight_steps': dict(state.get('flight_steps', ())),
        'seen': set(state.get('seen', ())),
        'steps_by_source': state['steps_by_source'].copy(),
        'alphas': array.array('f', state['alphas'].tobytes()),
      }
    )

  def metrics(self) -> dict[str, float]:
    """Returns all metrics of the episode so far."""
    return {
      'episode_return': self.task_return,
      'episode_length': self.length,
      'intrinsic_return': self.intrinsic_return,
      **self._alpha_metrics(),
      **self.behavior_metrics(),
      'greedy_extra_share': self.greedy_extra_steps / max(self.length, 1),
    }

  def _alpha_metrics(self) -> dict[str, float]:
    """Returns statistics of the modulator; empty if the reward has none.

    Life-long novelty changes NGU's reward only where the modulator exceeds 1.
    """
    if not self.alphas:
      return {}
    alphas = np.asarray(self.alphas, np.float64)
    median, high = np.quantile(alphas, (0.5, 0.9))
    return {
      'alpha_above_one_share': float(np.mean(alphas > 1)),
      'alpha_mean': float(np.mean(alphas)),
      'alpha_median': float(median),
      'alpha_90_percent': float(high),
    }

  def flight_metrics(self) -> dict[str, float]:
    """Returns the behavior that flew most, or -1, and the discovery."""
    behavior = next(iter(self.flown), -1)
    return {'flight_behavior': behavior, 'discovery': self.discovery}

  def behavior_metrics(self) -> dict[str, float]:
    """Returns the metrics of flights and behaviors."""
    length = max(self.length, 1)
    in_flight = self.steps_by_source[types.FLIGHT]
    delegated = self.steps_by_source[types.EXTRA]
    return {
      'flights': self.flights,
      # The end of an episode truncates its last flight, so count actual steps.
      'mean_flight_length': in_flight / max(self.flights, 1),
      'flight_share': in_flight / length,
      'behavior_share': (delegated + in_flight) / length,
    }
