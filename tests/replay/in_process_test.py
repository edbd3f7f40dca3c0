"""Tests the replay without Reverb."""

from unittest import mock

import jax
import numpy as np

from bt_acme.replay import in_process as in_process_replay
from tests.replay import episodes

P, T = episodes.PERIOD, episodes.LENGTH


def make_replay(num_items, *, priorities=None, seed=0, **changes):
  """Returns a replay of short episodes; item i has the recurrent state i."""
  written = episodes.Written(**changes)
  replay = in_process_replay.InProcessReplay(written.layout, seed=seed)
  rng = np.random.default_rng(0)
  for i in range(num_items):
    episode = episodes.make_episode(rng, 2, written.layout)
    first = episode.steps[0]
    state = jax.tree.map(
      lambda x, i=i: np.full_like(x, i), first.recurrent_state
    )
    episode.steps[0] = first._replace(recurrent_state=state)
    episodes.play(episode, written.sink)
    block = written.blocks[-1]
    replay.write(block, 1.0 if priorities is None else priorities[i])
  return replay


def numbers(sample):
  return sample.batch.recurrent_state.hidden[:, 0].astype(int)


def test_overlapping_sequences_share_blocks():
  written = episodes.Written()
  rng = np.random.default_rng(0)
  episode = episodes.make_episode(rng, T + P, written.layout)
  episodes.play(episode, written.sink)
  one, other = (x.sequence_data()[0] for x in written.blocks if x.sequence)
  assert len(one) == len(other) == 3
  assert one[1] is other[0] and one[2] is other[1]


def test_sampling_follows_priorities():
  priorities = np.array([0.0, 1.0, 2.0, 5.0])
  replay = make_replay(4, priorities=priorities, priority_exponent=0.5)
  expected = priorities**0.5 / np.sum(priorities**0.5)
  sample = replay.sample(4000)
  counts = np.bincount(numbers(sample), minlength=4)
  np.testing.assert_allclose(counts / 4000, expected, atol=0.04)
  np.testing.assert_allclose(
    sample.probabilities, expected[numbers(sample)], rtol=1e-12
  )
  replay.update_priorities(np.arange(4, dtype=np.uint64), [3.0, 0, 0, 0])
  assert set(numbers(replay.sample(50))) == {0}


def test_sampling_with_all_priorities_zero_is_uniform():
  sample = make_replay(3, priorities=np.zeros(3)).sample(100)
  assert set(numbers(sample)) == {0, 1, 2}
  np.testing.assert_array_equal(sample.probabilities, 1 / 3)


def test_a_draw_that_is_rounded_to_the_end_of_the_range_has_an_item():
  # There is no number between 0 and this weight, so half of the draws are
  # rounded up.
  smallest = float(np.nextafter(0.0, 1.0))
  replay = make_replay(1, priorities=[smallest], priority_exponent=1.0)
  np.testing.assert_array_equal(numbers(replay.sample(50)), np.zeros(50))


def test_same_seed_same_samples():
  one, two, other = (
    make_replay(20, seed=seed).sample(64).keys for seed in (3, 3, 4)
  )
  np.testing.assert_array_equal(one, two)
  assert (one != other).any()


def test_the_oldest_are_evicted_first_and_their_updates_are_ignored():
  replay = make_replay(7, max_replay_size=5)
  sample = replay.sample(200)
  assert sample.table_size == len(replay) == 5
  assert set(numbers(sample)) == {2, 3, 4, 5, 6}
  np.testing.assert_array_equal(sample.keys, numbers(sample))
  evicted, stored = [0, 1], [2, 3, 4, 5]
  replay.update_priorities(np.uint64(evicted + stored), [9.0, 9.0, 0, 0, 0, 0])
  assert set(numbers(replay.sample(50))) == {6}


def test_samples_per_insert_limits_sampling():
  replay = make_replay(9, min_replay_size=10, samples_per_insert=2.0)
  assert replay.num_allowed(4) == 0
  expected = 1, 0, 1, 1, 2
  for num_allowed in expected:
    replay.write(mock.Mock(), 0.0)  # Never sampled.
    assert replay.num_allowed(4) == num_allowed
    if num_allowed == 1 and replay.num_inserts == 10:
      replay.sample(4)
