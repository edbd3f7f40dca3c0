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
      purge_step: TensorBoard forgets rows of this step and later ones that are
        there; None if it forgets none.
      clock: a function that returns seconds.
    """
    self._folder = folder
    self._purge_step = purge_step
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
    event = event_pb2.Event(
      wall_time=time.time(),
      step=step,
      summary=summary_pb2.Summary(value=values),
    )
    now = self._clock()
    if now < self._next_try:
      return
    try:
      if self._writer is None:
        self._writer = self._begin_file()
      self._writer.write(event.SerializeToString())
      self._writer.flush()
    except OSError:
      # The record may be torn, which nothing behind it survives.
      self.close()
      self._next_try = now + _RETRY_SECONDS

  def close(self) -> None:
    """Closes the file; another row would begin another one."""
    if self._writer is not None:
      with contextlib.suppress(OSError):
        self._writer.close()
      self._writer = None

  def _begin_file(self) -> record_writer.RecordWriter:
    name = (
      f'events.out.tfevents.{int(time.time())}.{socket.gethostname()}.'
      # Files of one second are read in the order of their names.
      f'{os.getpid()}.{next(_numbers):06}'
    )
    path = self._folder / name
    writer = record_writer.RecordWriter(str(path))
    events = [event_pb2.Event(wall_time=time.time(), file_version=_VERSION)]
    if self._purge_step is not None:
      start = event_pb2.SessionLog(status=event_pb2.SessionLog.START)
      events.append(event_pb2.Event(step=self._purge_step, session_log=start))
    try:
      for event in events:
        writer.write(event.SerializeToString())
      writer.flush()
    except OSError:
      with contextlib.suppress(OSError):
        writer.close()
      path.unlink()
      raise
    self._purge_step = None
    return writer
