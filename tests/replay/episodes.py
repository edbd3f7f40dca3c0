"""Random episodes and slow reference checks of their sequences."""

import time
from typing import Callable, List, NamedTuple, Tuple

import jax
import numpy as np

from bt_acme import config as config_lib
from bt_acme.core import transition, types
from bt_acme.replay import blocks, decoder, fields, sequence_builder

PERIOD, LENGTH = 4, 12  # P and T: three blocks per sequence.


def make_config(**changes) -> config_lib.ReplayConfig:
  settings = {
    'trace_length': LENGTH,
    'sequence_period': PERIOD,
    'max_replay_size': 1000,
    'min_replay_size': 1,
    'samples_per_insert': 1.0,
  }
  return config_lib.ReplayConfig(**{**settings, **changes})


def make_shapes(
  num_stacked=4, channels=1, lstm_size=3, has_proposals=False
) -> fields.ReplayShapes:
  return fields.ReplayShapes(
    (5, 6, channels), num_stacked, lstm_size, has_proposals
  )


def make_builder(shapes=None, **settings):
  """Returns a builder, its settings and its shapes."""
  config, shapes = make_config(**settings), shapes or make_shapes()
  return sequence_builder.SequenceBuilder(config, shapes), config, shapes


class Episode(NamedTuple):
  """The transitions of an episode and the outcome of the last one."""

  steps: List[transition.Transition]
  final: Tuple[np.ndarray, int, float]  # observation, prev_action, prev_reward


def make_episode(
  rng: np.random.Generator,
  num_steps: int,
  shapes: fields.ReplayShapes,
  *,
  truncated: bool = False,
) -> Episode:
  """Returns an episode of random values, so that mix-ups are detected."""
  num_stacked = shapes.num_stacked
  frames = rng.integers(
    1, 256, size=(num_steps + num_stacked, *shapes.frame), dtype=np.uint8
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
          *rng.normal(size=(2, shapes.lstm_size)).astype(np.float32)
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


def play(episode: Episode, target) -> list:
  """Passes an episode to a builder or a sink; returns all results."""
  results = [target.add(step) for step in episode.steps]
  return [*results, target.end_episode(*episode.final)]


def starts(episode: Episode, period: int = PERIOD) -> List[int]:
  """Returns the first steps of the expected sequences of an episode."""
  num_blocks = -(-len(episode.steps) // period)
  num_sequences = max(num_blocks - LENGTH // period, 0) + 1
  return [period * i for i in range(num_sequences)]


def assert_is_sequence(
  batch: types.SequenceBatch,
  index: int,
  episode: Episode,
  start: int,
  shapes: fields.ReplayShapes,
) -> None:
  """Compares one column of a batch with T steps of an episode."""
  num_stacked, (height, width, channels) = shapes.num_stacked, shapes.frame
  assert batch.frames.shape[0] == num_stacked + LENGTH
  assert batch.frames.shape[2:] == (height, width, channels)
  assert batch.prev_action.shape[0] == LENGTH + 1
  assert batch.action.shape[0] == LENGTH
  steps = episode.steps[start : start + LENGTH]
  for t, step in enumerate(steps):
    _assert_sees(batch, index, t, step[:3], num_stacked)
    assert batch.action[t, index] == step.action
    assert batch.choice[t, index] == step.choice
    assert batch.source[t, index] == step.source
    assert batch.probability[t, index] == np.float32(step.probability)
    assert batch.reward[t, index] == np.float32(step.reward)
    assert batch.discount[t, index] == step.discount
    assert batch.valid[t, index] == 1
    if shapes.has_proposals:
      assert batch.proposal[t, index] == step.proposal
  num_steps = len(steps)
  end = start + num_steps
  ends = end == len(episode.steps)
  seen = episode.final if ends else episode.steps[end][:3]
  _assert_sees(batch, index, num_steps, seen, num_stacked)
  assert not batch.frames[num_steps + num_stacked :, index].any()
  for name in ('prev_action', 'prev_reward'):
    assert not getattr(batch, name)[num_steps + 1 :, index].any()
  for name in ('action', 'choice', 'source', 'probability', 'reward'):
    assert not getattr(batch, name)[num_steps:, index].any()
  for name in ('discount', 'valid'):
    assert not getattr(batch, name)[num_steps:, index].any()
  if shapes.has_proposals:
    assert not batch.proposal[num_steps:, index].any()
  state = steps[0].recurrent_state
  np.testing.assert_array_equal(
    batch.recurrent_state.hidden[index], state.hidden
  )
  np.testing.assert_array_equal(batch.recurrent_state.cell[index], state.cell)


def _assert_sees(batch, index, t, seen, num_stacked) -> None:
  observation, prev_action, prev_reward = seen
  stack = np.concatenate(batch.frames[t : t + num_stacked, index], axis=-1)
  np.testing.assert_array_equal(stack, observation)
  assert batch.prev_action[t, index] == prev_action
  assert batch.prev_reward[t, index] == np.float32(prev_reward)


def _decode_all(
  episode: Episode,
  builder: sequence_builder.SequenceBuilder,
  config: config_lib.ReplayConfig,
  shapes: fields.ReplayShapes,
) -> types.SequenceBatch:
  """Plays an episode and decodes its sequences into a batch of garbage."""
  sequence_decoder = decoder.SequenceDecoder(config, shapes)
  window = decoder.BlockWindow(config)
  finished = [block for block in play(episode, builder) if block is not None]
  sequences = [window.add(block) for block in finished]
  sequences = [sequence for sequence in sequences if sequence is not None]
  batch = blocks.empty_batch(config, shapes, len(sequences))
  for array in jax.tree.leaves(batch):
    array.fill(77)
  for index, sequence in enumerate(sequences):
    sequence_decoder.decode_into(*sequence, batch=batch, index=index)
  return batch


def assert_is_built(
  episode: Episode,
  builder: sequence_builder.SequenceBuilder,
  config: config_lib.ReplayConfig,
  shapes: fields.ReplayShapes,
) -> types.SequenceBatch:
  """Plays an episode and compares all of its sequences; returns them."""
  batch = _decode_all(episode, builder, config, shapes)
  first_steps = starts(episode, config.sequence_period)
  assert batch.action.shape == (LENGTH, len(first_steps))
  for index, start in enumerate(first_steps):
    assert_is_sequence(batch, index, episode, start, shapes)
  return batch


def wait_until(condition: Callable[[], bool], timeout_s: float = 10.0) -> None:
  deadline = time.monotonic() + timeout_s
  while not condition():
    assert time.monotonic() < deadline
    time.sleep(0.01)
