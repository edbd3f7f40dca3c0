"""Tests which steps the builder accepts, rejects and discards."""

import numpy as np
import pytest

from bt_acme.core import types
from tests.replay import episodes

P, T = episodes.PERIOD, episodes.LENGTH


def test_reset_discards_an_unfinished_episode():
  builder, config, shapes = episodes.make_builder()
  rng = np.random.default_rng(2)
  unfinished = episodes.make_episode(rng, 2 * T + 2, shapes)
  for step in unfinished.steps:
    builder.add(step)
  builder.reset()
  episode = episodes.make_episode(rng, 2, shapes)
  episodes.assert_is_built(episode, builder, config, shapes)


def test_episode_without_a_step_writes_nothing():
  builder, _, shapes = episodes.make_builder()
  episode = episodes.make_episode(np.random.default_rng(0), 1, shapes)
  assert builder.end_episode(*episode.final) is None


def test_a_missing_proposal_is_rejected():
  builder, _, shapes = episodes.make_builder(
    episodes.make_shapes(has_proposals=True)
  )
  step = episodes.make_episode(np.random.default_rng(0), 2, shapes).steps[0]
  builder.add(step)
  builder.reset()
  with pytest.raises(ValueError, match='proposal is missing: with kickstart'):
    builder.add(step._replace(proposal=types.NO_ACTION))


def _build(num_steps, **settings):
  """Returns the lengths of an episode's sequences and its number of blocks."""
  builder, _, shapes = episodes.make_builder(**settings)
  episode = episodes.make_episode(np.random.default_rng(0), num_steps, shapes)
  finished = [x for x in episodes.play(episode, builder) if x is not None]
  lengths = [
    sum(len(block['action']) for block in x.sequence)
    for x in finished
    if x.sequence
  ]
  return lengths, len(finished)


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
  settings = {'burn_in_length': burn_in, 'trace_length': 8 - burn_in}
  built = _build(num_steps, sequence_period=period, **settings)
  assert built == (lengths, num_blocks)


def test_the_next_episode_is_complete_after_an_omitted_sequence():
  builder, config, shapes = episodes.make_builder(
    burn_in_length=T - 1, trace_length=1
  )
  rng = np.random.default_rng(3)
  first = episodes.make_episode(rng, T + 1, shapes)
  assert episodes.play(first, builder)[-1] is None
  for num_steps in (2, T + P):
    episode = episodes.make_episode(rng, num_steps, shapes)
    episodes.assert_is_built(episode, builder, config, shapes)


def test_observations_that_are_not_stacks_are_rejected():
  builder, _, shapes = episodes.make_builder()
  rng = np.random.default_rng(0)
  episode = episodes.make_episode(rng, P + 1, shapes)
  unrelated = rng.integers(256, size=(5, 6, 4), dtype=np.uint8)
  for step in episode.steps[:-1]:
    builder.add(step)
  with pytest.raises(ValueError, match='num_stacked=4'):
    builder.add(episode.steps[-1]._replace(observation=unrelated))


@pytest.mark.parametrize(
  'observation', (np.zeros((5, 6, 3), np.uint8), np.zeros((5, 6, 4)))
)
def test_observation_of_another_shape_or_dtype_is_rejected(observation):
  builder, _, shapes = episodes.make_builder()
  step = episodes.make_episode(np.random.default_rng(0), 1, shapes).steps[0]
  with pytest.raises(ValueError, match=r'uint8 \(5, 6, 4\)'):
    builder.add(step._replace(observation=observation))
