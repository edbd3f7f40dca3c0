import numpy as np
import pytest

from bt_acme.acting import episode
from bt_acme.core import types


def test_metrics_of_an_episode():
  metrics = episode.EpisodeMetrics()
  metrics.count(
    source=types.OWN, task_reward=1.5, intrinsic_reward=0.25, greedy_extra=True
  )
  # Three flights; the second, of 4 steps, is truncated after one step.
  for length in (2, 0, 4, 1):
    metrics.count(
      source=types.FLIGHT, flight_length=np.int32(length), task_reward=-1.0
    )
  metrics.count(source=np.uint8(types.EXTRA), greedy_extra=np.True_)
  expected = {
    'episode_return': -2.5,
    'episode_length': 6,
    'intrinsic_return': 0.25,
    'flights': 3,
    'mean_flight_length': 4 / 3,
    'flight_share': 4 / 6,
    'behavior_share': 5 / 6,
    'greedy_extra_share': 2 / 6,
  }
  assert metrics.metrics() == pytest.approx(expected)
  assert list(metrics.metrics()) == list(expected)


def test_metrics_of_the_modulator():
  metrics = episode.EpisodeMetrics()
  for alpha in (-1.0, 0.5, 1.0, 2.0, 7.5):
    metrics.count(source=types.OWN, alpha=alpha)
  found = {
    name: value
    for name, value in metrics.metrics().items()
    if name.startswith('alpha')
  }
  assert found == pytest.approx(
    {
      'alpha_above_one_share': 0.4,
      'alpha_mean': 2.0,
      'alpha_median': 1.0,
      'alpha_90_percent': 5.3,
    }
  )


def test_an_episode_without_steps_has_metrics():
  assert set(episode.EpisodeMetrics().metrics().values()) == {0}
