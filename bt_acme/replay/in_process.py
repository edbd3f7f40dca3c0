"""A prioritized replay within one process, without Reverb.

Single-process runs use this replay and therefore do not need Reverb. The replay
stores and returns the same data as a Reverb table.
"""

import math
from typing import Any

import numpy as np

from bt_acme.replay import blocks, compression, fields

# The payloads of a sequence, which overlapping sequences share, and its initial
# recurrent state, float32 [2, lstm_size].
_Item = tuple[tuple[bytes, ...], np.ndarray]


class InProcessReplay:
  """Stores the newest `max_replay_size` sequences; not thread-safe.

  Attributes:
    num_inserts: the number of sequences inserted so far.
  """

  def __init__(self, layout: fields.ReplayLayout, *, seed: int):
    self._config = config = layout.config
    self._layout = layout
    self._decoder = compression.SequenceDecoder(layout)
    self._rng = np.random.default_rng(seed)
    self._items: list[_Item] = []  # A ring buffer once full.
    # Priorities raised to `priority_exponent`; float64 [max_replay_size].
    self._weights = np.zeros(config.max_replay_size)
    self.num_inserts = 0
    self._num_samples = 0

  def __len__(self) -> int:
    return len(self._items)

  def write(self, block: blocks.FinishedBlock, priority: float) -> None:
    """Inserts the sequence that a block completes, if any.

    A full replay evicts its oldest.
    """
    if block.sequence:
      slot = self.num_inserts % self._config.max_replay_size
      self._items[slot : slot + 1] = [block.sequence_data()]
      self._weights[slot] = priority**self._config.priority_exponent
      self.num_inserts += 1

  def num_allowed(self, batch_size: int) -> int:
    """Returns how many batches may be sampled now.

    `min_replay_size` and `samples_per_insert` limit the number.
    """
    config = self._config
    if len(self) < config.min_replay_size:
      return 0
    counted_inserts = self.num_inserts - config.min_replay_size
    left = config.samples_per_insert * counted_inserts - self._num_samples
    # The last batch may exceed the limit, as in Reverb.
    return max(0, 1 + math.floor(left / batch_size))

  def sample(self, batch_size: int) -> blocks.Sample:
    """Draws B sequences, with replacement, in proportion to their weights."""
    size = len(self)
    # `Generator.choice` would take four times as long at 125,000 items, because
    # it checks and normalizes all weights for every batch.
    total = np.cumsum(self._weights[:size])
    if total[-1] > 0:
      points = self._rng.random(batch_size) * total[-1]
      # Rounding may give the end of the range, which is not the slot of an
      # item.
      slots = np.minimum(np.searchsorted(total, points, 'right'), size - 1)
      probabilities = self._weights[slots] / total[-1]
    else:
      slots = self._rng.integers(size, size=batch_size)
      probabilities = np.full(batch_size, 1 / size)
    self._num_samples += batch_size
    # A key is the index of the insert that last filled the slot.
    age = (self.num_inserts - 1 - slots) % self._config.max_replay_size
    keys = (self.num_inserts - 1 - age).astype(np.uint64)
    batch = blocks.empty_batch(self._layout, batch_size)
    for index, slot in enumerate(slots):
      self._decoder.decode_into(*self._items[slot], batch=batch, index=index)
    return blocks.Sample(batch, keys, probabilities, size)

  def update_priorities(self, keys: np.ndarray, priorities: np.ndarray) -> None:
    """Updates priorities and ignores sequences that have been evicted.

    Args:
      keys: uint64 [B], the keys of a sample.
      priorities: float [B], the priorities before the exponent is applied.
    """
    keys = np.asarray(keys).astype(np.int64)
    stored = keys >= self.num_inserts - len(self)
    exponent = self._config.priority_exponent
    weights = np.asarray(priorities, np.float64)[stored] ** exponent
    self._weights[keys[stored] % self._config.max_replay_size] = weights

  def state(self) -> dict[str, Any]:
    """Returns the items, the weights, the random generator and the counts."""
    return {
      'items': list(self._items),
      'weights': self._weights[: len(self)].copy(),
      'generator': self._rng.bit_generator.state,
      'num_inserts': self.num_inserts,
      'num_samples': self._num_samples,
    }

  def restore(self, state: dict[str, Any]) -> None:
    """Restores a state returned by `state`."""
    self._items = list(state['items'])
    self._weights[: len(self)] = state['weights']
    self._rng.bit_generator.state = state['generator']
    self.num_inserts = state['num_inserts']
    self._num_samples = state['num_samples']
