"""Keeps a node's place on a machine, and its process, for `ray_driver`.

It is sent to the machines of the cluster as it is, and imports the standard
library and Ray alone.
"""

import base64
import contextlib
import os
import queue
import signal
import socket
import subprocess
import tempfile
import threading
from typing import Any, List, Mapping, Optional, Tuple

import ray

_READ_SIZE = 1 << 16
_BATCH_SECONDS = 5.0  # A keeper without news answers after this time.
# What Ray sets in its workers, and what belongs to its own Python.
_OF_RAY = ('RAY_', 'OMP_NUM_THREADS', 'PYTHONPATH', 'VIRTUAL_ENV')
# These stand in a command for what only the keeper knows.
_PARENT = '{parent}'
_DATA_FILE = '{data_file}'


class NodeRunner:
  """Keeps a node's place on a machine, and its process; a Ray actor."""

  def __init__(self) -> None:
    self._events: queue.Queue = queue.Queue()
    self._process: Optional[subprocess.Popen] = None  # Of the latest life.
    self._signals: List[int] = []  # Those that came before its process.
    self._lock = threading.Lock()  # Held while either of the two changes.

  def find_ports(self, number: int) -> Tuple[str, List[int]]:
    """Returns this machine's address, and free ports of it."""
    probes = [socket.socket() for _ in range(number)]
    for probe in probes:
      probe.bind(('', 0))
    ports = [probe.getsockname()[1] for probe in probes]
    for probe in probes:
      probe.close()
    return ray.util.get_node_ip_address(), ports

  def start(self, **what: Any) -> None:
    """Starts the node's process; its output and its end become events.

    Args:
      **what: the arguments of `_run`.
    """
    with self._lock:
      self._process = None
    # The kernel kills the process when the thread that started it ends, so that
    # this thread stays as long as the process.
    threading.Thread(target=self._run, kwargs=what, daemon=True).start()

  def signal(self, signum: int) -> None:
    """Sends a signal to the process, or to its whole session if it kills."""
    with self._lock:
      if self._process is None:
        self._signals.append(signum)
      elif self._process.poll() is None:
        self._send(signum)

  def next_events(self) -> List[Tuple[Any, ...]]:
    """Waits for events, for some seconds at most.

    Returns:
      ('output', base64 text, whether it is standard error), and in the end
      ('ended', exit code, reason).
    """
    try:
      events = [self._events.get(timeout=_BATCH_SECONDS)]
    except queue.Empty:
      return []
    while not self._events.empty():
      events.append(self._events.get())
    return events

  def _send(self, signum: int) -> None:
    assert self._process is not None
    if signum == signal.SIGKILL:
      try:
        os.killpg(self._process.pid, signum)
      except ProcessLookupError:
        pass
    else:
      self._process.send_signal(signum)

  def _run(
    self,
    command: List[str],
    environment: Mapping[str, str],
    data: bytes,
    folder: str,
  ) -> None:
    """Runs the process to its end.

    Args:
      command: its words, with `_PARENT` and `_DATA_FILE`.
      environment: its variables besides those of the machine.
      data: the content of the file that takes the place of `_DATA_FILE`.
      folder: where it runs, if this machine has the folder.
    """
    own = {k: v for k, v in os.environ.items() if not k.startswith(_OF_RAY)}
    with contextlib.ExitStack() as stack:
      try:
        own_folder = stack.enter_context(tempfile.TemporaryDirectory())
        path = os.path.join(own_folder, 'data')
        with open(path, 'wb') as file:
          file.write(data)
        known = {_PARENT: str(os.getpid()), _DATA_FILE: path}
        process = subprocess.Popen(
          [known.get(word, word) for word in command],
          stdin=subprocess.DEVNULL,
          stdout=subprocess.PIPE,
          stderr=subprocess.PIPE,
          bufsize=0,
          start_new_session=True,
          cwd=folder if os.path.isdir(folder) else None,
          env={**own, **environment},
        )
      except OSError as error:
        with self._lock:
          self._signals = []
        reason = f'cannot be started on {socket.gethostname()}: {error}.'
        self._events.put(('ended', 1, reason))
        return
      with self._lock:
        self._process = process
        for signum in self._signals:
          self._send(signum)
        self._signals = []
      readers = [
        threading.Thread(target=self._read, args=arguments, daemon=True)
        for arguments in ((process.stdout, False), (process.stderr, True))
      ]
      for reader in readers:
        reader.start()
      code = process.wait()
      self._send(signal.SIGKILL)  # Whatever the process has started.
      for reader in readers:
        reader.join()
      self._events.put(('ended', code, ''))

  def _read(self, pipe: Any, is_error: bool) -> None:
    while True:
      data = pipe.read(_READ_SIZE)
      if not data:
        return
      self._events.put(('output', base64.b64encode(data).decode(), is_error))
