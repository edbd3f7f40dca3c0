"""Tests that steps pass through the adder and the sink into the replay."""

import dm_env
import numpy as np
import pytest

from bt_acme.core import types
from bt_acme.replay import sinks
from tests.replay import episodes

P, T = episodes.PERIOD, episodes.LENGTH


def test_one_marked_step_from_adder_to_batch(make_replay):
  replay = make_replay(episodes.make_shapes(num_stacked=2))
  sequence_adder = sinks.SequenceAdder(replay.sink())

  def observation(t):  # Frames t - 1 and t.
    return np.stack(
      [np.full((5, 6), 100 + max(t - 1, 0)), np.full((5, 6), 100 + t)], axis=-1
    ).astype(np.uint8)

  num_steps, marked = T, 5
  sequence_adder.add_first(dm_env.restart(observation(0)))
  for t in range(num_steps):
    last = t == num_steps - 1
    make_step = dm_env.termination if last else dm_env.transition
    next_timestep = make_step(reward=1000.0 + t, observation=observation(t + 1))
    sequence_adder.add(
      np.int32(10 + t),
      next_timestep,
      {
        'prev_action': 9 + t if t else types.NO_ACTION,
        'prev_reward': 499.5 + t if t else 0.0,
        'recurrent_state': types.LSTMState(
          np.full(3, t, np.float32), np.full(3, -t, np.float32)
        ),
        'choice': np.int32(18 if t == marked else 10 + t),
        'source': types.FLIGHT if t == marked else types.OWN,
        'probability': 0.5 if t == marked else 0.25,
        'reward': 500.5 + t,  # Intrinsic: the task's reward is not stored.
        'q_values': np.zeros(19, np.float32),
      },
    )
  sample = next(replay.sampler(batch_size=2))
  batch = sample.batch
  assert sample.keys.shape == sample.probabilities.shape == (2,)
  assert sample.keys.dtype == np.uint64 and sample.table_size == 1
  assert batch.frames.shape == (2 + T, 2, 5, 6, 1)
  for b in range(2):
    stack = batch.frames[marked : marked + 2, b, 0, 0, 0]
    np.testing.assert_array_equal(stack, [104, 105])
    assert batch.prev_action[marked, b] == 14
    assert batch.prev_reward[marked, b] == 504.5
    assert batch.action[marked, b] == 15
    assert batch.choice[marked, b] == 18
    assert np.flatnonzero(batch.source[:, b]).tolist() == [marked]
    assert np.flatnonzero(batch.probability[:, b] == 0.5).tolist() == [marked]
    assert batch.reward[marked, b] == 505.5
    np.testing.assert_array_equal(batch.reward[:, b], 500.5 + np.arange(T))
    np.testing.assert_array_equal(batch.discount[:, b], [1] * (T - 1) + [0])
    np.testing.assert_array_equal(batch.valid[:, b], 1)
    assert batch.prev_action[0, b] == types.NO_ACTION
    assert batch.prev_reward[0, b] == 0
    assert batch.prev_action[T, b] == 10 + T - 1
    assert batch.prev_reward[T, b] == 500.5 + T - 1
    np.testing.assert_array_equal(batch.frames[-2:, b, 0, 0, 0], [111, 112])
    np.testing.assert_array_equal(batch.recurrent_state.hidden[b], 0)


def test_reset_discards_unwritten_steps(make_replay):
  replay = make_replay()
  sequence_adder = sinks.SequenceAdder(replay.sink())
  rng = np.random.default_rng(0)
  unfinished = episodes.make_episode(rng, 2 * P, replay.shapes)
  whole = episodes.make_episode(rng, 2, replay.shapes)
  for episode, num_steps in ((unfinished, 2 * P - 1), (whole, 2)):
    sequence_adder.add_first(dm_env.restart(episode.steps[0].observation))
    observations = [step.observation for step in episode.steps]
    observations.append(episode.final[0])
    for t, step in enumerate(episode.steps[:num_steps]):
      last = t == len(episode.steps) - 1
      make_step = dm_env.termination if last else dm_env.transition
      next_timestep = make_step(
        reward=step.reward, observation=observations[t + 1]
      )
      extras = step._asdict()
      del extras['reward']  # The agent maximizes the task's reward.
      sequence_adder.add(step.action, next_timestep, extras)
    sequence_adder.reset()
  replay.writers[0].flush()
  assert replay.info().current_size == 1
  sample = next(replay.sampler(batch_size=1))
  episodes.assert_is_sequence(sample.batch, 0, whole, 0, replay.shapes)
  with pytest.raises(ValueError, match='add_first'):
    sequence_adder.add(0, dm_env.restart(None), {})


def test_initial_priority_is_given_the_steps_of_the_sequence():
  builder, _, shapes = episodes.make_builder()
  asked, written = [], []

  def initial_priority(block):
    asked.append(block)
    return float(len(asked))

  sink = sinks.SequenceSink(
    builder,
    lambda *block_and_priority: written.append(block_and_priority),
    initial_priority=initial_priority,
  )
  rng = np.random.default_rng(0)
  wanted = []
  for num_steps in (2, T + P + 1):
    episode = episodes.make_episode(rng, num_steps, shapes)
    episodes.play(episode, sink)
    wanted += [
      [step.reward for step in episode.steps[start : start + T]]
      for start in episodes.starts(episode)
    ]
  assert len(wanted) == 4
  assert wanted == [
    [reward for part in block.sequence for reward in part['reward']]
    for block in asked
  ]
  # Blocks that do not complete a sequence are written too.
  complete = [len(block.sequence) for block, _ in written]
  assert complete == [1, 0, 0, 3, 3, 3]
  assert [p for block, p in written if block.sequence] == [1, 2, 3, 4]
