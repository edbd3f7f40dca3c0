"""Tests that steps pass through the adder and the sink into the replay."""

import dm_env
import numpy as np
import pytest

from bt_acme.replay import sinks
from tests.replay import episodes

P, T = episodes.PERIOD, episodes.LENGTH


def test_an_episode_arrives_and_reset_discards_unwritten_steps(make_replay):
  replay = make_replay()
  sequence_adder = sinks.SequenceAdder(replay.sink())
  rng = np.random.default_rng(0)
  unfinished = episodes.make_episode(rng, 2 * P, replay.shapes)
  whole = episodes.make_episode(rng, T, replay.shapes)
  for episode, num_steps in ((unfinished, 2 * P - 1), (whole, T)):
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
