"""What the replay stores: compressed blocks of consecutive steps.

A *block* is one period P of steps of one environment, compressed as a whole; a
sequence is K consecutive blocks, so that overlapping sequences share them.
Observations are kept as single frames, each once: a block begins with the
whole stack of its first observation, and ends with the observation that its
last step led to. The recurrent state is kept once a block, before its first
step, as NGU keeps "the initial recurrent state" (Badia et al. 2020, App. F).

A block is finished when the observation behind it arrives. Neither blocks nor
sequences cross an episode's end: an episode's last block is padded with zeros,
and a sequence of an episode shorter than K blocks has fewer of them.
"""

import collections
import threading
from typing import Any, Deque, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np
import zstandard

from bt_acme import config as config_lib
from bt_acme.core import types

_COMPRESSION_LEVEL = 1
_ROWS = ('prev_action', 'prev_reward')  # P + 1 rows in a block.
_GIVEN = ('action', 'choice', 'source', 'probability', 'reward', 'discount')
_STEPS = (*_GIVEN, 'valid')  # P rows in a block.


class Block(NamedTuple):
  """The arrays of one block; fields as in `types.SequenceBatch`, without B.

  `frames` is [S - 1 + P + 1, H, W, C], `prev_action` and `prev_reward` are
  [P + 1], the rest [P].
  """

  prev_action: np.ndarray
  prev_reward: np.ndarray
  action: np.ndarray
  choice: np.ndarray
  probability: np.ndarray
  reward: np.ndarray
  discount: np.ndarray
  valid: np.ndarray
  source: np.ndarray
  frames: np.ndarray


class FinishedBlock(NamedTuple):
  """A block ready to be written.

  Attributes:
    payload: the compressed block.
    recurrent_state: float32 [2, lstm_size], hidden and cell before its start.
    item_blocks: how many of the episode's last blocks, this one included, now
      make up a sequence to insert; 0 for none.
  """

  payload: bytes
  recurrent_state: np.ndarray
  item_blocks: int


class Sample(NamedTuple):
  """A batch of B sequences out of the replay.

  Attributes:
    batch: of NumPy arrays.
    keys: uint64 [B], under which priorities are updated.
    probabilities: float64 [B], with which each was drawn.
    table_size: sequences in the replay.
  """

  batch: types.SequenceBatch
  keys: np.ndarray
  probabilities: np.ndarray
  table_size: int


def empty_batch(
  config: config_lib.ReplayConfig, shapes: types.ReplayShapes, batch_size: int
) -> types.SequenceBatch:
  """Uninitialized arrays for B sequences, to be filled by `SequenceDecoder`."""
  length = config.sequence_length
  state: Any = np.empty((2, batch_size, shapes.lstm_size), np.float32)
  frames = shapes.num_stacked + length

  def array(rows: int, dtype: type, *shape: int) -> np.ndarray:
    return np.empty((rows, batch_size, *shape), dtype)

  return types.SequenceBatch(
    frames=array(frames, np.uint8, *shapes.frame),
    prev_action=array(length + 1, np.int32),
    prev_reward=array(length + 1, np.float32),
    action=array(length, np.int32),
    choice=array(length, np.int32),
    source=array(length, np.uint8),
    probability=array(length, np.float32),
    reward=array(length, np.float32),
    discount=array(length, np.float32),
    valid=array(length, np.float32),
    recurrent_state=types.LSTMState(hidden=state[0], cell=state[1]),
  )


class BlockLayout:
  """Where the fields of a block lie in its bytes."""

  def __init__(
    self, config: config_lib.ReplayConfig, shapes: types.ReplayShapes
  ):
    like = empty_batch(config, shapes, batch_size=0)
    rows = {
      'frames': shapes.num_stacked + config.sequence_period,
      **dict.fromkeys(_ROWS, config.sequence_period + 1),
      **dict.fromkeys(_STEPS, config.sequence_period),
    }
    self._fields = []  # In the order of Block: float32 and int32 stay aligned.
    self.num_bytes = 0
    for name in Block._fields:
      array = getattr(like, name)
      shape = (rows[name], *array.shape[2:])
      size = int(np.prod(shape)) * array.itemsize
      end = self.num_bytes + size
      self._fields.append((slice(self.num_bytes, end), array.dtype, shape))
      self.num_bytes = end

  def views(self, data: Any) -> Block:
    """The fields of the uncompressed bytes of a block, without a copy."""
    data = np.frombuffer(data, np.uint8, count=self.num_bytes)
    return Block(
      *(
        data[where].view(dtype).reshape(shape)
        for where, dtype, shape in self._fields
      )
    )


class _Compressor(threading.local):
  """One compressor a thread: it is costly to make and not to be shared."""

  def __init__(self) -> None:
    self.compress = zstandard.ZstdCompressor(level=_COMPRESSION_LEVEL).compress


_compressor = _Compressor()


def encode_block(data: Any) -> bytes:
  """Compresses the bytes of a block."""
  return _compressor.compress(data)


class SequenceDecoder:
  """Writes sequences into batches; one thread only."""

  def __init__(
    self, config: config_lib.ReplayConfig, shapes: types.ReplayShapes
  ):
    layout = BlockLayout(config, shapes)
    self._period = config.sequence_period
    self._num_stacked = shapes.num_stacked
    # Always the same memory: fresh pages would cost more than decompressing.
    self._data = np.empty(layout.num_bytes, np.uint8)
    self._block = layout.views(self._data)
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
      recurrent_state: float32 [2, lstm_size], before the first block.
      batch: that is written into.
      index: column of the batch, in [0, B).
    """
    block, period, num_stacked = self._block, self._period, self._num_stacked
    for i, payload in enumerate(payloads):
      self._decompressor.stream_reader(payload).readinto(self._data)
      start = i * period
      # A block begins with what the one before it ends with, written again.
      batch.frames[start : start + num_stacked + period, index] = block.frames
      for name in _ROWS:
        rows = getattr(block, name)
        getattr(batch, name)[start : start + period + 1, index] = rows
      for name in _STEPS:
        steps = getattr(block, name)
        getattr(batch, name)[start : start + period, index] = steps
    end = len(payloads) * period
    batch.frames[end + num_stacked :, index] = 0
    for name in _ROWS:
      getattr(batch, name)[end + 1 :, index] = 0
    for name in _STEPS:
      getattr(batch, name)[end:, index] = 0
    batch.recurrent_state.hidden[index] = recurrent_state[0]
    batch.recurrent_state.cell[index] = recurrent_state[1]


class BlockWindow:
  """The last K blocks of one environment, of which sequences are made."""

  def __init__(self, config: config_lib.ReplayConfig):
    self._blocks: Deque[FinishedBlock] = collections.deque(
      maxlen=config.blocks_per_sequence
    )

  def add(
    self, block: FinishedBlock
  ) -> Optional[Tuple[List[bytes], np.ndarray]]:
    """Takes the next block.

    Returns:
      Payloads of the sequence that it completes and the recurrent state before
      them, as `SequenceDecoder` takes them; None where it completes none.
    """
    self._blocks.append(block)
    if not block.item_blocks:
      return None
    members = list(self._blocks)[-block.item_blocks :]
    return [b.payload for b in members], members[0].recurrent_state


class SequenceBuilder:
  """Turns the steps of one environment into blocks and sequences.

  An episode of n blocks makes max(n - K, 0) + 1 sequences: one starts every
  period, each step lies in at least one, and none is of padding alone.
  """

  def __init__(
    self, config: config_lib.ReplayConfig, shapes: types.ReplayShapes
  ):
    self._period = config.sequence_period
    self._blocks_per_sequence = config.blocks_per_sequence
    self._shapes = shapes
    layout = BlockLayout(config, shapes)
    self._data = np.zeros(layout.num_bytes, np.uint8)
    self._block = layout.views(self._data)
    self._state = np.zeros((2, shapes.lstm_size), np.float32)
    self.reset()

  def reset(self) -> None:
    """Drops an episode that has not ended."""
    self._num_blocks = 0  # Finished ones of the episode.
    self._clear()

  def _clear(self) -> None:
    """Empties the block under way."""
    # One assignment a column is much cheaper than one a step.
    self._seen: List[Tuple] = []  # In the order of `_ROWS`.
    self._given: List[Tuple] = []  # In the order of `_GIVEN`.

  def add(
    self,
    observation: np.ndarray,
    prev_action: int,
    prev_reward: float,
    recurrent_state: types.LSTMState,
    action: int,
    choice: int,
    source: int,
    probability: float,
    reward: float,
    discount: float,
  ) -> Optional[FinishedBlock]:
    """Takes the next step of the episode.

    Args:
      observation: uint8 [H, W, C * S], before the step, the newest frame last.
      prev_action: executed before; `NO_ACTION` on the first step.
      prev_reward: received before; 0 on the first step.
      recurrent_state: float32 [lstm_size] each, before the step.
      action: executed.
      choice: of the agent.
      source: one of `types.OWN`, `EXTRA`, `FLIGHT`.
      probability: of the choice under the acting policy.
      reward: that the agent maximizes.
      discount: the environment's; 1 on a truncation.

    Returns:
      The block that this observation completes, if it does.

    Raises:
      ValueError: if observations are not what `types.ReplayShapes` says.
    """
    finished = None
    if len(self._given) == self._period:
      finished = self._finish(observation, prev_action, prev_reward, last=False)
    if not self._given:
      stack = self._unstack(observation)
      self._block.frames[: self._shapes.num_stacked] = stack
      self._state[0], self._state[1] = recurrent_state
    self._see(observation, prev_action, prev_reward)
    self._given.append((action, choice, source, probability, reward, discount))
    return finished

  def end_episode(
    self, observation: np.ndarray, prev_action: int, prev_reward: float
  ) -> Optional[FinishedBlock]:
    """Takes what the episode's last step led to, terminal or truncated.

    Args:
      observation: uint8 [H, W, C * S], the final one.
      prev_action: executed in the last step.
      prev_reward: received for it.

    Returns:
      The episode's last block; None for an episode without a step.
    """
    finished = None
    if self._given:
      finished = self._finish(observation, prev_action, prev_reward, last=True)
    self.reset()
    return finished

  def _finish(
    self,
    observation: np.ndarray,
    prev_action: int,
    prev_reward: float,
    *,
    last: bool,
  ) -> FinishedBlock:
    """Closes the block with the observation behind it."""
    length, num_stacked = len(self._given), self._shapes.num_stacked
    block = self._block
    self._see(observation, prev_action, prev_reward)
    stack = block.frames[length : length + num_stacked]
    if not np.array_equal(stack, self._unstack(observation)):
      raise ValueError(
        f'num_stacked={num_stacked} does not describe the observations: a '
        'frame of a stack must be the newest one of an earlier step. Pass '
        'num_stacked=1 for observations that are no stacks.'
      )
    for name, column in zip(_ROWS, zip(*self._seen, strict=True), strict=True):
      getattr(block, name)[: length + 1] = column
      getattr(block, name)[length + 1 :] = 0
    for name, column in zip(
      _GIVEN, zip(*self._given, strict=True), strict=True
    ):
      getattr(block, name)[:length] = column
      getattr(block, name)[length:] = 0
    block.valid[:length] = 1
    block.valid[length:] = 0
    block.frames[length + num_stacked :] = 0
    self._clear()
    self._num_blocks += 1
    full = self._num_blocks >= self._blocks_per_sequence
    item_blocks = min(self._num_blocks, self._blocks_per_sequence)
    return FinishedBlock(
      payload=encode_block(self._data),
      recurrent_state=self._state.copy(),
      item_blocks=item_blocks if full or last else 0,
    )

  def _see(
    self, observation: np.ndarray, prev_action: int, prev_reward: float
  ) -> None:
    """Takes what the agent sees at the block's next row."""
    newest = observation[..., -self._shapes.frame[-1] :]
    self._block.frames[self._shapes.num_stacked - 1 + len(self._seen)] = newest
    self._seen.append((prev_action, prev_reward))

  def _unstack(self, observation: np.ndarray) -> np.ndarray:
    """The frames [S, H, W, C] of an observation [H, W, C * S]."""
    height, width, channels = self._shapes.frame
    shape = (height, width, self._shapes.num_stacked, channels)
    expected = (height, width, self._shapes.num_stacked * channels)
    if observation.shape != expected or observation.dtype != np.uint8:
      raise ValueError(
        f'An observation is {observation.dtype} {observation.shape}, but the '
        f'replay was made for uint8 {expected}.'
      )
    return np.moveaxis(observation.reshape(shape), 2, 0)
