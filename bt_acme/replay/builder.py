"""From the steps of one environment to blocks and sequences."""

import collections
import operator
from typing import Any, Deque, Dict, List, Mapping, Optional, Sequence, Tuple

import numpy as np

from bt_acme import config as config_lib
from bt_acme.acting import transition as transition_lib
from bt_acme.core import types
from bt_acme.replay import blocks, fields

# What is kept of each transition until the sequences that it lies in are
# complete. Observations and states are not: they go into the block at once.
_KEPT = tuple(
  name
  for name in transition_lib.Transition._fields
  if name not in ('observation', 'recurrent_state')
)
_kept_of = operator.itemgetter(
  *(transition_lib.Transition._fields.index(name) for name in _KEPT)
)
_GIVEN = tuple(field for field in fields.FIELDS if field.given)


class SequenceBuilder:
  """Turns the steps of one environment into blocks and sequences.

  An episode of n blocks makes max(n - K, 0) + 1 sequences: one starts every
  period, each step lies in at least one, and none is padding alone. A block is
  finished when the observation after its last step arrives.

  The last sequence of an episode is left out if it would train nothing, because
  it ends within its burn-in and does not start the episode (`core/burn_in.py`).
  This can happen only if the trace is shorter than the period.
  """

  def __init__(
    self, config: config_lib.ReplayConfig, shapes: fields.ReplayShapes
  ):
    self._period = config.sequence_period
    self._burn_in_length = config.burn_in_length
    self._blocks_per_sequence = config.blocks_per_sequence
    self._shapes = shapes
    layout = blocks.BlockLayout(config, shapes)
    self._data = np.zeros(layout.num_bytes, np.uint8)
    self._block = layout.views(self._data)
    self._frames = self._block['frames']
    self._state = np.zeros((2, shapes.lstm_size), np.float32)
    # What is kept of the episode's last K blocks, the newest last.
    self._finished: Deque[blocks.StepValues] = collections.deque(
      maxlen=self._blocks_per_sequence
    )
    self.reset()

  def reset(self) -> None:
    """Drops an episode that has not ended."""
    self._finished.clear()
    # What is kept of the unfinished block, one tuple a step. It is written when
    # the block is finished, because one assignment of a whole column to an
    # array is much cheaper than one for each step.
    self._steps: List[Tuple] = []

  def state(self) -> Dict[str, Any]:
    """Returns the unfinished block, and what is kept of the finished ones."""
    return {
      'data': self._data.copy(),
      'recurrent_state': self._state.copy(),
      'finished': [dict(block) for block in self._finished],
      'steps': list(self._steps),
    }

  def restore(self, state: Dict[str, Any]) -> None:
    """Goes on from a state."""
    self._data[:] = state['data']
    self._state[:] = state['recurrent_state']
    self._finished.clear()
    self._finished.extend(state['finished'])
    self._steps = list(state['steps'])

  def add(
    self, transition: transition_lib.Transition
  ) -> Optional[blocks.FinishedBlock]:
    """Takes the next step of the episode.

    Returns:
      The block that this observation completes, if it does.

    Raises:
      ValueError: if observations are not what `ReplayShapes` says.
    """
    observation = transition.observation
    finished = None
    if len(self._steps) == self._period:
      finished = self._finish(
        observation, transition.prev_action, transition.prev_reward, last=False
      )._replace(next_q_values=transition.q_values)
    if not self._steps:
      self._frames[: self._shapes.num_stacked] = self._unstack(observation)
      self._state[0], self._state[1] = transition.recurrent_state
    self._keep_newest_frame(observation)
    self._steps.append(_kept_of(transition))
    return finished

  def end_episode(
    self, observation: np.ndarray, prev_action: int, prev_reward: float
  ) -> Optional[blocks.FinishedBlock]:
    """Takes what the episode's last step led to, terminal or truncated.

    Args:
      observation: uint8 [H, W, C * S], the episode's final observation.
      prev_action: the action executed in the last step.
      prev_reward: the reward received for it.

    Returns:
      The episode's last block; None for an episode without a step, or if no
      sequence needs the block.
    """
    finished = None
    if self._steps:
      finished = self._finish(observation, prev_action, prev_reward, last=True)
      if not self._trains(finished.sequence):
        finished = None
    self.reset()
    return finished

  def _finish(
    self,
    observation: np.ndarray,
    prev_action: int,
    prev_reward: float,
    *,
    last: bool,
  ) -> blocks.FinishedBlock:
    """Closes the block with the observation after its last step."""
    self._keep_newest_frame(observation)
    self._check_stack(observation)
    columns = dict(zip(_KEPT, zip(*self._steps, strict=True), strict=True))
    self._fill(
      columns, {'prev_action': prev_action, 'prev_reward': prev_reward}
    )
    self._finished.append(
      {name: self._values(name, column) for name, column in columns.items()}
    )
    self._steps = []
    completes = last or len(self._finished) == self._blocks_per_sequence
    return blocks.FinishedBlock(
      payload=blocks.encode_block(self._data),
      recurrent_state=self._state.copy(),
      sequence=tuple(self._finished) if completes else (),
    )

  def _trains(self, sequence: Sequence[blocks.StepValues]) -> bool:
    """Returns whether the learner learns from any step of a sequence."""
    first = sequence[0]['prev_action']
    num_steps = sum(len(block['prev_action']) for block in sequence)
    return first[0] == types.NO_ACTION or num_steps > self._burn_in_length

  def _values(self, name: str, column: Sequence[Any]) -> np.ndarray:
    """One field of the block's steps, out of the block if it is there."""
    if name in self._block:
      return self._block[name][: len(column)].copy()
    return np.array(column)

  def _fill(
    self, columns: Mapping[str, Sequence[Any]], closing: Mapping[str, Any]
  ) -> None:
    """Writes the scalars and the padding; the frames are there already.

    Args:
      columns: the scalars of the block's steps, by the field's name.
      closing: what the agent sees after the last step, by the field's name.
    """
    block, length = self._block, len(self._steps)
    for field in _GIVEN:
      column, rows = columns[field.name], block[field.name]
      if field.rows is fields.Rows.SEEN:
        column = (*column, closing[field.name])
      rows[: len(column)] = column
      rows[len(column) :] = 0
    block['valid'][:length] = 1
    block['valid'][length:] = 0
    self._frames[length + self._shapes.num_stacked :] = 0

  def _keep_newest_frame(self, observation: np.ndarray) -> None:
    """Adds the newest frame of an observation to those of the block."""
    row = self._shapes.num_stacked - 1 + len(self._steps)
    self._frames[row] = observation[..., -self._shapes.frame[-1] :]

  def _check_stack(self, observation: np.ndarray) -> None:
    """Refuses a closing observation whose frames are not the block's last."""
    length, num_stacked = len(self._steps), self._shapes.num_stacked
    stack = self._frames[length : length + num_stacked]
    if not np.array_equal(stack, self._unstack(observation)):
      raise ValueError(
        f'num_stacked={num_stacked} does not describe the observations: a '
        'frame of a stack must be the newest one of an earlier step. Pass '
        'num_stacked=1 for observations that are no stacks.'
      )

  def _unstack(self, observation: np.ndarray) -> np.ndarray:
    """Returns the frames [S, H, W, C] of an observation [H, W, C * S]."""
    height, width, channels = self._shapes.frame
    shape = (height, width, self._shapes.num_stacked, channels)
    expected = (height, width, self._shapes.num_stacked * channels)
    if observation.shape != expected or observation.dtype != np.uint8:
      raise ValueError(
        f'An observation is {observation.dtype} {observation.shape}, but the '
        f'replay was made for uint8 {expected}.'
      )
    return np.moveaxis(observation.reshape(shape), 2, 0)
