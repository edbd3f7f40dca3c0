"""Samples the learner's batches from a Reverb table.

Threads sample sequences and decompress them directly into a batch, several
batches ahead of the learner. Processes are not necessary, because both Reverb's
sampler and zstandard release the global interpreter lock.
"""

import collections
import threading
from collections.abc import Iterator

import numpy as np
import reverb
from reverb import pybind

from bt_acme.core import types
from bt_acme.replay import blocks, codecs, fields
from bt_acme.replay import table as table_lib

_NUM_THREADS = 2  # Each thread fills its own batches.
_BATCHES_AHEAD = 2  # Batches that may wait for the learner.
_SEQUENCES_AHEAD = 16  # Sequences that each thread requests in advance.
_JOIN_S = 10


class SequenceSampler(Iterator[blocks.Sample]):
  """Iterates over batches of sequences that threads sample."""

  def __init__(
    self,
    client: reverb.Client,
    layout: fields.ReplayLayout,
    *,
    batch_size: int,
  ):
    """Starts sampling.

    Args:
      client: a client of the Reverb server.
      layout: the settings of the replay and the shapes of its data.
      batch_size: B, the number of sequences in a batch.
    """
    self._layout = layout
    self._batch_size = batch_size
    self._released: collections.deque[types.SequenceBatch] = collections.deque()
    # This condition guards the four attributes after it.
    self._changed = threading.Condition()
    self._ready: collections.deque[blocks.Sample] = collections.deque()
    self._num_vacant = _BATCHES_AHEAD + _NUM_THREADS
    self._error: Exception | None = None
    self._stopped = False
    # `reverb.Client.sample` requests one sequence at a time and cannot be
    # interrupted, and `reverb.TrajectoryDataset` copies through TensorFlow. The
    # underlying samplers have neither problem.
    connection = pybind.Client(client.server_address)
    self._samplers = [
      connection.NewSampler(
        table_lib.TABLE, -1, min(_SEQUENCES_AHEAD, batch_size)
      )
      for _ in range(_NUM_THREADS)
    ]
    self._threads = [
      threading.Thread(
        target=self._run, args=(sampler,), name=f'sampler-{i}', daemon=True
      )
      for i, sampler in enumerate(self._samplers)
    ]
    for thread in self._threads:
      thread.start()

  def __next__(self) -> blocks.Sample:
    """Waits for the next batch and returns it.

    Raises:
      StopIteration: after a call of `stop`, also while waiting.
      RuntimeError: if a thread failed.
    """
    with self._changed:
      self._changed.wait_for(self._has_result)
      if self._stopped:
        raise StopIteration
      if not self._ready:
        raise RuntimeError('Sampling from the replay failed.') from self._error
      self._num_vacant += 1
      self._changed.notify_all()
      return self._ready.popleft()

  def ready(self, timeout_s: float) -> bool:
    """Waits for a batch for at most `timeout_s` seconds.

    Returns:
      Whether `next` would now return or raise without waiting.
    """
    with self._changed:
      return self._changed.wait_for(self._has_result, timeout_s)

  def release(self, sample: blocks.Sample) -> None:
    """Returns a batch to the sampler, which will overwrite its arrays.

    The call is optional. It avoids allocating memory, which takes longer than
    filling the arrays. Call it only when every computation on the batch is
    done, because a device may still read its arrays.
    """
    self._released.append(sample.batch)

  def stop(self) -> None:
    """Stops the threads, even while they wait for data.

    Repeated calls have no effect.
    """
    with self._changed:
      self._stopped = True
      self._changed.notify_all()
    # The samplers close in parallel, because each takes up to 3 s if the server
    # is in this process.
    closers = [
      threading.Thread(target=sampler.Close, daemon=True)
      for sampler in self._samplers
    ]
    for closer in closers:
      closer.start()
    for thread in (*closers, *self._threads):
      thread.join(_JOIN_S)

  def _has_result(self) -> bool:
    return bool(self._ready or self._stopped or self._error)

  def _run(self, sampler: pybind.Sampler) -> None:
    try:
      decode = codecs.make_codec(self._layout).make_decoder()
      while self._take_vacancy():
        sample = self._next_sample(sampler, decode)
        with self._changed:
          self._ready.append(sample)
          self._changed.notify_all()
    except Exception as error:
      # `Close` makes a waiting sampler fail. After `stop`, this is expected.
      with self._changed:
        self._error = error
        self._changed.notify_all()

  def _take_vacancy(self) -> bool:
    """Waits until another batch may be filled; returns False after `stop`."""
    with self._changed:
      self._changed.wait_for(lambda: self._num_vacant or self._stopped)
      self._num_vacant -= 1
      return not self._stopped

  def _next_sample(
    self, sampler: pybind.Sampler, decode: codecs.Decoder
  ) -> blocks.Sample:
    try:
      batch = self._released.popleft()
    except IndexError:
      batch = blocks.empty_batch(self._layout, self._batch_size)
    keys = np.empty(self._batch_size, np.uint64)
    probabilities = np.empty(self._batch_size, np.float64)
    for index in range(self._batch_size):
      key, probability, table_size, _, *columns = sampler.GetNextTrajectory()
      keys[index] = key
      probabilities[index] = probability
      decode(*columns, batch=batch, index=index)
    return blocks.Sample(batch, keys, probabilities, int(table_size))
