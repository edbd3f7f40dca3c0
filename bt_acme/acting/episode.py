"""Metrics of episodes for the logs of actors and evaluators."""

import array
from typing import Dict, List, Optional, Set

import numpy as np

from bt_acme.core import types
from bt_acme.environments import saving


class EpisodeMetrics:
  """Accumulates the metrics of one episode of one environment."""

  def __init__(self) -> None:
    self._task_return = 0.0
    self._discovery = 0.0  # The sum of the positive rewards of the task.
    self._intrinsic_return = 0.0
    self._length = 0
    self._flights = 0
    self._flight_steps: Dict[int, int] = {}  # By behavior.
    self._seen: Set[int] = set()  # Checksums of observations.
    self._steps_by_source = np.zeros(3, np.int64)
    self._greedy_extra_steps = 0
    self._alphas = array.array('f')

  @property
  def flown(self) -> List[int]:
    """The behaviors that flew in the episode, most steps first."""
    steps = self._flight_steps
    return sorted(steps, key=lambda k: (-steps[k], k))

  @property
  def scores(self) -> Dict[str, float]:
    """The score of the episode for each signal of `priority_signal`."""
    return {
      'discovery': self._discovery,
      'return': self._task_return,
      'novelty': len(self._seen),
    }

  def count(
    self,
    *,
    source: int,
    flight_length: int = 0,
    flight_behavior: int = 0,
    task_reward: float = 0.0,
    intrinsic_reward: float = 0.0,
    alpha: Optional[float] = None,
    greedy_extra: bool = False,
    observation: Optional[int] = None,
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
    self._length += 1
    self._task_return += task_reward
    self._discovery += max(task_reward, 0.0)
    self._intrinsic_return += intrinsic_reward
    self._steps_by_source[source] += 1
    self._flights += int(flight_length > 0)
    self._greedy_extra_steps += int(greedy_extra)
    if source == types.FLIGHT:
      behavior = int(flight_behavior)
      self._flight_steps[behavior] = self._flight_steps.get(behavior, 0) + 1
    if observation is not None:
      self._seen.add(observation)
    if alpha is not None:
      self._alphas.append(alpha)

  def state(self) -> saving.State:
    """Returns the accumulated values and the modulator of every step."""
    return {
      'task_return': self._task_return,
      'discovery': self._discovery,
      'intrinsic_return': self._intrinsic_return,
      'length': self._length,
      'flights': self._flights,
      'flight_steps': list(self._flight_steps.items()),
      'seen': sorted(self._seen),
      'steps_by_source': self._steps_by_source.copy(),
      'greedy_extra_steps': self._greedy_extra_steps,
      'alphas': np.array(self._alphas),
    }

  def restore(self, state: saving.State) -> None:
    """Restores a state returned by `state()`."""
    self._task_return = state['task_return']
    self._discovery = state.get('discovery', 0.0)
    self._intrinsic_return = state['intrinsic_return']
    self._length = state['length']
    self._flights = state['flights']
    self._flight_steps = dict(state.get('flight_steps', ()))
    self._seen = set(state.get('seen', ()))
    self._steps_by_source = state['steps_by_source'].copy()
    self._greedy_extra_steps = state['greedy_extra_steps']
    self._alphas = array.array('f', state['alphas'].tobytes())

  def metrics(self) -> Dict[str, float]:
    """Returns all metrics of the episode so far."""
    return {
      'episode_return': self._task_return,
      'episode_length': self._length,
      'intrinsic_return': self._intrinsic_return,
      **self._alpha_metrics(),
      **self.behavior_metrics(),
      'greedy_extra_share': self._greedy_extra_steps / max(self._length, 1),
    }

  def _alpha_metrics(self) -> Dict[str, float]:
    """Returns statistics of the modulator; empty if the reward has none.

    Life-long novelty changes NGU's reward only where the modulator exceeds 1.
    """
    if not self._alphas:
      return {}
    alphas = np.asarray(self._alphas, np.float64)
    median, high = np.quantile(alphas, (0.5, 0.9))
    return {
      'alpha_above_one_share': float(np.mean(alphas > 1)),
      'alpha_mean': float(np.mean(alphas)),
      'alpha_median': float(median),
      'alpha_90_percent': float(high),
    }

  def flight_metrics(self) -> Dict[str, float]:
    """Returns the behavior that flew most, or -1, and the discovery."""
    flown = self.flown
    return {
      'flight_behavior': flown[0] if flown else -1,
      'discovery': self._discovery,
    }

  def behavior_metrics(self) -> Dict[str, float]:
    """Returns the metrics of flights and behaviors."""
    length = max(self._length, 1)
    in_flight = self._steps_by_source[types.FLIGHT]
    delegated = self._steps_by_source[types.EXTRA]
    return {
      'flights': self._flights,
      # The end of an episode truncates its last flight, so count actual steps.
      'mean_flight_length': in_flight / max(self._flights, 1),
      'flight_share': in_flight / length,
      'behavior_share': (delegated + in_flight) / length,
    }
