"""The formats in which Reverb stores sequences.

`ReplayConfig.codec` chooses one of two.

`blocks`: 1 to K compressed blocks, which overlapping sequences share, and the
recurrent state before the first. Only this package reads them; their bytes are
defined by `blocks.BlockLayout` and `fields.FIELDS`.

`tensors`: what dm-acme's `SequenceAdder` writes for its R2D2, so that any Acme
learner can take it from `acme.datasets.make_reverb_dataset`. A sequence of T
steps is one `acme.adders.reverb.base.Step` of T + 1 rows, with observations as
`acme.wrappers.ObservationActionRewardWrapper` makes them:

  observation: OAR; `observation` uint8 [T + 1, H, W, C * S], whole stacks;
    `action` int32 and `reward` float32 [T + 1], those before, `NO_ACTION` and 0
    at an episode's start.
  action: int32 [T + 1], the executed one; reward, discount: float32 [T + 1].
  start_of_episode: bool [T + 1].
  extras: `core_state`, hk.LSTMState of float32 [1, lstm_size], before row 0;
    every other field of `types.SequenceBatch` under its name, [T + 1]:
    `choice` int32, `source` uint8, `probability` and `valid` float32.

Of row T only the observation is known. The rest of that row, and all rows after
an episode's end, are zeros. Overlapping sequences share nothing here.
"""

from typing import Any, Callable, Dict, NamedTuple, Sequence

import haiku as hk
import numpy as np
import reverb
import tensorflow as tf
import tree
from acme.adders.reverb import base
from acme.wrappers import observation_action_reward

from bt_acme import config as config_lib
from bt_acme.core import types
from bt_acme.replay import blocks, fields
from bt_acme.replay import decoder as decoder_lib

# (writer, block) -> the trajectory that the block completes; None if it
# completes none.
Encoder = Callable[[reverb.TrajectoryWriter, blocks.FinishedBlock], Any]
# (columns of a sampled trajectory, batch to write into, place in the batch).
Decoder = Callable[[Sequence[Any], types.SequenceBatch, int], None]


class Codec(NamedTuple):
  """One way to keep sequences.

  Attributes:
    signature: the tf.TensorSpecs of one item of the table.
    cells_per_item: how many cells a writer must keep for its next item.
    make_encoder: makes the encoder of one environment.
    make_decoder: makes the decoder of one thread.
  """

  signature: Any
  cells_per_item: int
  make_encoder: Callable[[], Encoder]
  make_decoder: Callable[[], Decoder]


def make_codec(
  config: config_lib.ReplayConfig, shapes: fields.ReplayShapes
) -> Codec:
  """Makes the codec that the configuration names."""
  make = {'blocks': _make_blocks, 'tensors': _make_tensors}[config.codec]
  return make(config, shapes)


def _encode_blocks(
  writer: reverb.TrajectoryWriter, block: blocks.FinishedBlock
) -> Any:
  # An array of dtype bytes would drop zeros at its end.
  payload = np.array(block.payload, dtype=object)
  writer.append({'blocks': payload, 'recurrent_state': block.recurrent_state})
  if not block.item_blocks:
    return None
  history = writer.history
  return {
    'blocks': history['blocks'][-block.item_blocks :],
    'recurrent_state': history['recurrent_state'][-block.item_blocks],
  }


def _make_blocks(
  config: config_lib.ReplayConfig, shapes: fields.ReplayShapes
) -> Codec:
  def make_decoder() -> Decoder:
    decoder = decoder_lib.SequenceDecoder(config, shapes)

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
    make_encoder=lambda: _encode_blocks,
    make_decoder=make_decoder,
  )


def _to_step(batch: types.SequenceBatch, num_stacked: int) -> base.Step:
  """Returns the first sequence of a batch as plain tensors."""
  num_rows, frames = len(batch.valid) + 1, batch.frames[:, 0]
  stacks = np.concatenate(
    [frames[i : i + num_rows] for i in range(num_stacked)], axis=-1
  )
  # Stacks after the one that the last step leads to would repeat its frames.
  stacks[int(batch.valid[:, 0].sum()) + 1 :] = 0
  scalars: Dict[str, np.ndarray] = {}
  for field in fields.FIELDS:
    if field.rows is not fields.Rows.FRAMES:
      rows = getattr(batch, field.name)[:, 0]
      scalars[field.name] = np.zeros(num_rows, rows.dtype)
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


def _scalars_of(step: base.Step) -> Dict[str, np.ndarray]:
  """Returns scalars of plain tensors by their names in a batch, [T + 1]."""
  scalars = {
    'prev_action': step.observation.action,
    'prev_reward': step.observation.reward,
    'action': step.action,
    'reward': step.reward,
    'discount': step.discount,
    **step.extras,
  }
  del scalars['core_state']
  return scalars


def _write_step(
  step: base.Step,
  batch: types.SequenceBatch,
  index: int,
  shapes: fields.ReplayShapes,
) -> None:
  """Writes plain tensors into one place of a batch."""
  num_stacked, channels = shapes.num_stacked, shapes.frame[-1]
  stacks = step.observation.observation
  for i in range(num_stacked - 1):  # Frames older than the newest of row 0.
    frame = stacks[0, ..., i * channels : (i + 1) * channels]
    batch.frames[i, index] = frame
  batch.frames[num_stacked - 1 :, index] = stacks[..., -channels:]
  for name, column in _scalars_of(step).items():
    rows = getattr(batch, name)
    rows[:, index] = column[: len(rows)]
  state = step.extras['core_state']
  batch.recurrent_state.hidden[index] = state.hidden[0]
  batch.recurrent_state.cell[index] = state.cell[0]


def _make_tensors(
  config: config_lib.ReplayConfig, shapes: fields.ReplayShapes
) -> Codec:
  def empty() -> types.SequenceBatch:
    arrays = blocks.empty_batch(config, shapes, batch_size=1)
    return tree.map_structure(np.zeros_like, arrays)

  signature = tree.map_structure(
    lambda x: tf.TensorSpec(x.shape, x.dtype),
    _to_step(empty(), shapes.num_stacked),
  )

  def make_encoder() -> Encoder:
    window = decoder_lib.BlockWindow(config)
    decoder = decoder_lib.SequenceDecoder(config, shapes)
    batch = empty()

    def encode(
      writer: reverb.TrajectoryWriter, block: blocks.FinishedBlock
    ) -> Any:
      sequence = window.add(block)
      if sequence is None:
        return None
      decoder.decode_into(*sequence, batch=batch, index=0)
      writer.append(_to_step(batch, shapes.num_stacked))
      return tree.map_structure(lambda column: column[-1], writer.history)

    return encode

  def decode(
    columns: Sequence[Any], batch: types.SequenceBatch, index: int
  ) -> None:
    step = tree.unflatten_as(signature, columns)
    _write_step(step, batch, index, shapes)

  return Codec(
    signature=signature,
    cells_per_item=1,
    make_encoder=make_encoder,
    make_decoder=lambda: decode,
  )
