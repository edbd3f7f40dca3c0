"""Definitions of the arrays that the replay stores for each step.

The sink, the bytes of a block, the decoder, both codecs and the learner's batch
are derived from `stored`. To store an additional value for each step, add a
line here, add the value to `bt_acme.core.transition.Transition` and the array
to `bt_acme.core.types.SequenceBatch`, and let the actor produce it.

The recurrent state is not a field, because it is stored once per block
(`blocks`), of which sequences consist.
"""

from typing import NamedTuple

import numpy as np

from bt_acme import config as config_lib


class ReplayLayout(NamedTuple):
  """What the replay stores: its settings, and the shapes of an agent's data.

  Attributes:
    config: the settings of the replay: its sizes, codec and priorities.
    frame: the shape (H, W, C) of a frame.
    num_stacked: S, the number of frames in an observation [H, W, C * S].
    lstm_size: the size of the stored recurrent state.
    has_proposals: whether each step also has the proposal of a behavior.
  """

  config: config_lib.ReplayConfig
  frame: tuple[int, int, int]
  num_stacked: int
  lstm_size: int
  has_proposals: bool = False


class Field(NamedTuple):
  """An array of a block and of a batch of sequences.

  Attributes:
    name: the name of the array in `SequenceBatch`.
    dtype: the dtype of the array.
    overlap: the number of rows that consecutive blocks share. N consecutive
      steps have this many more rows: one for an input of the agent, which is
      also known after the last step, and S for frames.
    row_shape: the shape of one row; () for scalars.
  """

  name: str
  dtype: type
  overlap: int = 0
  row_shape: tuple[int, ...] = ()


SCALARS = (
  Field('prev_action', np.int32, overlap=1),
  Field('prev_reward', np.float32, overlap=1),
  Field('action', np.int32),
  Field('choice', np.int32),
  Field('source', np.uint8),
  Field('probability', np.float32),
  Field('reward', np.float32),
  Field('discount', np.float32),
  Field('valid', np.float32),
)
# Stored only for agents whose loss uses it (`behavior_transfer.kickstarting`).
PROPOSAL = Field('proposal', np.int32)


def stored(layout: ReplayLayout) -> tuple[Field, ...]:
  """Returns the fields that a replay stores."""
  frames = Field('frames', np.uint8, layout.num_stacked, layout.frame)
  return (*SCALARS, frames, *([PROPOSAL] if layout.has_proposals else []))
