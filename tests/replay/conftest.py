"""Fixture that provides replays with a real Reverb server."""

import pytest

from tests.replay import reverb_replay


@pytest.fixture
def make_replay():
  """Creates `reverb_replay.Replay`s and closes them after the test."""
  replays = []

  def make(*args, **kwargs):
    replays.append(reverb_replay.Replay(*args, **kwargs))
    return replays[-1]

  yield make
  for replay in replays:
    replay.close()
