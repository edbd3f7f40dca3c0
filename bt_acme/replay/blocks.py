"""Compressed blocks of consecutive steps, the storage format of the replay.

A *block* is one period of P steps of one environment, compressed as a whole. A
sequence is K consecutive blocks, so overlapping sequences share blocks.
Observations are stored as single frames, each once: a block starts with the
whole stack of its first observation, and ends with the observation after its
last step. The recurrent state is stored once per block, before its first step,
as NGU stores "the initial recurrent state" (Badia et al. 2020, App. F).

Neither blocks nor sequences extend past the end of an episode: the last block
of an episode is padded with zeros, and an episode shorter than K blocks gives a
sequence with fewer blocks.
"""

import threading
from typing import Any, Dict, Mapping, NamedTuple, Optional, Tuple

import numpy as np
import zstandard

from bt_acme import config as config_lib
from bt_acme.core import types
from bt_acme.replay import fields

_COMPRESSION_LEVEL = 1

# The transitions of one block without observations and recurrent states: maps
# names of fields of `Transition` to arrays with one row per step. A stored
# field has the dtype in which it is stored.
StepValues = Mapping[str, np.ndarray]


class FinishedBlock(NamedTuple):
  """A block that is ready to be written.

  Attributes:
    payload: the compressed block.
    recurrent_state: float32 [2, lstm_size], the hidden and cell state before
      the block.
    sequence: the steps of the sequence that this block completes, one entry
      per block, this block last. Empty if no sequence is completed.
    next_q_values: float32 [A'], the actor's Q-values of the observation after
      the last step; None at the end of an episode, where the actor does not
      act.
  """

  payload: bytes
  recurrent_state: np.ndarray
  sequence: Tuple[StepValues, ...]
  next_q_values: Optional[np.ndarray] = None


class Sample(NamedTuple):
  """A batch of B sequences from the replay.

  Attributes:
    batch: the sequences, as NumPy arrays.
    keys: uint64 [B], the keys for updates of the priorities.
    probabilities: float64 [B], the sampling probabilities of the sequences.
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
  """Returns uninitialized arrays for B sequences, to be filled by a decoder."""
  arrays: Dict[str, Any] = {fields.PROPOSAL.name: ()}
  for field in fields.stored(shapes):
    rows = config.sequence_length + field.overlap(shapes)
    shape = (rows, batch_size, *field.row_shape(shapes))
    arrays[field.name] = np.empty(shape, field.dtype)
  state: Any = np.empty((2, batch_size, shapes.lstm_size), np.float32)
  return types.SequenceBatch(
    **arrays, recurrent_state=types.LSTMState(hidden=state[0], cell=state[1])
  )


class BlockLayout:
  """The position of each field in the bytes of a block.

  Attributes:
    num_bytes: the size of an uncompressed block.
  """

  def __init__(
    self, config: config_lib.ReplayConfig, shapes: fields.ReplayShapes
  ):
    self.num_bytes = 0
    self._places: Dict[str, Tuple[slice, np.dtype, Tuple[int, ...]]] = {}
    # The widest types come first, so that all fields are aligned.
    for field in sorted(
      fields.stored(shapes), key=lambda field: -np.dtype(field.dtype).itemsize
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
  """One compressor per thread, because creating one is slow."""

  def __init__(self) -> None:
    self.compress = zstandard.ZstdCompressor(level=_COMPRESSION_LEVEL).compress


_compressor = _Compressor()


def encode_block(data: np.ndarray) -> bytes:
  """Compresses the bytes of a block."""
  return _compressor.compress(data.data)
