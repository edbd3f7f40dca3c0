"""Rows of scalars as TensorBoard shows them.

tensorboardX's own writer has a thread, and waits for ever once the thread has
died of a full disk. Here, each row is one event, written by whoever has it.
"""

import contextlib
import itertools
import os
import pathlib
import socket
import time
from typing import Callable, Mapping, Optional, Union

import numpy as np
from tensorboardX import record_writer, summary
from tensorboardX.proto import event_pb2, summary_pb2

_RETRY_SECONDS = 10.0  # Between two tries while the disk is full.
_VERSION = 'brain.Event:2'  # The format's.
# Files that this process begins in the same second have different names.
_numbers = itertools.count(1)


class Summaries:
  """Writes event files to one folder.

  Rows that find no room on the disk are left out, and a later one begins
  another file.

  Attributes:
    purge_step: with the next file, TensorBoard forgets existing rows of this
      step and later ones; None if it forgets none.
  """

  def __init__(
    self,
    folder: pathlib.Path,
    *,
    purge_step: Optional[int] = None,
    clock: Callable[[], float] = time.monotonic,
  ):
    """Writes nothing yet.

    Args:
      folder: the folder, which exists.
      purge_step: see the class.
      clock: a function that returns seconds.
    """
    self.purge_step = purge_step
    self._folder = folder
    self._clock = clock
    self._writer: Optional[record_writer.RecordWriter] = None
    self._next_try = clock()

  def write(
    self, step: Optional[int], row: Mapping[str, Union[int, float]]
  ) -> None:
    """Writes a row.

    Args:
      step: its step; None if it has none.
      row: its scalars.
    """
    # The arrays have rank 0, because tensorboardX makes one of rank 1 of a
    # number, and NumPy then warns.
    values = [
      value
      for name, scalar in row.items()
      for value in summary.scalar(name, np.asarray(scalar)).value
    ]
    if self._clock() < self._next_try:
      return
    try:
      writer = self._writer or self._begin_file()
      _write(writer, step=step, summary=summary_pb2.Summary(value=values))
    except OSError:
      # The record may be incomplete, and a reader stops there.
      self.close()
      self._next_try = self._clock() + _RETRY_SECONDS

  def close(self) -> None:
    """Closes the file; another row would begin another one."""
    if self._writer is not None:
      with contextlib.suppress(OSError):
        self._writer.close()
      self._writer = None

  def _begin_file(self) -> record_writer.RecordWriter:
    # Files of one second are read in the order of their names.
    path = self._folder / (
      f'events.out.tfevents.{int(time.time())}.{socket.gethostname()}.'
      f'{os.getpid()}.{next(_numbers):06}'
    )
    self._writer = writer = record_writer.RecordWriter(str(path))
    try:
      _write(writer, file_version=_VERSION)
      if self.purge_step is not None:
        start = event_pb2.SessionLog(status=event_pb2.SessionLog.START)
        _write(writer, step=self.purge_step, session_log=start)
    except OSError:
      path.unlink()
      raise
    self.purge_step = None
    return writer


def _write(writer: record_writer.RecordWriter, **fields: object) -> None:
  event = event_pb2.Event(wall_time=time.time(), **fields)
  writer.write(event.SerializeToString())
  writer.flush()
