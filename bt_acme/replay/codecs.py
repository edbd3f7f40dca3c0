"""Storage formats of sequences in Reverb, selected by `ReplayConfig.codec`.

`blocks`: 1 to K compressed blocks, which overlapping sequences share, and the
recurrent state before the first block. Only this package can read them; their
bytes are defined by `blocks.block_dtype` and `fields.stored`.

`tensors`: the format that dm-acme's `SequenceAdder` writes for R2D2, so that
any Acme learner can read it with `acme.datasets.make_reverb_dataset`. A
sequence of T steps is one `acme.adders.reverb.base.Step` with T + 1 rows and
the observations of `acme.wrappers.ObservationActionRewardWrapper`:

  observation: OAR; `observation` uint8 [T + 1, H, W, C * S], whole stacks;
    `action` int32 and `reward` float32 [T + 1], the previous action and reward;
    `NO_ACTION` and 0 at the start of an episode.
  action: int32 [T + 1], the executed action.
  reward, discount: float32 [T + 1].
  start_of_episode: bool [T + 1].
  extras: `core_state`, hk.LSTMState of float32 [1, lstm_size], before row 0;
    every other field of `types.SequenceBatch` under its own name, [T + 1]:
    `choice` int32, `source` uint8, `probability` and `valid` float32, and
    `proposal` int32 if it is stored.

Only the observation of row T is known. The rest of row T and all rows after the
end of an episode are zeros. In this format, overlapping sequences share no
data.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import haiku as hk
import numpy as np
import reverb
import tensorflow as tf
import tree
from acme.adders.reverb import base
from acme.wrappers import observation_action_reward

from bt_acme.core import frame_stacking, types
from bt_acme.replay import blocks, compression, fields

# (writer, block) -> the trajectory that the block completes, or None.
Encoder = Callable[[reverb.TrajectoryWriter, blocks.FinishedBlock], Any]
# (*columns of a sampled trajectory, batch to write into, index in the batch).
Decoder = Callable[..., None]


class Codec(NamedTuple):
  """A storage format of sequences.

  Attributes:
    signature: the tf.TensorSpecs of one item of the table.
    cells_per_item: the number of cells that a writer must keep alive for its
      next item.
    make_encoder: a function that creates the encoder of one environment.
    make_decoder: a function that creates the decoder of one thread.
  """

  signature: Any
  cells_per_item: int
  make_encoder: Callable[[], Encoder]
  make_decoder: Callable[[], Decoder]


def make_codec(layout: fields.ReplayLayout) -> Codec:
  """Returns the codec selected by `ReplayConfig.codec`."""
  codecs = {'blocks': _make_blocks, 'tensors': _make_tensors}
  return codecs[layout.config.codec](layout)


def _encode_blocks(
  writer: reverb.TrajectoryWriter, block: blocks.FinishedBlock
) -> Any:
  # An array with a dtype of bytes would drop trailing zeros.
  payload = np.array(block.payload, dtype=object)
  writer.append({'blocks': payload, 'recurrent_state': block.recurrent_state})
  num_blocks = len(block.sequence)
  if not num_blocks:
    return None
  history = writer.history
  return {
    'blocks': history['blocks'][-num_blocks:],
    'recurrent_state': history['recurrent_state'][-num_blocks],
  }


def _make_blocks(layout: fields.ReplayLayout) -> Codec:
  return Codec(
    signature={
      'blocks': tf.TensorSpec([None], tf.string),
      'recurrent_state': tf.TensorSpec([2, layout.lstm_size], tf.float32),
    },
    cells_per_item=layout.config.blocks_per_sequence,
    make_encoder=lambda: _encode_blocks,
    # The columns are sorted by name, like its arguments.
    make_decoder=lambda: compression.SequenceDecoder(layout).decode_into,
  )


def _to_step(
  batch: types.SequenceBatch, layout: fields.ReplayLayout
) -> base.Step:
  """Returns the first sequence of a batch as plain tensors."""
  stacks = frame_stacking.stack_frames(batch.frames[:, 0], layout.num_stacked)
  # Stacks after the last observation would repeat its frames.
  stacks[int(batch.valid[:, 0].sum()) + 1 :] = 0
  scalars: dict[str, np.ndarray] = {}
  for field in fields.stored(layout):
    if not field.row_shape:
      rows = getattr(batch, field.name)[:, 0]
      scalars[field.name] = np.zeros(len(stacks), rows.dtype)
      scalars[field.name][: len(rows)] = rows
  prev_action = scalars.pop('prev_action')
  return base.Step(
    observation=observation_action_reward.OAR(
      stacks, prev_action, scalars.pop('prev_reward')
    ),
    action=scalars.pop('action'),
    reward=scalars.pop('reward'),
    discount=scalars.pop('discount'),
    start_of_episode=prev_action == types.NO_ACTION,
    extras={'core_state': hk.LSTMState(*batch.recurrent_state), **scalars},
  )


def _make_tensors(layout: fields.ReplayLayout) -> Codec:
  def empty() -> types.SequenceBatch:
    arrays = blocks.empty_batch(layout, batch_size=1)
    return tree.map_structure(np.zeros_like, arrays)

  signature = tree.map_structure(
    lambda x: tf.TensorSpec(x.shape, x.dtype),
    _to_step(empty(), layout),
  )

  def make_encoder() -> Encoder:
    decoder = compression.SequenceDecoder(layout)
    batch = empty()

    def encode(
      writer: reverb.TrajectoryWriter, block: blocks.FinishedBlock
    ) -> Any:
      if not block.sequence:
        return None
      decoder.decode_into(*block.sequence_data(), batch=batch, index=0)
      writer.append(_to_step(batch, layout))
      return tree.map_structure(lambda column: column[-1], writer.history)

    return encode

  def decode(*columns: Any, batch: types.SequenceBatch, index: int) -> None:
    step = tree.unflatten_as(signature, columns)
    num_stacked, channels = layout.num_stacked, layout.frame[-1]
    stacks = step.observation.observation
    for i in range(num_stacked - 1):  # Frames older than the newest of row 0.
      frame = stacks[0, ..., i * channels : (i + 1) * channels]
      batch.frames[i, index] = frame
    batch.frames[num_stacked - 1 :, index] = stacks[..., -channels:]
    scalars = {
      'prev_action': step.observation.action,
      'prev_reward': step.observation.reward,
      'action': step.action,
      'reward': step.reward,
      'discount': step.discount,
      **step.extras,
    }
    state = scalars.pop('core_state')
    for name, column in scalars.items():
      rows = getattr(batch, name)
      rows[:, index] = column[: len(rows)]
    batch.recurrent_state.hidden[index] = state.hidden[0]
    batch.recurrent_state.cell[index] = state.cell[0]

  return Codec(
    signature=signature,
    cells_per_item=1,
    make_encoder=make_encoder,
    make_decoder=lambda: decode,
  )
