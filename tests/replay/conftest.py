"""A replay with a real server for each test that asks for one."""

import pytest


@pytest.fixture
def make_replay():
  """Makes `reverb_replay.Replay`s, and stops them after the test."""
  pytest.importorskip('reverb', reason='needs the full environment')
  from tests.replay import reverb_replay

  replays = []

  def make(*args, **kwargs):
    replays.append(reverb_replay.Replay(*args, **kwargs))
    return replays[-1]

  yield make
  for replay in replays:
    replay.close()
