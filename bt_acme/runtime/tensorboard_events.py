"""Writes rows of scalars as TensorBoard event files.

The writer of tensorboardX uses a thread and blocks forever once the disk is
full and the thread has crashed. Here the caller writes each row as one event.
"""

import contextlib
import itertools
import os
import pathlib
import socket
import time
from collections.abc import Mapping

import numpy as np
from tensorboardX import record_writer, summary
from tensorboardX.proto import event_pb2, summary_pb2

_RETRY_SECONDS = 10.0  # Between two attempts while the disk is full.
_VERSION = 'brain.Event:2'  # The version of the file format.
# Distinguishes the files that this process starts within one second.
_numbers = itertools.count(1)


class Summaries:
  """Writer of event files in one directory.

  Rows that do not fit on a full disk are dropped; a later row starts a new
  file.

  Attributes:
    purge_step: the next file makes TensorBoard discard existing rows of this
      and later steps; None discards none.
  """

  def __init__(self, folder: pathlib.Path):
    """Initializes a writer without creating a file.

    Args:
      folder: an existing directory.
    """
    self.purge_step: int | None = None
    self._folder = folder
    self._writer: record_writer.RecordWriter | None = None
    self._next_try = time.monotonic()

  def write(self, step: int | None, row: Mapping[str, int | float]) -> None:
    """Writes a row.

    Args:
      step: the step of the row, if it has one.
      row: the scalars by name.
    """
    # tensorboardX turns plain numbers into arrays of rank 1, which makes NumPy
    # warn; arrays of rank 0 avoid that.
    values = [
      value
      for name, scalar in row.items()
      for value in summary.scalar(name, np.asarray(scalar)).value
    ]
    if time.monotonic() < self._next_try:
      return
    try:
      writer = self._writer or self._begin_file()
      _write(writer, step=step, summary=summary_pb2.Summary(value=values))
    except OSError:
      # The record may be incomplete, and readers stop there.
      self.close()
      self._next_try = time.monotonic() + _RETRY_SECONDS

  def close(self) -> None:
    """Closes the file; a later row would start a new one."""
    if self._writer is not None:
      with contextlib.suppress(OSError):
        self._writer.close()
      self._writer = None

  def _begin_file(self) -> record_writer.RecordWriter:
    # TensorBoard reads files of the same second in the order of their names.
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
