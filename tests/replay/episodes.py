"""Random episodes and slow reference checks of their sequences."""

from typing import NamedTuple

import jax
import numpy as np

from bt_acme import config as config_lib
from bt_acme.core import transition, types
from bt_acme.replay import blocks, compression, fields, sequences

PERIOD, LENGTH = 4, 12  # P and T: three blocks per sequence.


def make_config(**changes):
  settings = {
    'trace_length': LENGTH,
    'sequence_period': PERIOD,
    'max_replay_size': 1000,
    'min_replay_size': 1,
    'samples_per_insert': 1.0,
    'initial_priority': 'largest',
  }
  return config_lib.ReplayConfig(**{**settings, **changes})


def make_layout(
  num_stacked=4, channels=1, lstm_size=3, has_proposals=False, **changes
):
  others = (5, 6, channels), num_stacked, lstm_size, has_proposals
  return fields.ReplayLayout(make_config(**changes), *others)


class Written:
  """A sink, and the blocks that it writes with their priorities."""

  def __init__(self, layout=None, largest_priority=None, **changes):
    self.layout = layout or make_layout(**changes)
    self.blocks, self.priorities = [], []
    self.sink = sink_of(self.layout, self._write, largest_priority)

  def _write(self, block, priority):
    self.blocks.append(block)
    self.priorities.append(priority)

  def sequences(self):
    """Returns the blocks of each written sequence."""
    return [block.sequence for block in self.blocks if block.sequence]


def sink_of(layout, write, largest_priority=None):
  """Returns a sink whose sequences have the given priority, or 1."""
  return sequences.SequenceSink(
    config_lib.R2D2Config(
      replay=layout.config, learner=config_lib.LearnerConfig(batch_size=1)
    ),
    layout,
    write,
    num_actions=18,
    largest_priority=largest_priority,
  )


class Episode(NamedTuple):
  """The transitions of an episode and the outcome of the last one."""

  steps: list[transition.Transition]
  final: tuple[np.ndarray, int, float]  # observation, prev_action, prev_reward


def make_episode(rng, num_steps, layout, *, truncated=False):
  """Returns an episode of random values, so that mix-ups are detected."""
  num_stacked = layout.num_stacked
  frames = rng.integers(
    1, 256, size=(num_steps + num_stacked, *layout.frame), dtype=np.uint8
  )
  steps = []
  prev_action, prev_reward = types.NO_ACTION, 0.0
  for t in range(num_steps):
    action = int(rng.integers(18))
    reward = float(np.float32(rng.normal()))
    is_last = t == num_steps - 1
    steps.append(
      transition.Transition(
        observation=np.concatenate(frames[t : t + num_stacked], axis=-1),
        prev_action=prev_action,
        prev_reward=prev_reward,
        recurrent_state=types.LSTMState(
          *rng.normal(size=(2, layout.lstm_size)).astype(np.float32)
        ),
        action=action,
        choice=int(rng.integers(19)),
        source=int(rng.integers(3)),
        probability=float(np.float32(rng.uniform(0.1, 1))),
        reward=reward,
        discount=0.0 if is_last and not truncated else 1.0,
        q_values=rng.normal(size=19).astype(np.float32),
        proposal=t % 18,
      )
    )
    prev_action, prev_reward = action, reward
  final = np.concatenate(frames[num_steps:], axis=-1)
  return Episode(steps, (final, prev_action, prev_reward))


def play(episode, sink):
  """Passes an episode to a sink."""
  for step in episode.steps:
    sink.add(step)
  sink.end_episode(*episode.final)


def starts(episode, period=PERIOD):
  """Returns the first steps of the expected sequences of an episode."""
  num_blocks = -(-len(episode.steps) // period)
  num_sequences = max(num_blocks - LENGTH // period, 0) + 1
  return [period * i for i in range(num_sequences)]


def assert_is_sequence(batch, index, episode, start, layout):
  """Compares one column of a batch with T steps of an episode."""
  steps = episode.steps[start : start + LENGTH]
  num_steps, end = len(steps), start + len(steps)
  ends = end == len(episode.steps)
  last = episode.final if ends else episode.steps[end][:3]
  seen = [*(step[:3] for step in steps), last]
  columns = {
    'valid': [1] * num_steps,
    'prev_action': [prev_action for _, prev_action, _ in seen],
    'prev_reward': [prev_reward for *_, prev_reward in seen],
  }
  stored = {field.name for field in fields.stored(layout)}
  for name in stored - {*columns, 'frames'}:
    columns[name] = [getattr(step, name) for step in steps]
  for name, values in columns.items():
    found = getattr(batch, name)[:, index]
    expected = np.zeros(LENGTH + name.startswith('prev'), found.dtype)
    expected[: len(values)] = values
    np.testing.assert_array_equal(found, expected, err_msg=name)
  num_stacked, frames = layout.num_stacked, batch.frames[:, index]
  assert frames.shape == (num_stacked + LENGTH, *layout.frame)
  for t, (observation, *_) in enumerate(seen):
    stack = np.concatenate(frames[t : t + num_stacked], axis=-1)
    np.testing.assert_array_equal(stack, observation)
  assert not frames[num_steps + num_stacked :].any()
  for state, expected in zip(
    batch.recurrent_state, steps[0].recurrent_state, strict=True
  ):
    np.testing.assert_array_equal(state[index], expected)


def assert_is_built(episode, written):
  """Plays an episode and compares all of its sequences; returns them."""
  layout = written.layout
  written.blocks.clear()
  play(episode, written.sink)
  sequences = [x.sequence_data() for x in written.blocks if x.sequence]
  batch = blocks.empty_batch(layout, len(sequences))
  for array in jax.tree.leaves(batch):
    array.fill(77)
  sequence_decoder = compression.SequenceDecoder(layout)
  for index, sequence in enumerate(sequences):
    sequence_decoder.decode_into(*sequence, batch=batch, index=index)
  first_steps = starts(episode, layout.config.sequence_period)
  assert batch.action.shape == (LENGTH, len(first_steps))
  for index, start in enumerate(first_steps):
    assert_is_sequence(batch, index, episode, start, layout)
  return batch
