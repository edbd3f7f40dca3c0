"""Tests that a law of flights sees whole episodes in the vectorized actor."""

import numpy as np
import pytest

from tests.acting import runs, saving_test
from tests.reference import flight_laws as reference

pytestmark = pytest.mark.usefixtures('shared_functions')


def test_the_jump_start_counts_the_returns_of_whole_episodes(agents):
  agent, variables = agents('bt:flight_law=jump_start')
  player = saving_test.Player(agent, variables[0], seed=0)
  player.play(200)
  rows = [[] for _ in range(runs.N)]
  for _, finished in player.seen:
    for row in finished:
      rows[row['environment']].append(row)
  law = player.actor._policy._state.core.flight.law
  counted = 0
  for i, own in enumerate(rows):
    # The law counts an episode when the next one starts.
    own = own[: int(law.episodes[i])]
    share, mean_length = reference.jump_start_shares(
      [row['episode_return'] for row in own],
      [row['episode_length'] for row in own],
      rate=0.1,
      tolerance=0.25,
      window=5,
    )[-1]
    np.testing.assert_allclose(law.share[i], share, rtol=1e-4)
    np.testing.assert_allclose(law.mean_length[i], mean_length, rtol=1e-4)
    assert own[0]['flight_share'] == 1
    assert all(row['flights'] <= 1 for row in own)
    counted += len(own)
  assert counted > 3 * runs.N
