"""From compressed blocks to the sequences of a batch."""

import collections
from typing import Deque, List, Optional, Sequence, Tuple

import numpy as np
import zstandard

from bt_acme import config as config_lib
from bt_acme.core import types
from bt_acme.replay import blocks, fields


class SequenceDecoder:
  """Writes sequences into batches; one thread only."""

  def __init__(
    self, config: config_lib.ReplayConfig, shapes: fields.ReplayShapes
  ):
    layout = blocks.BlockLayout(config, shapes)
    self._period = config.sequence_period
    # The memory is reused, because fresh pages would cost more than
    # decompressing.
    self._data = np.empty(layout.num_bytes, np.uint8)
    block = layout.views(self._data)
    # A field's name, its rows in the decompressed block, and how many of them
    # the next block repeats.
    self._fields = [
      (field.name, block[field.name], field.overlap(shapes))
      for field in fields.FIELDS
    ]
    self._decompressor = zstandard.ZstdDecompressor()

  def decode_into(
    self,
    payloads: Sequence[bytes],
    recurrent_state: np.ndarray,
    *,
    batch: types.SequenceBatch,
    index: int,
  ) -> None:
    """Writes one sequence into a batch.

    Args:
      payloads: 1 to K consecutive blocks; where there are fewer than K the
        episode has ended, and the rest of the sequence is zeros.
      recurrent_state: float32 [2, lstm_size], the state before the first block.
      batch: the batch that is written into.
      index: the sequence's place in the batch, in [0, B).

    Raises:
      ValueError: if a block is of another size.
      zstandard.ZstdError: if a block is damaged.
    """
    for i, payload in enumerate(payloads):
      self._decompress(payload)
      start, end = i * self._period, (i + 1) * self._period
      for name, rows, overlap in self._fields:
        # The overlap with the block before is written again, unchanged.
        getattr(batch, name)[start : end + overlap, index] = rows
    end = len(payloads) * self._period
    for name, _, overlap in self._fields:
      getattr(batch, name)[end + overlap :, index] = 0
    batch.recurrent_state.hidden[index] = recurrent_state[0]
    batch.recurrent_state.cell[index] = recurrent_state[1]

  def _decompress(self, payload: bytes) -> None:
    """Fills the memory with a block; without all of it, it holds others."""
    size = zstandard.frame_content_size(payload)
    if size == self._data.size:
      size = self._decompressor.stream_reader(payload).readinto(self._data)
    if size != self._data.size:
      raise ValueError(
        f'A block of the replay has {size:,} bytes and not '
        f'{self._data.size:,}: it is incomplete, or was written with other '
        'settings.'
      )


class BlockWindow:
  """The last K blocks of one environment, of which sequences are made."""

  def __init__(self, config: config_lib.ReplayConfig):
    self._blocks: Deque[blocks.FinishedBlock] = collections.deque(
      maxlen=config.blocks_per_sequence
    )

  def state(self) -> List[Tuple[bytes, np.ndarray]]:
    """Returns payload and recurrent state of each block."""
    return [(block.payload, block.recurrent_state) for block in self._blocks]

  def restore(self, state: List[Tuple[bytes, np.ndarray]]) -> None:
    """Goes on from a state."""
    self._blocks.clear()
    # Which sequence a block completes is asked only when it is new.
    self._blocks.extend(blocks.FinishedBlock(*own, ()) for own in state)

  def add(
    self, block: blocks.FinishedBlock
  ) -> Optional[Tuple[List[bytes], np.ndarray]]:
    """Takes the next block.

    Returns:
      Payloads of the sequence that it completes and the recurrent state before
      them, as `SequenceDecoder` takes them; None if it completes none.
    """
    self._blocks.append(block)
    if not block.item_blocks:
      return None
    members = list(self._blocks)[-block.item_blocks :]
    return [member.payload for member in members], members[0].recurrent_state
