"""Drives a Ray cluster for `engines.ray_cluster`, in its own environment.

This script imports only the standard library and Ray, and is executed by path.
Ray's protobuf therefore never meets TensorFlow's, and the program's environment
does not need Ray. The driver reads commands from standard input and writes
events to standard output, one JSON object per line.

Commands: {"do": "place", "title", "num_ports", "options"}, {"do": "start",
"title", "command", "environment", "data_file", "folder"}, {"do": "signal",
"title", "signum"}, {"do": "release", "title"}. The data file is a path on this
machine, or "" for none. The end of the input releases everything.
A node that has exited may be started again in its slot, or placed again.

Events are those of `runtime.events`, such as {"event": "NodeExited", "title",
"code", "reason"}. The bytes of "data" are encoded as Latin-1 characters.

If the driver cannot join the cluster, it prints the reason to standard error
and exits with code 1.
"""

import asyncio
import contextlib
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from typing import Any

import node_process  # In the directory of this script.
import ray
from ray.util import scheduling_strategies

_WAITING_SECONDS = 5.0  # The user is informed of longer waits for a slot.
_RELEASE_SECONDS = 5.0  # Timeout for the last output of a killed process.
_LONGEST_COMMAND = 1 << 24  # Bytes.
_REACH_SECONDS = 5.0  # Timeout for the answer of the cluster's head.
_LOST = -signal.SIGKILL  # The exit code of a node whose slot was lost.
# Variables that Ray sets in its workers, or that belong to Ray's own Python.
_OF_RAY = ('RAY_', 'OMP_NUM_THREADS', 'PYTHONPATH', 'VIRTUAL_ENV')
# Placeholders in a command for values that only a node's machine knows.
_PARENT = '{parent}'
_DATA_FILE = '{data_file}'


class NodeRunner:
  """Ray actor that reserves a node's slot and runs the node's process there.

  Ray sends this class to other machines, because it belongs to a script.
  """

  def __init__(self) -> None:
    self._process: subprocess.Popen | None = None

  def find_ports(self, number: int) -> tuple[str, list[int]]:
    """Returns this machine's address, and some of its free ports."""
    with contextlib.ExitStack() as stack:
      probes = [stack.enter_context(socket.socket()) for _ in range(number)]
      for probe in probes:
        probe.bind(('', 0))
      ports = [probe.getsockname()[1] for probe in probes]
    return ray.util.get_node_ip_address(), ports

  def run(
    self,
    command: list[str],
    environment: Mapping[str, str],
    data: bytes,
    folder: str,
  ) -> Iterator[dict[str, Any]]:
    """Runs the process until it exits.

    The kernel kills the process when the thread that started it ends, which is
    the thread of this generator.

    Args:
      command: the words of the command, with `_PARENT` and `_DATA_FILE`.
      environment: environment variables in addition to those of the machine.
      data: the content of the file whose path replaces `_DATA_FILE`.
      folder: the working directory, if it exists on this machine.

    Yields:
      Events of the driver, without the title: `started`, any number of
      `Output`, and `NodeExited`.
    """
    own = {k: v for k, v in os.environ.items() if not k.startswith(_OF_RAY)}
    with tempfile.TemporaryDirectory() as own_folder:
      try:
        path = os.path.join(own_folder, 'data')
        with open(path, 'wb') as file:
          file.write(data)
        known = {_PARENT: str(os.getpid()), _DATA_FILE: path}
        process, pipes = node_process.start(
          [known.get(word, word) for word in command],
          {**own, **environment},
          cwd=folder if os.path.isdir(folder) else None,
        )
      except OSError as error:
        reason = f'cannot be started on {socket.gethostname()}: {error}.'
        yield {'event': 'NodeExited', 'code': 1, 'reason': reason}
        return
      self._process = process
      yield {'event': 'started'}
      for stream, data in node_process.follow(process, pipes):
        text = data.decode('latin-1')
        yield {'event': 'Output', 'stream': stream, 'data': text}
      yield {'event': 'NodeExited', 'code': process.returncode}

  def signal(self, signum: int) -> None:
    """Sends a signal to the process; SIGKILL goes to its whole session."""
    assert self._process is not None
    node_process.send(self._process, signum)


class PlacedNode:
  """A node's slot on a machine, and its process there."""

  def __init__(self, title: str, num_ports: int, options: dict[str, Any]):
    """Initializes the node and asks Ray for a slot.

    Args:
      title: the node's title, `LABEL/INDEX`.
      num_ports: the number of ports that the node listens on.
      options: the resources that the node reserves.
    """
    self._title = title
    self._options = options
    self._host = ''
    self._is_running = False
    self._is_lost = False
    self._signals: list[int] = []  # Received before the process started.
    runner_class = ray.remote(NodeRunner)
    self._runner = runner_class.options(
      max_concurrency=4, max_restarts=0, **_strategy(options)
    ).remote()
    self._tasks = [asyncio.create_task(self._place(num_ports))]

  def start(self, **what: Any) -> None:
    """Starts the process, once the node has a slot."""
    self._signals.clear()
    self._tasks.append(asyncio.create_task(self._run(what)))

  def signal(self, signum: int) -> None:
    """Sends a signal to the process, once it runs."""
    if self._is_running:
      self._runner.signal.remote(signum)
    else:
      self._signals.append(signum)

  async def release(self) -> None:
    """Kills the process and its child processes, and frees the slot."""
    if self._is_running:
      self.signal(signal.SIGKILL)
      await asyncio.wait(self._tasks[-1:], timeout=_RELEASE_SECONDS)
    self.drop()

  def drop(self) -> None:
    """Frees the slot."""
    for task in self._tasks:
      task.cancel()
    ray.kill(self._runner)

  async def _place(self, num_ports: int) -> None:
    """Waits for a slot, and informs the user if that takes long."""
    answer = self._runner.find_ports.remote(num_ports).as_future()
    try:
      done, _ = await asyncio.wait([answer], timeout=_WAITING_SECONDS)
      if not done:
        self._tell('NodePending', reason=self._shortage())
      self._host, ports = await answer
      addresses = [f'{self._host}:{port}' for port in ports]
      self._tell('NodeScheduled', host=self._host, addresses=addresses)
    except Exception as error:  # Ray raises not only its own exceptions.
      self._lose(error)

  def _shortage(self) -> str:
    wanted = {k: v for k, v in self._options.items() if v}
    free = {
      name: amount
      for name, amount in sorted(ray.available_resources().items())
      if name in ('CPU', 'GPU')
    }
    return f'it requests {wanted}, and the cluster has {free} free.'

  async def _run(self, what: dict[str, Any]) -> None:
    """Runs the process until it exits, and forwards its events."""
    run = self._runner.run.options(num_returns='streaming')
    try:
      async for reference in run.remote(**what):
        event = await reference
        if event['event'] == 'started':
          self._is_running = True
          for signum in self._signals:
            self.signal(signum)
          continue
        self._tell(**event)
        if event['event'] == 'NodeExited':
          self._is_running = False
          return
    except Exception as error:  # Ray raises not only its own exceptions.
      self._lose(error)

  def _lose(self, error: Exception) -> None:
    """Posts the exit of a node whose slot was lost, once."""
    if self._is_lost:
      return
    self._is_running, self._is_lost = False, True
    what = 'could not be scheduled'
    if self._host:
      what = f'was lost with its machine or its Ray actor on {self._host}'
    reason = f'{what}: {_cause(error)}'
    self._tell('NodeExited', code=_LOST, reason=reason, lost=True)

  def _tell(self, event: str, **more: Any) -> None:
    _tell(event=event, title=self._title, **more)


def _strategy(options: dict[str, Any]) -> dict[str, Any]:
  """Converts a node's options into those of `ray.remote`."""
  options = {'num_cpus': 0, **options}
  strategy: Any = 'SPREAD'
  if options.pop('here'):
    strategy = scheduling_strategies.NodeAffinitySchedulingStrategy(
      ray.get_runtime_context().get_node_id(), soft=False
    )
  return {**options, 'scheduling_strategy': strategy}


async def _drive() -> None:
  """Executes the commands from standard input until it ends."""
  nodes: dict[str, PlacedNode] = {}
  data: dict[str, Any] = {'': b''}  # By path.
  reader = asyncio.StreamReader(limit=_LONGEST_COMMAND)
  await asyncio.get_running_loop().connect_read_pipe(
    lambda: asyncio.StreamReaderProtocol(reader), sys.stdin.buffer
  )
  while line := await reader.readline():
    command = json.loads(line)
    do, title = command.pop('do'), command.pop('title', '')
    node = nodes.get(title)
    if do == 'place':
      if node is not None:
        node.drop()
      nodes[title] = PlacedNode(title, **command)
    elif node is None:
      continue
    elif do == 'start':
      path = command.pop('data_file')
      if path not in data:  # Each machine fetches the data once.
        try:
          data[path] = ray.put(pathlib.Path(path).read_bytes())
        except OSError as error:
          reason = f'could not be started: {error}.'
          _tell(event='NodeExited', title=title, code=1, reason=reason)
          continue
      node.start(**command, data=data[path])
    elif do == 'signal':
      node.signal(command['signum'])
    elif do == 'release':
      await nodes.pop(title).release()
  await asyncio.gather(*(node.release() for node in nodes.values()))


def _cause(error: Exception) -> str:
  """Returns the most informative line of a Ray error.

  For a lost actor, the first line is the same for all causes, and the indented
  lines are fields of the actor.
  """
  lines = [line for line in str(error).splitlines() if line.strip()]
  causes = [line for line in lines[1:] if not line[0].isspace()]
  return ' '.join((causes or lines or [repr(error)])[0].split())


_output = sys.stdout.buffer


def _tell(**event: Any) -> None:
  _output.write(json.dumps(event).encode() + b'\n')
  _output.flush()


def _check_reachable(address: str) -> None:
  """Raises OSError if nothing listens there; Ray would retry for a minute."""
  host, _, port = address.rpartition(':')
  if not host:  # The address is `auto`.
    return
  try:
    socket.create_connection((host, int(port)), _REACH_SECONDS).close()
  except OSError as error:
    raise OSError(
      f'no answer from the head of a cluster at {address}: {error}'
    ) from error


def main(address: str) -> None:
  """Connects to a cluster, and executes commands until the input ends.

  Args:
    address: the address of the cluster's head.
  """
  global _output
  # Ray prints to standard output, which is reserved for events.
  _output = os.fdopen(os.dup(1), 'wb')
  os.dup2(2, 1)
  try:
    _check_reachable(address)
    # The other machines do not have this module.
    ray.cloudpickle.register_pickle_by_value(node_process)
    ray.init(address=address, log_to_driver=False, logging_level='WARNING')
  except Exception as error:
    sys.exit([*str(error).strip().splitlines(), repr(error)][0])
  asyncio.run(_drive())
  ray.shutdown()


if __name__ == '__main__':
  main(*sys.argv[1:])
