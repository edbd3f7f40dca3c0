"""A prioritized replay inside one process, without Reverb.

For runs in one process, and for Pythons that have no Reverb. What it holds and
returns is what a Reverb table would.
"""

from typing import List, NamedTuple, Sequence, Tuple

import numpy as np

from bt_acme import config as config_lib
from bt_acme.core import types
from bt_acme.replay import blocks


class _Item(NamedTuple):
  payloads: Tuple[bytes, ...]  # Shared with the items that overlap.
  recurrent_state: np.ndarray  # float32 [2, lstm_size]


class LocalReplay:
  """Keeps the newest `max_replay_size` sequences; one thread only."""

  def __init__(
    self,
    config: config_lib.ReplayConfig,
    shapes: types.ReplayShapes,
    *,
    seed: int,
  ):
    self._config = config
    self._shapes = shapes
    self._decoder = blocks.SequenceDecoder(config, shapes)
    self._rng = np.random.default_rng(seed)
    self._items: List[_Item] = []  # A ring once it is full.
    self._weights = np.zeros(config.max_replay_size)  # Powers of priorities.
    self._num_inserts = 0
    self._num_samples = 0

  def __len__(self) -> int:
    return len(self._items)

  @property
  def num_inserts(self) -> int:
    """Sequences inserted so far."""
    return self._num_inserts

  def writer(self) -> 'LocalWriter':
    """A writer for one environment."""
    return LocalWriter(self, self._config)

  def insert(
    self,
    payloads: Sequence[bytes],
    recurrent_state: np.ndarray,
    priority: float,
  ) -> None:
    """Inserts a sequence of 1 to K blocks."""
    slot = self._num_inserts % self._config.max_replay_size
    item = _Item(tuple(payloads), recurrent_state)
    if slot == len(self._items):
      self._items.append(item)
    else:
      self._items[slot] = item
    self._weights[slot] = priority**self._config.priority_exponent
    self._num_inserts += 1

  def can_sample(self) -> bool:
    """Whether a batch may be sampled, by size and by samples per insert."""
    config = self._config
    inserts_behind_minimum = self._num_inserts - config.min_replay_size
    return (
      len(self) >= config.min_replay_size
      and self._num_samples
      <= config.samples_per_insert * inserts_behind_minimum
    )

  def sample(self, batch_size: int) -> blocks.Sample:
    """Draws B sequences, with replacement, in proportion to their weights.

    Raises:
      ValueError: on an empty replay.
    """
    if not self._items:
      raise ValueError('The replay is empty: nothing can be sampled yet.')
    size = len(self)
    total = np.cumsum(self._weights[:size])
    if total[-1] > 0:
      points = self._rng.random(batch_size) * total[-1]
      # Never the end of the range, which rounding may reach.
      slots = np.minimum(np.searchsorted(total, points, 'right'), size - 1)
      probabilities = self._weights[slots] / total[-1]
    else:
      slots = self._rng.integers(size, size=batch_size)
      probabilities = np.full(batch_size, 1 / size)
    batch = blocks.empty_batch(self._config, self._shapes, batch_size)
    for index, slot in enumerate(slots):
      self._decoder.decode_into(*self._items[slot], batch=batch, index=index)
    self._num_samples += batch_size
    # A key is the number of the insert that last filled the slot.
    age = (self._num_inserts - 1 - slots) % self._config.max_replay_size
    keys = (self._num_inserts - 1 - age).astype(np.uint64)
    return blocks.Sample(batch, keys, probabilities, size)

  def update_priorities(self, keys: np.ndarray, priorities: np.ndarray) -> None:
    """Changes priorities; a sequence that has left since is passed over.

    Args:
      keys: uint64 [B], of a sample.
      priorities: float [B], before the exponent.
    """
    keys = np.asarray(keys).astype(np.int64)
    kept = keys >= self._num_inserts - len(self)
    slots = keys[kept] % self._config.max_replay_size
    kept_priorities = np.asarray(priorities, np.float64)[kept]
    self._weights[slots] = kept_priorities**self._config.priority_exponent


class LocalWriter:
  """Writes one environment's blocks to a `LocalReplay`."""

  def __init__(self, replay: LocalReplay, config: config_lib.ReplayConfig):
    self._replay = replay
    self._window = blocks.BlockWindow(config)

  def write(self, block: blocks.FinishedBlock, priority: float) -> None:
    """Writes a block, and the sequence that it completes, if it does."""
    sequence = self._window.add(block)
    if sequence is not None:
      self._replay.insert(*sequence, priority)
