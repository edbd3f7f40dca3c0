"""What the replay stores: compressed blocks of consecutive steps.

A *block* is one period of P steps of one environment, compressed as a whole; a
sequence is K consecutive blocks, so that overlapping sequences share them.
Observations are kept as single frames, each once: a block begins with the
whole stack of its first observation, and ends with the observation that its
last step led to. The recurrent state is kept once a block, before its first
step, as NGU keeps "the initial recurrent state" (Badia et al. 2020, App. F).

Neither blocks nor sequences cross an episode's end: an episode's last block is
padded with zeros, and a sequence of an episode shorter than K blocks has fewer
of them.
"""

import threading
from typing import Any, Dict, Mapping, NamedTuple, Optional, Tuple

import numpy as np
import zstandard

from bt_acme import config as config_lib
from bt_acme.core import types
from bt_acme.replay import fields

_COMPRESSION_LEVEL = 1

# What one block's transitions consist of besides observations and recurrent
# states: from the name of a field of `Transition` to an array with a row for
# each step, in the dtype in which the field is stored, if it is.
StepValues = Mapping[str, np.ndarray]


class FinishedBlock(NamedTuple):
  """A block ready to be written.

  Attributes:
    payload: the compressed block.
    recurrent_state: float32 [2, lstm_size], hidden and cell before its start.
    sequence: the steps of the sequence that this block completes, one entry
      for each of its blocks, this one last. Empty if it completes none.
    next_q_values: float32 [A'], the actor's values of the observation that the
      last step led to; None at an episode's end, where the actor does not act.
  """

  payload: bytes
  recurrent_state: np.ndarray
  sequence: Tuple[StepValues, ...]
  next_q_values: Optional[np.ndarray] = None

  @property
  def item_blocks(self) -> int:
    """Blocks of the sequence that this block completes; 0 if it does not."""
    return len(self.sequence)


class Sample(NamedTuple):
  """A batch of B sequences out of the replay.

  Attributes:
    batch: the sequences, as NumPy arrays.
    keys: uint64 [B], the keys under which priorities are updated.
    probabilities: float64 [B], the probability with which each was drawn.
    table_size: the number of sequences in the replay.
  """

  batch: types.SequenceBatch
  keys: np.ndarray
  probabilities: np.ndarray
  table_size: int


def empty_batch(
  config: config_lib.ReplayConfig,
  shapes: fields.ReplayShapes,
  batch_size: int,
) -> types.SequenceBatch:
  """Makes uninitialized arrays for B sequences, which a decoder fills."""
  arrays: Dict[str, Any] = {}
  for field in fields.FIELDS:
    rows = config.sequence_length + field.overlap(shapes)
    shape = (rows, batch_size, *field.row_shape(shapes))
    arrays[field.name] = np.empty(shape, field.dtype)
  state: Any = np.empty((2, batch_size, shapes.lstm_size), np.float32)
  return types.SequenceBatch(
    **arrays, recurrent_state=types.LSTMState(hidden=state[0], cell=state[1])
  )


class BlockLayout:
  """The place of each field in the bytes of a block.

  Attributes:
    num_bytes: the size of an uncompressed block.
  """

  def __init__(
    self, config: config_lib.ReplayConfig, shapes: fields.ReplayShapes
  ):
    self.num_bytes = 0
    self._places: Dict[str, Tuple[slice, np.dtype, Tuple[int, ...]]] = {}
    # The widest types come first, which keeps all of them aligned.
    for field in sorted(
      fields.FIELDS, key=lambda field: -np.dtype(field.dtype).itemsize
    ):
      dtype: np.dtype = np.dtype(field.dtype)
      rows = config.sequence_period + field.overlap(shapes)
      shape = (rows, *field.row_shape(shapes))
      end = self.num_bytes + int(np.prod(shape)) * dtype.itemsize
      self._places[field.name] = slice(self.num_bytes, end), dtype, shape
      self.num_bytes = end

  def views(self, data: np.ndarray) -> Dict[str, np.ndarray]:
    """Returns the fields of an uncompressed block by name, without a copy.

    Args:
      data: uint8 [num_bytes], the bytes of the block.

    Returns:
      Arrays as in `types.SequenceBatch`, but with the rows of P steps and
      without the axis of the batch.
    """
    return {
      name: data[place].view(dtype).reshape(shape)
      for name, (place, dtype, shape) in self._places.items()
    }


class _Compressor(threading.local):
  """One compressor a thread: it is costly to make and cannot be shared."""

  def __init__(self) -> None:
    self.compress = zstandard.ZstdCompressor(level=_COMPRESSION_LEVEL).compress


_compressor = _Compressor()


def encode_block(data: np.ndarray) -> bytes:
  """Compresses the bytes of a block."""
  return _compressor.compress(data.data)
