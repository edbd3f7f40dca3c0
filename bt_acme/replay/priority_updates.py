"""Sends updated priorities from the learner to the replay."""

import threading

import numpy as np
import reverb

from bt_acme.replay import table as table_lib


class PriorityUpdater:
  """Writes priorities to the replay in a background thread.

  If the priority of a sequence changes again before it has been written, only
  the newer value is written.
  """

  def __init__(self, client: reverb.Client):
    """Starts the thread.

    Args:
      client: a client of the Reverb server.
    """
    self._client = client
    self._pending: dict[int, float] = {}
    self._error: Exception | None = None
    self._changed = threading.Condition()
    threading.Thread(target=self._run, name='priorities', daemon=True).start()

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
      if self._error:
        raise RuntimeError(
          'Updating priorities failed. Check that the replay server is running.'
        ) from self._error
      self._pending.update(zip(keys.tolist(), priorities.tolist(), strict=True))
      self._changed.notify_all()

  def _run(self) -> None:
    while True:
      with self._changed:
        self._changed.wait_for(lambda: self._pending)
        updates, self._pending = self._pending, {}
      try:
        self._client.mutate_priorities(table_lib.TABLE, updates)
      except Exception as error:
        self._error = error
        return
