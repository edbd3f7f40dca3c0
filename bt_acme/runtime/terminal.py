"""The user's view of a program: the terminal, and a log file for each node.

Processes print into pipes. The launcher writes every line to the node's log
file, `processes/LABEL-INDEX.log` in the workdir. It prints the relevant lines
on its own terminal, above one progress line that stays at the bottom.
"""

import collections
import contextlib
import datetime
import pathlib
import re
import shutil
import sys
from typing import Any, BinaryIO

from bt_acme.runtime import output, progress

_TAIL_LINES = 200  # Last lines of standard error, stored for a report.
_REPORTED_LINES = 20  # Last lines in a report without a traceback.
_LONGEST_LINE = 1 << 16  # Bytes; longer lines are split.
# The start of lines that go to the log file only: absl's INFO level, and
# Reverb's messages about its start and its checkpoints.
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
    """Initializes the terminal, without a progress line.

    Args:
      log_file: the file for the lines of `log`; created by the first one.
    """
    self.live = sys.stdout.isatty()
    self._log_file = log_file
    self._status = ''

  def print_above(self, text: str) -> None:
    """Prints lines to standard error, above the progress line."""
    self._write(sys.stdout, render_live('') if self._status else '')
    self._write(sys.stderr, text + '\n')
    self._write(sys.stdout, self._status)

  def log(self, text: str) -> None:
    """Prints a line and adds it to the log file, with the time."""
    self.print_above(text)
    with contextlib.suppress(OSError):  # The terminal shows the line anyway.
      self._log_file.parent.mkdir(parents=True, exist_ok=True)
      with self._log_file.open('a', encoding='utf-8') as file:
        file.write(f'{_now()} {text}\n')

  def end_status(self) -> None:
    """Ends the progress line, which stays on the terminal."""
    if self._status:
      self._status = ''
      self._write(sys.stdout, '\n')

  def show(self, title: str, line: str) -> None:
    """Prints a line of a node, unless it belongs in the log file only.

    A progress line replaces the last one, if the output is a terminal.

    Args:
      title: the title of the node.
      line: the line, which starts with `STATUS_MARK` if it shows the progress.
    """
    if line.startswith(progress.STATUS_MARK):
      text = line.removeprefix(progress.STATUS_MARK)
      self._status = render_live(text) if self.live else ''
      self._write(sys.stdout, self._status or text + '\n')
    elif line and not _INFO_LINE.match(line):
      self.print_above(f'[{title}] {line}')

  def _write(self, stream: Any, text: str) -> None:
    if text:
      output.show(text, end='', file=stream)


class NodeLog:
  """The log file of one node.

  Attributes:
    path: the path of the file.
  """

  def __init__(self, path: pathlib.Path, process: str, *, live: bool):
    """Initializes the log and writes a line about the start of the node.

    Args:
      path: the path of the file; lines are appended to an existing file.
      process: the process that starts, as 'process 123'.
      live: whether to omit progress lines, which arrive every second when the
        terminal is live.
    """
    self.path = path
    self._file: BinaryIO | None = None
    self._live = live
    self._tail: collections.deque = collections.deque(maxlen=_TAIL_LINES)
    # The output since the last newline, by whether it went to standard error.
    self._unfinished: dict[bool, bytes] = {False: b'', True: b''}
    self._keep(f'--- {_now()}, {process}\n')

  def add(self, data: bytes, is_error: bool) -> list[str]:
    """Adds output of the node; returns the lines that it completes."""
    *lines, rest = re.split(rb'\r?\n|\r', self._unfinished[is_error] + data)
    if len(rest) > _LONGEST_LINE:
      lines, rest = [*lines, rest], b''
    self._unfinished[is_error] = rest
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

  def finish(self) -> list[str]:
    """Returns the lines that the node left unfinished when it exited."""
    lines = []
    for is_error, rest in self._unfinished.items():
      if rest:
        lines += self.add(b'\n', is_error)
    return lines

  def report(self) -> list[str]:
    """Returns the traceback in standard error, or else the last lines."""
    lines = list(self._tail)
    for i, line in enumerate(lines):
      if line.startswith('Traceback '):
        return lines[i:]
    return lines[-_REPORTED_LINES:]

  def close(self) -> None:
    """Closes the file."""
    if self._file is not None:
      self._file.close()

  def _keep(self, text: str) -> None:
    """Appends text to the file, as far as disk space allows."""
    with contextlib.suppress(OSError):
      if self._file is None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._file = open(self.path, 'ab', buffering=0)
      self._file.write(text.encode())


def _now() -> str:
  return datetime.datetime.now().isoformat(sep=' ', timespec='seconds')


def render_live(text: str) -> str:
  """Returns text that rewrites the terminal's line, cut to its width."""
  width = shutil.get_terminal_size().columns - 1
  return f'\r{text[:width]}\x1b[K'
