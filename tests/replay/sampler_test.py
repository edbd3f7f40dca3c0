"""Tests sampling of the learner's batches from a real server."""

import threading
import time

import numpy as np
import pytest

from bt_acme.replay import table
from tests.replay import episodes


def test_few_batches_are_filled_ahead_and_filled_again(make_replay):
  replay = make_replay()
  episode = episodes.make_episode(np.random.default_rng(0), 3, replay.layout)
  episodes.play(episode, replay.sink())
  sampler = replay.sampler()
  frames = set()
  for _ in range(20):
    sample = next(sampler)
    episodes.assert_is_sequence(sample.batch, 3, episode, 0, replay.layout)
    frames.add(id(sample.batch.frames))
    sampler.release(sample)
    del sample
    time.sleep(0.01)  # The threads fill as many as they may.
  # One is with the learner, two are ready, and two are being filled.
  assert len(frames) <= 5


def test_stop_while_waiting_for_data(make_replay):
  sampler = make_replay().sampler()
  outcomes = []
  consumer = threading.Thread(target=lambda: outcomes.append(list(sampler)))
  consumer.start()
  time.sleep(0.1)
  start = time.monotonic()
  sampler.stop()
  consumer.join(5)
  assert outcomes == [[]]
  assert time.monotonic() - start < 5
  assert not any(
    thread.name.startswith('sampler-') for thread in threading.enumerate()
  )


def test_error_of_a_thread_reaches_the_learner(make_replay, monkeypatch):
  replay = make_replay()
  monkeypatch.setattr(table, 'TABLE', 'another')
  sampler = replay.sampler()
  with pytest.raises(RuntimeError, match='Sampling') as error:
    next(sampler)
  assert 'another' in str(error.value.__cause__)


# Actors and the learner may be several batches apart.
def test_the_learner_can_sample_a_batch_larger_than_the_table(make_replay):
  replay = make_replay(batch_size=4, samples_per_insert=0.4, min_replay_size=2)
  sink = replay.sink()
  rng = np.random.default_rng(0)
  for _ in range(2):
    episodes.play(episodes.make_episode(rng, 2, replay.layout), sink)
  assert next(replay.sampler()).batch.action.shape == (episodes.LENGTH, 4)
