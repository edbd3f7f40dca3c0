"""Compresses blocks, and decodes them into the sequences of a batch."""

import threading
from collections.abc import Sequence

import numpy as np
import zstandard

from bt_acme.core import types
from bt_acme.replay import blocks, fields

_COMPRESSION_LEVEL = 1
# One compressor per thread, because creating one is slow.
_of_thread = threading.local()


def encode_block(data: np.ndarray) -> bytes:
  """Compresses the bytes of a block."""
  if not hasattr(_of_thread, 'compressor'):
    _of_thread.compressor = zstandard.ZstdCompressor(level=_COMPRESSION_LEVEL)
  return _of_thread.compressor.compress(data.data)


class SequenceDecoder:
  """Writes sequences into batches; not thread-safe."""

  def __init__(self, layout: fields.ReplayLayout):
    dtype = blocks.block_dtype(layout)
    self._period = layout.config.sequence_period
    # The memory is reused, because allocating new pages would take longer than
    # decompression.
    self._data = np.empty(dtype.itemsize, np.uint8)
    block = self._data.view(dtype)[0]
    # The name of each field, its rows in the decompressed block, and the number
    # of rows that the next block repeats.
    self._fields = [
      (field.name, block[field.name], field.overlap)
      for field in fields.stored(layout)
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
      payloads: 1 to K consecutive blocks. If there are fewer than K blocks,
        because the episode has ended, the rest of the sequence is zeros.
      recurrent_state: float32 [2, lstm_size], the state before the first block.
      batch: the batch to write into.
      index: the index of the sequence in the batch, in [0, B).

    Raises:
      ValueError: if a block has the wrong size.
      zstandard.ZstdError: if a block is corrupt.
    """
    for i, payload in enumerate(payloads):
      self._decompress(payload)
      start, end = i * self._period, (i + 1) * self._period
      for name, rows, overlap in self._fields:
        # Rows that overlap with the previous block are written twice.
        getattr(batch, name)[start : end + overlap, index] = rows
    end = len(payloads) * self._period
    for name, _, overlap in self._fields:
      getattr(batch, name)[end + overlap :, index] = 0
    batch.recurrent_state.hidden[index] = recurrent_state[0]
    batch.recurrent_state.cell[index] = recurrent_state[1]

  def _decompress(self, payload: bytes) -> None:
    """Decompresses a block into the reused memory.

    Raises:
      ValueError: if the block has the wrong size; otherwise, a part of the
        previous block would remain in the memory.
    """
    size = zstandard.frame_content_size(payload)
    if size == self._data.size:
      size = self._decompressor.stream_reader(payload).readinto(self._data)
    if size != self._data.size:
      raise ValueError(
        f'A block of the replay has {size:,} bytes instead of '
        f'{self._data.size:,}: it is incomplete or was written with other '
        'settings. Use the settings with which the replay was written.'
      )
