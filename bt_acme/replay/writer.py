"""Writes one environment's blocks and sequences to a Reverb table."""

import threading
from collections.abc import Callable

import reverb
import tree

from bt_acme.replay import blocks, codecs, fields
from bt_acme.replay import table as table_lib

_START_MS = 300_000  # The time that the server may take to start.
_WAIT_MS = 1_000  # Interval at which a wait checks whether it was stopped.
_PROBE_S = 10  # Interval at which a wait checks that the server still responds.


class ReverbWriter:
  """Appends blocks and inserts the sequences that they complete.

  A sequence can be sampled as soon as the server has received it. When actors
  run ahead of the learner, the server stops accepting sequences and `write`
  waits: the server may lack at most the newest sequence.
  """

  def __init__(
    self,
    client: reverb.Client,
    layout: fields.ReplayLayout,
    *,
    on_wait: Callable[[], object] = lambda: None,
  ):
    """Connects to the server.

    Args:
      client: a client of the Reverb server.
      layout: the settings of the replay and the shapes of its data.
      on_wait: a function that is called every second while `write` waits.
    """
    self._client = client
    self._on_wait = on_wait
    self._stopped = threading.Event()
    codec = codecs.make_codec(layout)
    self._encode = codec.make_encoder()
    self._writer = client.trajectory_writer(
      num_keep_alive_refs=codec.cells_per_item,
      get_signature_timeout_ms=_START_MS,
    )
    # Each cell is a separate chunk, so that a cell in several sequences is sent
    # only once.
    for path, _ in tree.flatten_with_path(codec.signature):
      self._writer.configure(
        path, num_keep_alive_refs=codec.cells_per_item, max_chunk_length=1
      )

  def write(self, block: blocks.FinishedBlock, priority: float) -> None:
    """Writes a block and the sequence that it completes, if any.

    Args:
      block: the environment's next block.
      priority: the priority of the sequence; ignored if none is complete.

    Raises:
      ConnectionError: if the server no longer responds.
    """
    if block.sequence:
      # The previous sequence has usually arrived long ago, whereas waiting for
      # it after `create_item` would compete with the writer's own thread.
      self.flush()
    if self._stopped.is_set():
      return
    trajectory = self._encode(self._writer, block)
    if trajectory is not None:
      self._writer.create_item(table_lib.TABLE, priority, trajectory)

  def flush(self) -> None:
    """Waits until the server has received everything written so far."""
    waited_ms = 0
    while not self._stopped.is_set():
      try:
        self._writer.flush(timeout_ms=_WAIT_MS)
        return
      except reverb.DeadlineExceededError:
        waited_ms += _WAIT_MS
        self._on_wait()
      if waited_ms % (_PROBE_S * 1000) == 0:
        self._probe()

  def stop(self) -> None:
    """Stops writing and makes a waiting `write` return; thread-safe.

    Data that the server has not yet received may be lost.
    """
    self._stopped.set()

  def close(self) -> None:
    """Closes the connection.

    Call `flush` first, or data that the server has not yet received may be
    lost. A server takes seconds to stop while a writer is open.
    """
    self.stop()
    self._writer.close()

  def _probe(self) -> None:
    """Raises ConnectionError if the server does not respond."""
    try:
      self._client.server_info(timeout=_PROBE_S)
    except (reverb.DeadlineExceededError, RuntimeError) as error:
      raise ConnectionError(
        f'The replay server at {self._client.server_address} does not respond. '
        'Check whether it has stopped or the network is down.'
      ) from error
