"""Tests which steps a sink writes, with which priorities, or rejects."""

import numpy as np
import pytest

from bt_acme.core import types
from tests.replay import episodes

P, T = episodes.PERIOD, episodes.LENGTH


def test_reset_discards_an_unfinished_episode():
  written = episodes.Written()
  rng = np.random.default_rng(2)
  for step in episodes.make_episode(rng, 2 * T + 2, written.layout).steps:
    written.sink.add(step)
  written.sink.reset()
  episode = episodes.make_episode(rng, 2, written.layout)
  written.sink.end_episode(*episode.final)  # Without a step.
  assert not written.blocks[2 * T // P :]
  episodes.assert_is_built(episode, written)


@pytest.mark.parametrize(
  'num_steps, burn_in, period, lengths, num_blocks',
  [
    (3, 4, 8, [3], 1),  # The episode starts here, so all steps are trained.
    (8, 4, 8, [8], 1),
    (12, 4, 8, [8], 1),  # Four additional steps, all in the burn-in.
    (13, 4, 8, [8, 5], 2),
    (16, 4, 8, [8, 8], 2),
    (7, 6, 4, [7], 2),
    (10, 6, 4, [8], 2),  # The six steps from the fifth on are the burn-in.
    (11, 6, 4, [8, 7], 3),
    (14, 6, 4, [8, 8], 3),
    (15, 6, 4, [8, 8, 7], 4),
    # A trace of a period always trains the end.
    (9, 4, 4, [8, 5], 3),
  ],
)
def test_a_sequence_without_trained_steps_is_omitted(
  num_steps, burn_in, period, lengths, num_blocks
):
  written = episodes.Written(
    burn_in_length=burn_in, trace_length=8 - burn_in, sequence_period=period
  )
  rng = np.random.default_rng(0)
  episode = episodes.make_episode(rng, num_steps, written.layout)
  for _ in range(2):  # The next episode is complete.
    episodes.play(episode, written.sink)
    assert lengths == [
      sum(len(block.steps['action']) for block in sequence)
      for sequence in written.sequences()
    ]
    assert len(written.blocks) == num_blocks
    written.blocks.clear()


_REJECTED = [
  ({'observation': np.zeros((5, 6, 3), np.uint8)}, r'uint8 \(5, 6, 4\)'),
  ({'observation': np.zeros((5, 6, 4))}, r'uint8 \(5, 6, 4\)'),
  ({'proposal': types.NO_ACTION}, 'proposal is missing: with kickstart'),
]
_NOT_STACKED = np.random.default_rng(1).integers(256, size=(5, 6, 4), dtype='B')


@pytest.mark.parametrize(
  'change, message, num_before',
  [
    *((*rejected, num) for rejected in _REJECTED for num in (0, P)),
    ({'observation': _NOT_STACKED}, 'num_stacked=4', P),
  ],
)
def test_a_step_that_does_not_fit_is_rejected(change, message, num_before):
  written = episodes.Written(episodes.make_layout(has_proposals=True))
  episode = episodes.make_episode(
    np.random.default_rng(0), num_before + 1, written.layout
  )
  for step in episode.steps[:num_before]:
    written.sink.add(step)
  with pytest.raises(ValueError, match=message):
    written.sink.add(episode.steps[num_before]._replace(**change))


def test_priorities_are_those_of_the_sequences():
  priorities = iter(range(1, 5))
  written = episodes.Written(largest_priority=lambda: next(priorities))
  rng = np.random.default_rng(0)
  wanted = []
  for num_steps in (2, T + P + 1):
    episode = episodes.make_episode(rng, num_steps, written.layout)
    episodes.play(episode, written.sink)
    wanted += [
      [step.reward for step in episode.steps[start : start + T]]
      for start in episodes.starts(episode)
    ]
  assert len(wanted) == 4
  assert wanted == [
    [reward for part in sequence for reward in part.steps['reward']]
    for sequence in written.sequences()
  ]
  # Blocks that do not complete a sequence are written too.
  assert [len(block.sequence) for block in written.blocks] == [1, 0, 0, 3, 3, 3]
  assert written.priorities == [1, 0, 0, 2, 3, 4]
