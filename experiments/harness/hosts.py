"""Tasks that are functions, executed in processes that outlast each of them.

What such a process has imported and compiled serves all its tasks.
"""

import contextlib
import multiprocessing
import pathlib
import subprocess
import sys
from multiprocessing import connection as connection_lib
from typing import Any, Callable, List, NamedTuple, Optional, Sequence

from experiments.harness import jobs, queue, records, tasks
from experiments.harness import slots as slots_lib

_POLL_SECONDS = 0.2  # Some tasks take seconds.


class _Host(NamedTuple):
  process: 'subprocess.Popen[bytes]'
  connection: 'connection_lib.Connection'


class Hosts:
  """The processes of a worker, whose slots are all alike."""

  def __init__(self, on_news: Callable[[Any, Any], None]):
    """Prepares what `start` begins.

    Args:
      on_news: takes a task and what it reports.
    """
    self._on_news = on_news
    self._all: List[_Host] = []
    self._idle: List[_Host] = []

  def start(
    self, folder: pathlib.Path, task: tasks.Task, slot: slots_lib.Slot
  ) -> jobs.Execution:
    """Has an idle process execute a task, or else a new one."""
    log = records.path_of(folder, task, 'log')
    if not self._idle:
      self._idle.append(self._new(folder, slot, log))
    host = self._idle.pop()
    with contextlib.suppress(BrokenPipeError):  # `poll` finds that it has died.
      host.connection.send((task, folder, log))

    def poll() -> Optional[int]:
      try:
        while host.connection.poll():
          has_ended, content = host.connection.recv()
          if has_ended:
            self._idle.append(host)
            return int(content)
          self._on_news(task, content)
      except (EOFError, ConnectionResetError):
        return host.process.wait()
      return None

    return jobs.Execution(host.process, poll)

  def close(self) -> None:
    """Ends all processes."""
    for host in self._all:
      host.process.kill()
      host.process.wait()

  def _new(
    self, folder: pathlib.Path, slot: slots_lib.Slot, log: pathlib.Path
  ) -> _Host:
    ours, theirs = multiprocessing.Pipe()
    number = theirs.fileno()
    command = [sys.executable, '-m', 'experiments.harness.host', str(number)]
    process = jobs.start_process(command, folder, slot, log, pass_fds=[number])
    theirs.close()
    self._all.append(_Host(process, ours))
    return self._all[-1]


def complete(
  folder: pathlib.Path,
  todo: Sequence[tasks.Task],
  *,
  processes: int,
  say: Callable[[str], None],
  on_done: Callable[[Any], None],
  on_news: Callable[[Any, Any], None] = lambda task, news: None,
) -> int:
  """Executes what is not done, beside other workers on the same folder.

  Args:
    folder: the folder of all tasks.
    todo: the tasks, in their order.
    processes: how many are executed at a time.
    say: is called with a line of news.
    on_done: takes each task that is done.
    on_news: takes a task and what it reports.

  Returns:
    An exit code, after it is said what has gone wrong.
  """
  with contextlib.closing(Hosts(on_news)) as hosts:
    ended = queue.Worker(
      folder,
      todo,
      slots_lib.unpinned(processes),
      start=hosts.start,
      say=say,
      on_done=on_done,
      poll_seconds=_POLL_SECONDS,
    ).work()
  for task in ended.failed:
    say(records.failure(folder, task))
  if ended.exit_code:
    say(f'{ended} The same command goes on with what is left.')
  return ended.exit_code
