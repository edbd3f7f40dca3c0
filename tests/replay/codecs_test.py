"""Tests that both codecs return every sequence through a real server."""

import numpy as np
import pytest

from tests.replay import episodes

P, T = episodes.PERIOD, episodes.LENGTH


def collect(sampler, wanted):
  """Samples until each of the wanted markers has been found."""
  found = {}
  for _ in range(100):
    sample = next(sampler)
    for index, marker in enumerate(sample.batch.recurrent_state.hidden[:, 0]):
      found[float(marker)] = sample.batch, index
    if set(found) == set(wanted):
      return found
  raise AssertionError(f'Found {len(found)} of {len(wanted)} sequences.')


@pytest.mark.parametrize('codec', ('blocks', 'tensors'))
@pytest.mark.parametrize('sizes', [(4, 1), (1, 3, 3, True), (2, 3)])
def test_every_sequence_arrives(make_replay, sizes, codec):
  replay = make_replay(episodes.make_layout(*sizes, codec=codec))
  sink = replay.sink()
  rng = np.random.default_rng(sizes[0])
  wanted = {}
  for num_steps in (3, 1, P, P + 1, T, T + 1, 2 * T + 3):
    episode = episodes.make_episode(
      rng, num_steps, replay.layout, truncated=num_steps % 2 == 0
    )
    episodes.play(episode, sink)
    for start in episodes.starts(episode):
      # The recurrent state of its first step identifies a sequence.
      marker = float(episode.steps[start].recurrent_state.hidden[0])
      wanted[marker] = episode, start
  replay.writers[0].flush()
  assert replay.info().current_size == len(wanted)

  found = collect(replay.sampler(), wanted)
  for marker, (batch, index) in found.items():
    episodes.assert_is_sequence(batch, index, *wanted[marker], replay.layout)
