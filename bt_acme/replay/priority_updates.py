"""Sends updated priorities from the learner to the replay."""

import threading
from typing import Dict, Optional

import numpy as np
import reverb

from bt_acme.replay import table as table_lib

_JOIN_S = 10


class PriorityUpdater:
  """Writes priorities to the replay in a background thread.

  If the priority of a sequence changes again before it has been written, only
  the newer value is written.
  """

  def __init__(self, client: reverb.Client, *, table: str = table_lib.TABLE):
    """Starts the thread.

    Args:
      client: a client of the Reverb server.
      table: the name of the table with the priorities.
    """
    self._client = client
    self._table = table
    self._pending: Dict[int, float] = {}
    self._writing = False
    self._error: Optional[Exception] = None
    self._stopping = False
    self._changed = threading.Condition()
    self._thread = threading.Thread(
      target=self._run, name='priorities', daemon=True
    )
    self._thread.start()

  def update(self, keys: np.ndarray, priorities: np.ndarray) -> None:
    """Passes priorities to the thread without waiting for the server.

    Args:
      keys: uint64 [B], the keys of the sequences.
      priorities: float [B], before the exponent is applied, finite and not
        negative.

    Raises:
      RuntimeError: if an earlier update failed.
    """
    with self._changed:
      self._raise_error()
      self._pending.update(zip(keys.tolist(), priorities.tolist(), strict=True))
      self._changed.notify_all()

  def flush(self, timeout_s: float = 30) -> None:
    """Waits until the server has received all updates.

    Raises:
      TimeoutError: if the updates take longer than `timeout_s`.
      RuntimeError: if an update failed.
    """
    with self._changed:
      done = self._changed.wait_for(
        lambda: self._error or not (self._pending or self._writing), timeout_s
      )
      self._raise_error()
      if not done:
        raise TimeoutError(
          f'The replay server at {self._client.server_address} did not accept '
          f'all priorities within {timeout_s} s.'
        )

  def stop(self) -> None:
    """Stops the thread after pending writes; repeated calls have no effect."""
    with self._changed:
      self._stopping = True
      self._changed.notify_all()
    self._thread.join(_JOIN_S)

  def _raise_error(self) -> None:
    if self._error:
      raise RuntimeError('Updating priorities failed.') from self._error

  def _run(self) -> None:
    while True:
      with self._changed:
        self._changed.wait_for(lambda: self._pending or self._stopping)
        if not self._pending:
          return
        updates, self._pending = self._pending, {}
        self._writing = True
      try:
        self._client.mutate_priorities(self._table, updates)
      except Exception as error:
        self._error = error
      with self._changed:
        self._writing = False
        self._changed.notify_all()
        if self._error:
          return
