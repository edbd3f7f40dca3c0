"""Fixture that provides replays with a real Reverb server."""

import pytest


@pytest.fixture
def make_replay():
  """Creates `reverb_replay.Replay`s and closes them after the test."""
  pytest.importorskip('reverb', reason='needs the full environment')
  from tests.replay import reverb_replay

  replays = []

  def make(*args, **kwargs):
    replays.append(reverb_replay.Replay(*args, **kwargs))
    return replays[-1]

  yield make
  for replay in replays:
    replay.close()
