"""Tests that actors and the learner may be several batches apart."""

import numpy as np

from tests.replay import episodes

T = episodes.LENGTH


def test_the_learner_can_sample_a_batch_larger_than_the_table(make_replay):
  replay = make_replay(batch_size=4, samples_per_insert=0.4, min_replay_size=2)
  sink = replay.sink()
  rng = np.random.default_rng(0)
  for _ in range(2):
    episodes.play(episodes.make_episode(rng, 2, replay.shapes), sink)
  assert next(replay.sampler()).batch.action.shape == (T, 4)
