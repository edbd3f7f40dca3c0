import threading

import jax
import numpy as np
import pytest

from bt_acme.replay import blocks
from tests.replay import episodes

P, T = episodes.PERIOD, episodes.LENGTH
LENGTHS = (1, 3, P - 1, P, P + 1, T - 1, T, T + 1, T + P, 2 * T + 3)


def sequences_of(episode, builder, config, shapes):
  """Plays an episode and decodes its sequences over a batch of garbage."""
  decoder = blocks.SequenceDecoder(config, shapes)
  written, items = [], []
  for block in episodes.play(episode, builder):
    if block is not None:
      written.append(block)
      if block.item_blocks:
        items.append(written[-block.item_blocks :])
  batch = blocks.empty_batch(config, shapes, len(items))
  for array in jax.tree.leaves(batch):
    array.fill(77)
  for index, item in enumerate(items):
    decoder.decode_into(
      [block.payload for block in item],
      item[0].recurrent_state,
      batch=batch,
      index=index,
    )
  return batch


def assert_all_sequences(episode, builder, config, shapes):
  batch = sequences_of(episode, builder, config, shapes)
  starts = episodes.starts(episode)
  assert batch.action.shape == (T, len(starts))
  for index, start in enumerate(starts):
    episodes.assert_is_sequence(batch, index, episode, start, shapes)


@pytest.mark.parametrize('truncated', (False, True))
@pytest.mark.parametrize('num_steps', LENGTHS)
@pytest.mark.parametrize('num_stacked,channels', ((4, 1), (1, 3), (3, 2)))
def test_sequences_hold_their_steps(
  num_stacked, channels, num_steps, truncated
):
  config = episodes.make_config()
  shapes = episodes.make_shapes(num_stacked, channels)
  episode = episodes.make_episode(
    np.random.default_rng(num_steps), num_steps, shapes, truncated=truncated
  )
  builder = blocks.SequenceBuilder(config, shapes)
  assert_all_sequences(episode, builder, config, shapes)


def test_random_episodes_one_after_another():
  config, shapes = episodes.make_config(), episodes.make_shapes()
  builder = blocks.SequenceBuilder(config, shapes)
  rng = np.random.default_rng(0)
  for _ in range(60):
    episode = episodes.make_episode(
      rng, int(rng.integers(1, 4 * T)), shapes, truncated=rng.random() < 0.5
    )
    assert_all_sequences(episode, builder, config, shapes)


def test_truncation_keeps_discount_and_final_observation():
  config, shapes = episodes.make_config(), episodes.make_shapes()
  rng = np.random.default_rng(1)
  for truncated, discount in ((True, 1.0), (False, 0.0)):
    episode = episodes.make_episode(rng, 3, shapes, truncated=truncated)
    builder = blocks.SequenceBuilder(config, shapes)
    batch = sequences_of(episode, builder, config, shapes)
    np.testing.assert_array_equal(batch.valid[:, 0], [1] * 3 + [0] * (T - 3))
    assert batch.discount[2, 0] == discount
    np.testing.assert_array_equal(
      np.concatenate(batch.frames[3:7, 0], axis=-1), episode.final[0]
    )


def test_reset_drops_an_unfinished_episode():
  config, shapes = episodes.make_config(), episodes.make_shapes()
  builder = blocks.SequenceBuilder(config, shapes)
  rng = np.random.default_rng(2)
  unfinished = episodes.make_episode(rng, 2 * T + 2, shapes)
  for step in unfinished.steps:
    builder.add(*step)
  builder.reset()
  episode = episodes.make_episode(rng, 2, shapes)
  assert_all_sequences(episode, builder, config, shapes)


def test_episode_without_a_step_writes_nothing():
  config, shapes = episodes.make_config(), episodes.make_shapes()
  builder = blocks.SequenceBuilder(config, shapes)
  episode = episodes.make_episode(np.random.default_rng(0), 1, shapes)
  assert builder.end_episode(*episode.final) is None


def test_without_lstm():
  config, shapes = episodes.make_config(), episodes.make_shapes(lstm_size=0)
  episode = episodes.make_episode(np.random.default_rng(0), T + 1, shapes)
  builder = blocks.SequenceBuilder(config, shapes)
  assert_all_sequences(episode, builder, config, shapes)


def test_one_block_a_sequence():
  config = episodes.make_config(sequence_period=T)
  shapes = episodes.make_shapes()
  episode = episodes.make_episode(np.random.default_rng(0), 2 * T + 1, shapes)
  builder = blocks.SequenceBuilder(config, shapes)
  batch = sequences_of(episode, builder, config, shapes)
  assert batch.action.shape == (T, 3)
  for index, start in enumerate((0, T, 2 * T)):
    episodes.assert_is_sequence(batch, index, episode, start, shapes)


def test_observations_that_are_no_stacks_are_refused():
  config, shapes = episodes.make_config(), episodes.make_shapes(num_stacked=4)
  builder = blocks.SequenceBuilder(config, shapes)
  rng = np.random.default_rng(0)
  episode = episodes.make_episode(rng, P + 1, shapes)
  unrelated = rng.integers(256, size=(5, 6, 4), dtype=np.uint8)
  for step in episode.steps[:-1]:
    builder.add(*step)
  with pytest.raises(ValueError, match='num_stacked=4'):
    builder.add(unrelated, *episode.steps[-1][1:])


@pytest.mark.parametrize(
  'observation', (np.zeros((5, 6, 3), np.uint8), np.zeros((5, 6, 4)))
)
def test_observation_of_another_kind_is_refused(observation):
  shapes = episodes.make_shapes()
  builder = blocks.SequenceBuilder(episodes.make_config(), shapes)
  step = episodes.make_episode(np.random.default_rng(0), 1, shapes).steps[0]
  with pytest.raises(ValueError, match=r'uint8 \(5, 6, 4\)'):
    builder.add(observation, *step[1:])


def test_codec_in_many_threads():
  rng = np.random.default_rng(0)
  data = rng.integers(2, size=(8, 100_000), dtype=np.uint8)
  payloads = [None] * 8

  def encode(i):
    payloads[i] = blocks.encode_block(data[i])

  threads = [threading.Thread(target=encode, args=(i,)) for i in range(8)]
  for thread in threads:
    thread.start()
  for thread in threads:
    thread.join()
  assert payloads == [blocks.encode_block(row) for row in data]
