"""Converts the steps of an environment into sequences, and writes them.

A sink receives the transitions of `acting.vector_actor`. It writes to a server
(`writer.ReverbWriter`) or to a replay in this process
(`in_process.InProcessReplay`).
"""

import collections
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from bt_acme import config as config_lib
from bt_acme.core import transition as transition_lib
from bt_acme.core import types
from bt_acme.replay import blocks, compression, fields, initial_priority

# Writes a block and the sequence that it completes, if any, with its priority.
# The priority is ignored if no sequence is complete.
WriteBlock = Callable[[blocks.FinishedBlock, float], None]


class SequenceSink:
  """Writes the blocks and sequences of one environment.

  An episode of n blocks gives max(n - K, 0) + 1 sequences: one starts every
  period, each step is in at least one, and none consists of padding only. A
  block is finished when the observation after its last step arrives.

  The last sequence of an episode is omitted if none of its steps is trained,
  because it ends within its burn-in and does not start the episode
  (`core/burn_in.py`). This only happens if the trace is shorter than the
  period.
  """

  def __init__(
    self,
    config: config_lib.R2D2Config,
    layout: fields.ReplayLayout,
    write: WriteBlock,
    *,
    num_actions: int,
    largest_priority: Callable[[], float] | None = None,
  ):
    """Initializes the sink.

    Args:
      config: the settings of the agent.
      layout: the settings of the replay and the shapes of its data.
      write: the `write` method of this environment's writer.
      num_actions: A, the number of actions.
      largest_priority: see `initial_priority.make`.
    """
    self._write_block = write
    self._priority_of = initial_priority.make(
      config, num_actions=num_actions, largest_priority=largest_priority
    )
    self._period = config.replay.sequence_period
    self._burn_in_length = config.replay.burn_in_length
    self._blocks_per_sequence = config.replay.blocks_per_sequence
    self._layout = layout
    # The fields of a transition that are buffered until its sequences are
    # complete. Observations and recurrent states are written to the block
    # immediately.
    omitted = {'observation', 'recurrent_state'}
    if not layout.has_proposals:
      omitted.add(fields.PROPOSAL.name)
    names = transition_lib.Transition._fields
    self._buffered = [name for name in names if name not in omitted]
    # The sink derives the values of all other fields of a block.
    self._given = [x for x in fields.stored(layout) if x.name in names]
    self._buffered_fields = operator.attrgetter(*self._buffered)
    dtype = blocks.block_dtype(layout)
    self._data = np.zeros(dtype.itemsize, np.uint8)
    self._block = self._data.view(dtype)[0]
    self._frames = self._block['frames']
    self._state = np.zeros((2, layout.lstm_size), np.float32)
    # The episode's last K blocks, the newest last.
    self._finished: collections.deque[blocks.FinishedBlock] = collections.deque(
      maxlen=self._blocks_per_sequence
    )
    self.reset()

  def reset(self) -> None:
    """Discards the unwritten part of an unfinished episode."""
    self._finished.clear()
    # The buffered fields of the unfinished block, one tuple per step. They are
    # written when the block is finished, because assigning a whole column to an
    # array is much cheaper than assigning step by step.
    self._steps: list[tuple] = []

  def state(self) -> dict[str, Any]:
    """Returns the unfinished block and the finished blocks."""
    return {
      'data': self._data.copy(),
      'recurrent_state': self._state.copy(),
      'finished': [tuple(block[:3]) for block in self._finished],
      'steps': list(self._steps),
    }

  def restore(self, state: dict[str, Any]) -> None:
    """Restores a state returned by `state`."""
    self._data[:] = state['data']
    self._state[:] = state['recurrent_state']
    self._finished.clear()
    self._finished.extend(
      blocks.FinishedBlock(*block) for block in state['finished']
    )
    self._steps = list(state['steps'])

  def add(self, transition: transition_lib.Transition) -> None:
    """Adds the next step of the episode, and writes the previous block.

    Raises:
      ValueError: if the observation does not match `ReplayLayout`, or the
        proposal that they require is missing.
    """
    if self._layout.has_proposals and transition.proposal == types.NO_ACTION:
      raise ValueError(
        'proposal is missing: with kickstarting, each transition needs the '
        'action that the behavior of the episode proposes.'
      )
    observation = transition.observation
    if len(self._steps) == self._period:
      block = self._finish(
        observation, transition.prev_action, transition.prev_reward, last=False
      )
      self._write(block._replace(next_q_values=transition.q_values))
    if not self._steps:
      self._frames[: self._layout.num_stacked] = self._unstack(observation)
      self._state[0], self._state[1] = transition.recurrent_state
    self._store_newest_frame(observation)
    self._steps.append(self._buffered_fields(transition))

  def end_episode(
    self, observation: np.ndarray, prev_action: int, prev_reward: float
  ) -> None:
    """Ends an episode that was terminated or truncated.

    The last block is written, unless the episode has no steps or no sequence
    needs the block.

    Args:
      observation: uint8 [H, W, C * S], the final observation of the episode.
      prev_action: the action executed in the last step.
      prev_reward: the reward received for this action.
    """
    if self._steps:
      block = self._finish(observation, prev_action, prev_reward, last=True)
      if self._trains(block.sequence):
        self._write(block)
    self.reset()

  def _write(self, block: blocks.FinishedBlock) -> None:
    """Writes a block, with a priority if it completes a sequence."""
    priority = self._priority_of(block) if block.sequence else 0.0
    self._write_block(block, priority)

  def _finish(
    self,
    observation: np.ndarray,
    prev_action: int,
    prev_reward: float,
    *,
    last: bool,
  ) -> blocks.FinishedBlock:
    """Finishes the block with the observation after its last step."""
    self._store_newest_frame(observation)
    self._check_stack(observation)
    by_field = zip(*self._steps, strict=True)
    columns = dict(zip(self._buffered, by_field, strict=True))
    self._fill(columns, prev_action=prev_action, prev_reward=prev_reward)
    block = blocks.FinishedBlock(
      payload=compression.encode_block(self._data),
      recurrent_state=self._state.copy(),
      steps={
        # A copy of a stored field has the dtype in which it is stored.
        name: np.array(
          self._block[name][: len(x)] if name in self._block.dtype.names else x
        )
        for name, x in columns.items()
      },
    )
    self._finished.append(block)
    self._steps = []
    completes = last or len(self._finished) == self._blocks_per_sequence
    return block._replace(sequence=tuple(self._finished) if completes else ())

  def _trains(self, sequence: Sequence[blocks.FinishedBlock]) -> bool:
    """Returns whether the learner trains on any step of a sequence."""
    first = sequence[0].steps['prev_action']
    num_steps = sum(len(block.steps['prev_action']) for block in sequence)
    return first[0] == types.NO_ACTION or num_steps > self._burn_in_length

  def _fill(self, columns: Mapping[str, Sequence[Any]], **closing: Any) -> None:
    """Writes the scalars and the padding; the frames are already written.

    Args:
      columns: the scalars of the block's steps, by the name of the field.
      **closing: the agent's scalar inputs after the last step, by the name of
        the field.
    """
    block, length = self._block, len(self._steps)
    for field in self._given:
      column, rows = columns[field.name], block[field.name]
      if field.overlap:
        column = (*column, closing[field.name])
      rows[: len(column)] = column
      rows[len(column) :] = 0
    block['valid'][:length] = 1
    block['valid'][length:] = 0
    self._frames[length + self._layout.num_stacked :] = 0

  def _store_newest_frame(self, observation: np.ndarray) -> None:
    """Writes the newest frame of an observation to the block."""
    row = self._layout.num_stacked - 1 + len(self._steps)
    self._frames[row] = observation[..., -self._layout.frame[-1] :]

  def _check_stack(self, observation: np.ndarray) -> None:
    """Checks that the frames of a closing observation are the block's last."""
    length, num_stacked = len(self._steps), self._layout.num_stacked
    stack = self._frames[length : length + num_stacked]
    if not np.array_equal(stack, self._unstack(observation)):
      raise ValueError(
        f'num_stacked={num_stacked} does not match the observations: every '
        'frame of a stack must be the newest frame of some step. Use '
        'num_stacked=1 for observations that are not stacks of frames, or give '
        'your environment an attribute num_stacked = 1.'
      )

  def _unstack(self, observation: np.ndarray) -> np.ndarray:
    """Returns the frames [S, H, W, C] of an observation [H, W, C * S]."""
    height, width, channels = self._layout.frame
    shape = (height, width, self._layout.num_stacked, channels)
    expected = (height, width, self._layout.num_stacked * channels)
    if observation.shape != expected or observation.dtype != np.uint8:
      raise ValueError(
        f'The observation is {observation.dtype} {observation.shape}, but the '
        f'replay expects uint8 {expected}. Pass the ReplayLayout of this '
        'environment.'
      )
    return observation.reshape(shape).transpose(2, 0, 1, 3)
