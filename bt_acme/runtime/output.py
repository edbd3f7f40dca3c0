"""Prints messages for the user, whose terminal may be gone."""

import contextlib
import os
import sys
from typing import TextIO

from bt_acme import files


def show(text: str, *, end: str = '\n', file: TextIO | None = None) -> None:
  """Prints text, unless the terminal or the reader of the pipe is gone.

  A run continues, and ends with its usual exit code, after its terminal was
  closed.

  Args:
    text: the text.
    end: printed after the text.
    file: the stream; None for standard output.
  """
  stream = file or sys.stdout
  try:
    print(text, end=end, file=stream, flush=True)
  except OSError as error:
    if not files.is_disk_full(error):
      # Python flushes the rest at its exit, and if that failed, exits with 120.
      with contextlib.suppress(OSError), open(os.devnull, 'w') as null:
        os.dup2(null.fileno(), stream.fileno())
