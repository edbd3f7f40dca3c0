"""Tests statistics by environment, independent of groups."""

import json
import threading

import numpy as np
import pytest

from bt_acme.acting import statistics_store
from bt_acme.core.intrinsic import reward_statistics as reward_lib


def make(values):
  """Returns statistics with these values in all fields."""
  return reward_lib.IntrinsicStatistics(*[np.asarray(values)] * 5)


def test_groups_of_any_size():
  store = statistics_store.StatisticsStore()
  store.restore({})  # Without an intrinsic reward, the store stays empty.
  assert store.get(0, 1) is None and store.merged() is None
  assert store.save() == {}
  store.put(2, make(np.float32([3, 4])))
  assert store.get(1, 2) is None
  store.put(np.int64(0), make([1, 2]))
  found = store.get(1, 2)
  assert isinstance(found, reward_lib.IntrinsicStatistics)
  np.testing.assert_array_equal(found, make([2, 3]))
  assert found.error_mean.dtype == np.float64
  assert store.merged() == make([1.0, 2.0, 3.0, 4.0]).merged()
  store.put(3, make([0]))
  assert store.merged() == make([1.0, 2.0, 3.0, 0.0]).merged()


@pytest.mark.parametrize('group_size', [1, 3, 12])
def test_restores_saved_statistics(group_size):
  store = statistics_store.StatisticsStore()
  given = reward_lib.IntrinsicStatistics(*np.random.random([5, 12]))
  store.put(0, given)
  saved = json.loads(json.dumps(store.save()))
  assert list(saved['11']) == list(reward_lib.IntrinsicStatistics._fields)
  if group_size > 1:  # Older checkpoints have one entry for each group.
    saved = {
      str(i): {
        name: column[i : i + group_size].tolist()
        for name, column in given._asdict().items()
      }
      for i in reversed(range(0, 12, group_size))
    }
  restored = statistics_store.StatisticsStore()
  restored.put(20, given)  # `restore` replaces these statistics.
  restored.restore(saved)
  np.testing.assert_array_equal(restored.get(0, 12), given)
  assert restored.get(20, 1) is None
  # Environments are merged in order of their indices, not of the file.
  assert restored.merged() == given.merged()


def test_actors_can_report_while_a_checkpoint_is_written():
  store = statistics_store.StatisticsStore()
  stop = threading.Event()

  def report():
    first = 0
    while not stop.is_set():
      store.put(first, make([1.0, 2.0]))
      first = (first + 2) % 64

  thread = threading.Thread(target=report)
  thread.start()
  try:
    for _ in range(200):
      assert all(
        value['error_mean'] in ([1.0], [2.0]) for value in store.save().values()
      )
      store.merged()
  finally:
    stop.set()
    thread.join()
