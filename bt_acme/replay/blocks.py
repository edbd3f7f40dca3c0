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

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from bt_acme.core import types
from bt_acme.replay import fields

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
    steps: the values of the block's steps.
    sequence: the blocks of the sequence that this block completes, this block
      last. Empty if no sequence is completed.
    next_q_values: float32 [A'], the actor's Q-values of the observation after
      the last step; None at the end of an episode, where the actor does not
      act.
  """

  payload: bytes
  recurrent_state: np.ndarray
  steps: StepValues
  sequence: tuple['FinishedBlock', ...] = ()
  next_q_values: np.ndarray | None = None

  def sequence_data(self) -> tuple[tuple[bytes, ...], np.ndarray]:
    """Returns the sequence as inputs for `SequenceDecoder.decode_into`."""
    payloads = tuple(block.payload for block in self.sequence)
    return payloads, self.sequence[0].recurrent_state


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
  layout: fields.ReplayLayout, batch_size: int
) -> types.SequenceBatch:
  """Returns uninitialized arrays for B sequences, to be filled by a decoder."""
  arrays: dict[str, Any] = {}
  for field in fields.stored(layout):
    rows = layout.config.sequence_length + field.overlap
    shape = (rows, batch_size, *field.row_shape)
    arrays[field.name] = np.empty(shape, field.dtype)
  state: Any = np.empty((2, batch_size, layout.lstm_size), np.float32)
  return types.SequenceBatch(
    **arrays, recurrent_state=types.LSTMState(hidden=state[0], cell=state[1])
  )


def block_dtype(layout: fields.ReplayLayout) -> np.dtype:
  """Returns the structured dtype of the bytes of an uncompressed block.

  Its fields are those of `types.SequenceBatch`, but with the rows of P steps
  and without the axis of the batch. The widest types come first, so that all
  fields are aligned.
  """
  by_width = sorted(
    fields.stored(layout), key=lambda field: -np.dtype(field.dtype).itemsize
  )
  return np.dtype(
    [
      (
        field.name,
        field.dtype,
        (layout.config.sequence_period + field.overlap, *field.row_shape),
      )
      for field in by_width
    ]
  )
