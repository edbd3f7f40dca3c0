"""The user's view of a program: the terminal, and a log file for each node.

Processes print into pipes. The launcher writes every line to the node's log
file, `processes/LABEL-INDEX.log` in the workdir, and shows on its own terminal
what the user should see, above one progress line that stays at the bottom.
"""

import collections
import contextlib
import datetime
import pathlib
import re
import shutil
import sys
from typing import Any, BinaryIO, Dict, List, Optional

from bt_acme.runtime import progress

_TAIL_LINES = 200  # Last lines of standard error that are kept for a report.
_REPORTED_LINES = 20  # Of these, if there is no traceback among them.
_LONGEST_LINE = 1 << 16  # Bytes; what is longer is split.
# Lines of absl's INFO level, and those of Reverb's start and its checkpoints,
# begin with these. They go to the log file only.
_INFO_LINE = re.compile(
  r'I\d{4} \d\d:\d\d:\d\d|\[reverb/cc/platform/|\[reverb/cc/\S+ Stored '
)


class Terminal:
  """The launcher's terminal: log lines above one live progress line.

  Attributes:
    live: whether standard output is a terminal, on which a line can be
      rewritten.
  """

  def __init__(self, log_file: pathlib.Path) -> None:
    """Begins without a progress line.

    Args:
      log_file: takes what `note` is given; it is made when there is anything.
    """
    self.live = sys.stdout.isatty()
    self._log_file = log_file
    self._status = ''

  def log(self, text: str) -> None:
    """Writes lines to standard error, above the progress line."""
    self._write(sys.stdout, render_live('') if self._status else '')
    self._write(sys.stderr, text + '\n')
    self._write(sys.stdout, self._status)

  def note(self, text: str) -> None:
    """Writes a line as `log` does, and with the time into the log file."""
    self.log(text)
    with contextlib.suppress(OSError):  # The terminal has it.
      self._log_file.parent.mkdir(parents=True, exist_ok=True)
      with self._log_file.open('a') as file:
        file.write(f'{_now()} {text}\n')

  def status(self, text: str) -> None:
    """Replaces the progress line, or adds one where there is no terminal."""
    if self.live:
      self._status = render_live(text)
      self._write(sys.stdout, self._status)
    else:
      self._write(sys.stdout, text + '\n')

  def end_status(self) -> None:
    """Leaves the last progress line where it stands."""
    if self._status:
      self._status = ''
      self._write(sys.stdout, '\n')

  def show(self, title: str, line: str) -> None:
    """Shows one line that a node printed, unless it is of no interest."""
    if line.startswith(progress.STATUS_MARK):
      self.status(line.removeprefix(progress.STATUS_MARK))
    elif line and not _INFO_LINE.match(line):
      self.log(f'[{title}] {line}')

  def _write(self, stream: Any, text: str) -> None:
    if text:
      # Training goes on, and ends cleanly, after its terminal was closed.
      with contextlib.suppress(OSError):
        stream.write(text)
        stream.flush()


class NodeLog:
  """The log file of one node.

  Attributes:
    path: where the file lies.
  """

  def __init__(self, path: pathlib.Path, process: str, *, live: bool):
    """Opens the file and writes down that the node starts.

    Args:
      path: where the file lies. If it exists, lines are added to it.
      process: what starts, as 'process 123'.
      live: whether to leave progress lines out of the file, because a live one
        comes every second.
    """
    self.path = path
    self._file: Optional[BinaryIO] = None
    self._live = live
    self._tail: collections.deque = collections.deque(maxlen=_TAIL_LINES)
    # What was printed since the last line's end, to standard error or not.
    self._unfinished: Dict[bool, bytes] = {False: b'', True: b''}
    self._keep(f'--- {_now()}, {process}\n')

  def add(self, data: bytes, is_error: bool) -> List[str]:
    """Takes what the node printed; returns the lines that it completes."""
    text = self._unfinished[is_error] + data
    *lines, rest = re.split(rb'\r?\n|\r', text)
    if len(rest) > _LONGEST_LINE:
      lines, rest = [*lines, rest], b''
    self._unfinished[is_error] = rest
    return self._write(lines, is_error)

  def finish(self) -> List[str]:
    """Returns the lines that the node left unfinished when it ended."""
    lines = []
    for is_error, rest in self._unfinished.items():
      self._unfinished[is_error] = b''
      lines += self._write([rest] if rest else [], is_error)
    return lines

  def report(self) -> List[str]:
    """Returns the traceback in standard error, or its last lines."""
    lines = list(self._tail)
    for i, line in enumerate(lines):
      if line.startswith('Traceback '):
        return lines[i:]
    return lines[-_REPORTED_LINES:]

  def close(self) -> None:
    """Closes the file."""
    if self._file is not None:
      self._file.close()

  def _write(self, lines: List[bytes], is_error: bool) -> List[str]:
    decoded = [line.decode('utf-8', 'replace') for line in lines]
    kept = []
    for line in decoded:
      text = line.removeprefix(progress.STATUS_MARK)
      if text == line or not self._live:
        kept.append(text + '\n')
      if is_error:
        self._tail.append(text)
    self._keep(''.join(kept))
    return decoded

  def _keep(self, text: str) -> None:
    """Adds text to the file, or as much of it as the disk has room for."""
    with contextlib.suppress(OSError):
      if self._file is None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._file = open(self.path, 'ab', buffering=0)
      self._file.write(text.encode())


def _now() -> str:
  return datetime.datetime.now().isoformat(sep=' ', timespec='seconds')


def render_live(text: str) -> str:
  """Returns what rewrites the terminal's line, cut to the terminal's width."""
  width = shutil.get_terminal_size().columns - 1
  return f'\r{text[:width]}\x1b[K'
