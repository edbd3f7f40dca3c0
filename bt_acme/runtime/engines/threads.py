"""Debugging engine that runs nodes as threads of this process (`local_mt`).

A thread can be asked to stop but not killed, and shares the environment,
devices and output of the process with all other threads.
"""

import os
import signal
import threading
import traceback
from collections.abc import Callable, Mapping
from typing import Any

from absl import flags
from launchpad.launch import worker_manager

from bt_acme.runtime import environment_variables, events, output
from bt_acme.runtime.engines import base

# Launchpad's manager handles these signals even with register_signals=False.
_TAKEN_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGQUIT, signal.SIGALRM)


class Threads(base.Engine):
  """Runs every node in its own thread of Launchpad's worker manager."""

  in_this_process = True

  def __init__(self, queue: events.EventQueue):
    super().__init__(queue)
    os.environ.update(environment_variables.NO_PROXY)
    output.show(
      'Warning: the ports of the nodes can be reached from other machines '
      'without a password (see SECURITY.md).'
    )
    if not flags.FLAGS.is_parsed():
      flags.FLAGS.mark_as_parsed()
    # Otherwise an alarm of Launchpad would kill this process.
    flags.FLAGS['lp_termination_notice_secs'].value = -1
    handlers = {signum: signal.getsignal(signum) for signum in _TAKEN_SIGNALS}
    self._manager = worker_manager.WorkerManager(register_signals=False)
    for signum, handler in handlers.items():
      signal.signal(signum, handler)
    self._stopping = False

  def start(
    self, title: str, executable: Any, environment: Mapping[str, str]
  ) -> str | None:
    """Starts a thread; see `base.Engine`."""
    del environment  # Threads share the environment of this process.
    self._manager.thread_worker(title, lambda: self._run(title, executable))
    return None

  def signal(self, title: str, signum: int) -> None:
    """Asks all nodes to stop, because Launchpad cannot ask a single one."""
    if not self._stopping:
      self._stopping = True
      # This waits for all threads, indefinitely if one of them does not stop.
      threading.Thread(target=self._manager.stop_and_wait, daemon=True).start()

  def release(self, title: str) -> None:
    """Does nothing: a thread that has not ended ends with this process."""

  def _run(self, title: str, function: Callable[[], Any]) -> None:
    """Runs a node, and posts its exit."""
    ended = events.NodeExited(title, 0)
    try:
      function()
    except BaseException as error:
      if not isinstance(error, SystemExit) or error.code:
        trace = ''.join(traceback.format_exception(error)).rstrip()
        ended = events.NodeExited(title, 1, 'failed.', trace)
    self._queue.put(ended)
