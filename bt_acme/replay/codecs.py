"""How a sequence lies in a Reverb table: `ReplayConfig.codec`.

`blocks`: 1 to K compressed blocks, which overlapping sequences share, and the
recurrent state before the first. Only this package reads them.

`tensors`: what dm-acme's `SequenceAdder` writes for its R2D2, so that any Acme
learner can take it from `acme.datasets.make_reverb_dataset`. A sequence of T
steps is one `acme.adders.reverb.base.Step` of T + 1 rows, as behind
`acme.wrappers.ObservationActionRewardWrapper`:

  observation: OAR; `observation` uint8 [T + 1, H, W, C * S], whole stacks;
    `action` int32 and `reward` float32 [T + 1], those before, `NO_ACTION` and 0
    at an episode's start.
  action: int32 [T + 1], the executed one; reward, discount: float32 [T + 1].
  start_of_episode: bool [T + 1].
  extras: `core_state`, hk.LSTMState of float32 [1, lstm_size], before row 0;
    `choice` int32, `source` uint8, `probability` and `valid` float32, [T + 1],
    as in `types.SequenceBatch`.

Of row T only the observation is known; the rest, and all rows behind an
episode's end, are zeros. Overlapping sequences share nothing here.
"""

from typing import Any, Callable, NamedTuple, Sequence

import haiku as hk
import numpy as np
import reverb
import tensorflow as tf
import tree
from acme.adders.reverb import base
from acme.wrappers import observation_action_reward

from bt_acme import config as config_lib
from bt_acme.core import types
from bt_acme.replay import blocks

_EXTRAS = ('choice', 'source', 'probability', 'valid')

# (writer, block) -> the trajectory that the block completes, None without one.
Encoder = Callable[[reverb.TrajectoryWriter, blocks.FinishedBlock], Any]
# (columns of a sampled trajectory, batch that is written into, its column).
Decoder = Callable[[Sequence[Any], types.SequenceBatch, int], None]


class Codec(NamedTuple):
  """One way to keep sequences.

  Attributes:
    signature: tf.TensorSpecs of one item of the table.
    cells_per_item: that a writer must keep for its next item.
    make_encoder: for one environment.
    make_decoder: for one thread.
  """

  signature: Any
  cells_per_item: int
  make_encoder: Callable[[], Encoder]
  make_decoder: Callable[[], Decoder]


def make_codec(
  config: config_lib.ReplayConfig, shapes: types.ReplayShapes
) -> Codec:
  """The codec that the configuration names."""
  make = {'blocks': _make_blocks, 'tensors': _make_tensors}[config.codec]
  return make(config, shapes)


def _make_blocks(
  config: config_lib.ReplayConfig, shapes: types.ReplayShapes
) -> Codec:
  def encode(
    writer: reverb.TrajectoryWriter, block: blocks.FinishedBlock
  ) -> Any:
    # An array of bytes would lose zeros at its end.
    payload = np.array(block.payload, dtype=object)
    writer.append({'blocks': payload, 'recurrent_state': block.recurrent_state})
    if not block.item_blocks:
      return None
    history = writer.history
    return {
      'blocks': history['blocks'][-block.item_blocks :],
      'recurrent_state': history['recurrent_state'][-block.item_blocks],
    }

  def make_decoder() -> Decoder:
    decoder = blocks.SequenceDecoder(config, shapes)

    def decode(
      columns: Sequence[Any], batch: types.SequenceBatch, index: int
    ) -> None:
      payloads, recurrent_state = columns  # In the order of their names.
      decoder.decode_into(payloads, recurrent_state, batch=batch, index=index)

    return decode

  return Codec(
    signature={
      'blocks': tf.TensorSpec([None], tf.string),
      'recurrent_state': tf.TensorSpec([2, shapes.lstm_size], tf.float32),
    },
    cells_per_item=config.blocks_per_sequence,
    make_encoder=lambda: encode,
    make_decoder=make_decoder,
  )


def _plain(batch: types.SequenceBatch, num_stacked: int) -> base.Step:
  """The first sequence of a batch as plain tensors."""
  length, frames = len(batch.valid), batch.frames[:, 0]
  stacks = np.concatenate(
    [frames[i : i + length + 1] for i in range(num_stacked)], axis=-1
  )
  # Behind the one that the last step leads to. Others still show its frames.
  stacks[int(batch.valid[:, 0].sum()) + 1 :] = 0

  def rows(steps: np.ndarray) -> np.ndarray:
    return np.append(steps[:, 0], np.zeros(1, steps.dtype))

  return base.Step(
    observation=observation_action_reward.OAR(
      stacks, batch.prev_action[:, 0], batch.prev_reward[:, 0]
    ),
    action=rows(batch.action),
    reward=rows(batch.reward),
    discount=rows(batch.discount),
    start_of_episode=batch.prev_action[:, 0] == types.NO_ACTION,
    extras={
      'core_state': hk.LSTMState(*batch.recurrent_state),
      **{name: rows(getattr(batch, name)) for name in _EXTRAS},
    },
  )


def _make_tensors(
  config: config_lib.ReplayConfig, shapes: types.ReplayShapes
) -> Codec:
  num_stacked, channels = shapes.num_stacked, shapes.frame[-1]

  def empty() -> types.SequenceBatch:
    arrays = blocks.empty_batch(config, shapes, batch_size=1)
    return tree.map_structure(np.zeros_like, arrays)

  signature = tree.map_structure(
    lambda x: tf.TensorSpec(x.shape, x.dtype), _plain(empty(), num_stacked)
  )

  def make_encoder() -> Encoder:
    window = blocks.BlockWindow(config)
    decoder = blocks.SequenceDecoder(config, shapes)
    batch = empty()

    def encode(
      writer: reverb.TrajectoryWriter, block: blocks.FinishedBlock
    ) -> Any:
      sequence = window.add(block)
      if sequence is None:
        return None
      decoder.decode_into(*sequence, batch=batch, index=0)
      writer.append(_plain(batch, num_stacked))
      return tree.map_structure(lambda column: column[-1], writer.history)

    return encode

  def decode(
    columns: Sequence[Any], batch: types.SequenceBatch, index: int
  ) -> None:
    step = tree.unflatten_as(signature, columns)
    stacks = step.observation.observation
    for i in range(num_stacked - 1):  # Older than the first row.
      frame = stacks[0, ..., i * channels : (i + 1) * channels]
      batch.frames[i, index] = frame
    batch.frames[num_stacked - 1 :, index] = stacks[..., -channels:]
    batch.prev_action[:, index] = step.observation.action
    batch.prev_reward[:, index] = step.observation.reward
    for name in ('action', 'reward', 'discount'):
      getattr(batch, name)[:, index] = getattr(step, name)[:-1]
    for name in _EXTRAS:
      getattr(batch, name)[:, index] = step.extras[name][:-1]
    state = step.extras['core_state']
    batch.recurrent_state.hidden[index] = state.hidden[0]
    batch.recurrent_state.cell[index] = state.cell[0]

  return Codec(
    signature=signature,
    cells_per_item=1,
    make_encoder=make_encoder,
    make_decoder=lambda: decode,
  )
