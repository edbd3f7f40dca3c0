"""The arrays that the replay stores of each step, every one defined once.

The builder, the bytes of a block, the decoder, both codecs and the learner's
batch derive from `FIELDS`. To store one more value of each step, add a line
here, add the value to `bt_acme.acting.transition.Transition` and the array to
`bt_acme.core.types.SequenceBatch`, and let the actor produce it.

The recurrent state is not a field, because it is stored once per block.
"""

import enum
from typing import NamedTuple, Tuple

import numpy as np


class ReplayShapes(NamedTuple):
  """What the replay must know of the environment and the network.

  Attributes:
    frame: (H, W, C) of one frame of an observation.
    num_stacked: S, the number of frames in an observation [H, W, C * S].
    lstm_size: the size of the stored recurrent state.
  """

  frame: Tuple[int, int, int]
  num_stacked: int
  lstm_size: int


class Rows(enum.Enum):
  """How many rows a field has over N consecutive steps."""

  STEPS = 'N: one for each step'
  SEEN = 'N + 1: what the agent sees before each step and after the last'
  FRAMES = 'N + S: the frames of the first observation, and N newer ones'


class Field(NamedTuple):
  """One array of a block, and of a batch of sequences.

  Attributes:
    name: the name of the array in `SequenceBatch`.
    dtype: the dtype of the array.
    rows: how many there are, and of which shape: rows of `FRAMES` are
      [H, W, C], all others are scalars.
    given: whether `Transition` has the value, under the same name. The builder
      derives the values of all other fields.
  """

  name: str
  dtype: type
  rows: Rows = Rows.STEPS
  given: bool = True

  def overlap(self, shapes: ReplayShapes) -> int:
    """Returns the number of rows that consecutive blocks have in common."""
    return {
      Rows.STEPS: 0,
      Rows.SEEN: 1,
      Rows.FRAMES: shapes.num_stacked,
    }[self.rows]

  def row_shape(self, shapes: ReplayShapes) -> Tuple[int, ...]:
    """Returns the shape of one row."""
    return shapes.frame if self.rows is Rows.FRAMES else ()


FIELDS = (
  Field('prev_action', np.int32, Rows.SEEN),
  Field('prev_reward', np.float32, Rows.SEEN),
  Field('action', np.int32),
  Field('choice', np.int32),
  Field('source', np.uint8),
  Field('probability', np.float32),
  Field('reward', np.float32),
  Field('discount', np.float32),
  Field('valid', np.float32, given=False),
  Field('frames', np.uint8, Rows.FRAMES, given=False),
)
