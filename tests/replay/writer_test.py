"""Tests that a writer waits for the learner, but not forever."""

import threading
import time

import numpy as np
import reverb

from bt_acme.replay import writer
from tests.launch import scripts
from tests.replay import episodes


def overfill(replay, **kwargs):
  """Writes until the table blocks; returns the thread and its errors."""
  sink, errors = replay.sink(**kwargs), []
  episode = episodes.make_episode(np.random.default_rng(0), 2, replay.layout)

  def work():
    try:
      for _ in range(200):
        episodes.play(episode, sink)
    except ConnectionError as error:
      errors.append(error)

  thread = threading.Thread(target=work, daemon=True)
  thread.start()
  scripts.wait_until(lambda: replay.info().current_size > 0)
  sizes = []

  def settled():
    sizes.append(replay.info().current_size)
    time.sleep(0.1)
    return len(sizes) > 3 and len(set(sizes[-3:])) == 1

  scripts.wait_until(settled)
  assert thread.is_alive() and sizes[-1] < 100
  return thread, errors


def test_actors_wait_for_the_learner_and_can_be_stopped(make_replay):
  replay = make_replay(batch_size=4)
  waits = []
  thread, errors = overfill(replay, on_wait=lambda: waits.append(1))
  # A waiting writer still calls `on_wait`, which can send heartbeats.
  scripts.wait_until(lambda: len(waits) > 1)
  size = replay.info().current_size
  sampler = replay.sampler()
  next(sampler)
  scripts.wait_until(lambda: replay.info().current_size > size)
  sampler.stop()
  replay.writers[0].stop()
  thread.join(5)
  assert not thread.is_alive() and not errors


def test_waiting_for_an_unresponsive_server_ends(make_replay, monkeypatch):
  replay = make_replay(batch_size=4)
  monkeypatch.setattr(writer, '_PROBE_S', 1)
  thread, errors = overfill(replay)

  def server_info(timeout):
    raise reverb.DeadlineExceededError('')

  monkeypatch.setattr(replay.client, 'server_info', server_info)
  thread.join(5)
  assert not thread.is_alive()
  assert 'does not respond' in str(errors[0])
