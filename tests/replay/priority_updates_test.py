"""Tests updates of priorities in a table of a real server."""

import numpy as np
import pytest

from bt_acme.replay import priority_updates, table
from tests.launch import scripts
from tests.replay import episodes


def test_priorities_reach_the_table(make_replay):
  replay = make_replay(priority_exponent=1.0)
  sink = replay.sink(largest_priority=lambda: 3.0)
  rng = np.random.default_rng(0)
  for _ in range(3):
    episodes.play(episodes.make_episode(rng, 2, replay.layout), sink)
  replay.writers[0].flush()

  def priorities():
    samples = replay.client.sample(table.TABLE, 100, emit_timesteps=False)
    return {sample.info.key: sample.info.priority for sample in samples}

  before = priorities()
  assert list(before.values()) == [3.0] * 3
  updater = priority_updates.PriorityUpdater(replay.client)
  keys = np.array(sorted(before), np.uint64)
  updater.update(keys, np.float32([0.25, 7.0, 0.5]))
  updater.update(keys[:1], np.float32([0.75]))
  expected = dict(zip(keys.tolist(), (0.75, 7, 0.5), strict=True))
  scripts.wait_until(lambda: priorities() == expected)


def test_failed_priority_update_is_reported(make_replay, monkeypatch):
  updater = priority_updates.PriorityUpdater(make_replay().client)
  monkeypatch.setattr(table, 'TABLE', 'another')
  updater.update(np.uint64([1]), np.ones(1))
  scripts.wait_until(lambda: updater._error)
  with pytest.raises(RuntimeError, match='priorities') as error:
    updater.update(np.uint64([1]), np.ones(1))
  assert 'another' in str(error.value.__cause__)
