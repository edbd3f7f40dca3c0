"""Engine that runs nodes as processes on the machines of a Ray cluster (`ray`).

Ray selects machines, starts and stops processes, and detects lost ones. Nodes
communicate through Courier and Reverb, as on one machine. Ray itself is only
installed in the environment of the driver (`engines.ray_driver`), a process
that this engine starts and sends commands to. The driver reports a node whose
machine was lost, and the supervisor decides what follows.
"""

import contextlib
import json
import os
import pathlib
import queue as queue_lib
import signal
import subprocess
import threading
from collections.abc import Mapping
from typing import Any

from bt_acme.runtime import events
from bt_acme.runtime.engines import base, node_process, processes

_DRIVER = pathlib.Path(__file__).with_name('ray_driver.py')
_ANSWER_SECONDS = 60.0  # Timeout for the answer of a cluster.
_CLOSE_SECONDS = 15.0  # Timeout for the driver to end all nodes and exit.
# The last bytes of the driver's standard error explain why it exited.
_LAST_BYTES = 2_000
# Environment variables that mean the same on every machine.
_SHARED_VARIABLES = ('PYTHONPATH', 'JAX_', 'XLA_', 'TF_', 'GLIBC_TUNABLES')
_DATA_FLAG = '--data_file'


def check(address: str, python: str) -> None:
  """Checks that a cluster answers.

  Args:
    address: the address of the cluster's head, `HOST:PORT`, or `auto`.
    python: the Python interpreter of an environment with Ray.

  Raises:
    OSError: if the cluster does not answer, or the environment has no Ray.
  """
  try:
    driver = subprocess.run(
      [python, str(_DRIVER), address],
      input=b'',  # Without commands, the driver only connects.
      capture_output=True,
      check=False,
      env=_environment(),
      timeout=_ANSWER_SECONDS,
    )
  except subprocess.TimeoutExpired as error:
    raise OSError(
      f'no answer from the head of a Ray cluster at {address} within '
      f'{_ANSWER_SECONDS:.0f} s'
    ) from error
  if driver.returncode:
    raise OSError(_last_line(driver.stderr))


class RayCluster(base.Engine):
  """Runs every node in its own process, on a machine that Ray selects."""

  def __init__(
    self,
    queue: events.EventQueue,
    *,
    address: str,
    python: str,
    places: Mapping[str, Mapping[str, Any]],
  ):
    """Initializes the engine, and starts the driver, which joins the cluster.

    Args:
      queue: see `base.Engine`.
      address: the address of the cluster's head, `HOST:PORT`, or `auto`.
      python: the Python interpreter of an environment with Ray.
      places: by label, the options of each node (see `placement.parse`). Nodes
        of other labels run on the machine of the launcher.
    """
    super().__init__(queue)
    self._places = places
    self._running: set[str] = set()  # Nodes scheduled but not yet exited.
    self._hosts: dict[str, str] = {}
    self._partial = b''  # The start of the driver's next message.
    self._errors = b''
    self._driver = subprocess.Popen(
      [
        *processes.killed_with(str(os.getpid())),
        *(python, str(_DRIVER), address),
      ],
      stdin=subprocess.PIPE,
      stdout=subprocess.PIPE,
      stderr=subprocess.PIPE,
      start_new_session=True,
      env=_environment(),
    )
    # A driver that hangs may not read, so this thread never writes to it.
    self._commands: queue_lib.Queue = queue_lib.Queue()
    self._threads = [
      threading.Thread(target=target, daemon=True)
      for target in (self._follow, self._write)
    ]
    for thread in self._threads:
      thread.start()

  def place(self, title: str, num_ports: int) -> None:
    """Asks Ray for a slot; see `base.Engine`."""
    self._running.add(title)
    self._hosts.pop(title, None)
    options = self._places.get(title.partition('/')[0], {'here': True})
    self._tell('place', title=title, num_ports=num_ports, options=options)

  def start(
    self, title: str, executable: Any, environment: Mapping[str, str]
  ) -> str:
    """Starts a process in the cluster; see `base.Engine`."""
    command, data_file = list(executable.command_as_list), ''
    self._running.add(title)
    if _DATA_FLAG in command:
      # Launchpad's file with the functions of all nodes of the label.
      index = command.index(_DATA_FLAG) + 1
      data_file, command[index] = command[index], '{data_file}'
      command += processes.NO_NOTICE
    shared = {
      name: value
      for name, value in os.environ.items()
      if name.startswith(_SHARED_VARIABLES)
    }
    self._tell(
      'start',
      title=title,
      command=[*processes.killed_with('{parent}'), *command],
      environment={**shared, **environment},
      data_file=data_file,
      folder=os.getcwd(),
    )
    return f'a process on {self._hosts.get(title, "another machine")}'

  def signal(self, title: str, signum: int) -> None:
    """Sends a signal; see `base.Engine`."""
    self._tell('signal', title=title, signum=int(signum))

  def release(self, title: str) -> None:
    """Ends a process and frees its slot; see `base.Engine`."""
    self._running.discard(title)
    self._tell('release', title=title)

  def close(self) -> None:
    """Waits until the driver has ended all nodes and exited."""
    self._commands.put(None)  # The driver then releases everything.
    try:
      self._driver.wait(_CLOSE_SECONDS)
    except subprocess.TimeoutExpired:
      node_process.send(self._driver, signal.SIGKILL)
      self._driver.wait()
    for thread in self._threads:
      thread.join()

  def _tell(self, do: str, **arguments: Any) -> None:
    """Sends a command to the driver, unless the driver has exited."""
    self._commands.put(f'{json.dumps({"do": do, **arguments})}\n'.encode())

  def _write(self) -> None:
    """Writes the commands until the engine is closed."""
    assert self._driver.stdin is not None
    for line in iter(self._commands.get, None):
      try:
        self._driver.stdin.write(line)
        self._driver.stdin.flush()
      except BrokenPipeError:
        # The other thread reads why the driver has exited.
        self._threads[0].join(_CLOSE_SECONDS)
        self._lose_all()
    with contextlib.suppress(BrokenPipeError):
      self._driver.stdin.close()

  def _follow(self) -> None:
    """Posts the events that the driver sends until it exits."""
    assert self._driver.stdout is not None and self._driver.stderr is not None
    pipes = {'stdout': self._driver.stdout, 'stderr': self._driver.stderr}
    try:
      for stream, data in node_process.follow(self._driver, pipes):
        if stream == 'stdout':
          self._take(data)
        else:
          self._errors = (self._errors + data)[-_LAST_BYTES:]
    finally:  # Otherwise, the launcher would wait forever after a failure.
      self._lose_all()

  def _take(self, data: bytes) -> None:
    """Posts the events in the output of the driver."""
    *lines, self._partial = (self._partial + data).split(b'\n')
    for line in lines:
      message = json.loads(line)
      if 'data' in message:
        message['data'] = message['data'].encode('latin-1')
      event = getattr(events, message.pop('event'))(**message)
      if isinstance(event, events.NodeScheduled):
        self._hosts[event.title] = event.host
      elif isinstance(event, events.NodeExited):
        self._running.discard(event.title)
        if event.lost:  # Ray will select its next machine.
          self._hosts.pop(event.title, None)
      self._queue.put(event)

  def _lose_all(self) -> None:
    """Posts the exit of all nodes, because the driver has exited."""
    text = f'lost the connection to Ray: {_last_line(self._errors)}'
    with contextlib.suppress(KeyError):
      while True:
        title = self._running.pop()
        self._queue.put(events.NodeExited(title, -signal.SIGKILL, text))


def _last_line(errors: bytes) -> str:
  """Returns the last line of standard error, which explains an exit."""
  lines = errors.decode(errors='replace').strip().splitlines()
  return lines[-1] if lines else 'the driver exited silently'


def _environment() -> dict[str, str]:
  """Returns the environment variables of the driver."""
  # Without authentication, anyone who reaches a port of Ray can run code.
  defaults = {'RAY_AUTH_MODE': 'token'}
  own = {k: v for k, v in os.environ.items() if k != 'PYTHONPATH'}
  return {**defaults, **own}
