"""Executes commands on the machines of a Ray cluster.

  python ray_tasks.py ADDRESS

Requests are read from standard input and answers are written to standard
output, one JSON object per line. The first answer is {"machines": [{"CPU",
"GPU"}]} or {"refused": REASON}. The request {"id", "command", "folder",
"options"} starts a command with options for Ray, and {"id", "signum"} sends a
signal to a command. The answer {"id", "code"} reports that a command has
exited. At the end of the input, all commands are killed.

`harness.cluster` executes this file by path in a Python environment that has
Ray but not this repository's packages.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from typing import Any, Dict, List, Set

_REACH_SECONDS = 5.0  # Time limit for connecting to the cluster's head.
_LOST = 128 + signal.SIGKILL  # The exit code if a machine was lost.


class Command:
  """Ray actor that runs a command on one of the machines."""

  def __init__(self) -> None:
    self._is_running = threading.Event()

  def run(self, command: List[str], folder: str) -> int:
    """Executes the command and returns its exit code."""
    self._process = subprocess.Popen(
      command, cwd=folder, start_new_session=True
    )
    self._is_running.set()
    return self._process.wait()

  def signal(self, signum: int) -> None:
    """Sends the command a signal; SIGKILL also reaches its child processes."""
    self._is_running.wait()
    send = os.killpg if signum == signal.SIGKILL else os.kill
    send(self._process.pid, signum)


class Tasks:
  """The running commands."""

  def __init__(self, address: str):
    """Connects to a cluster.

    Raises:
      OSError: if no head listens at the address. Ray alone would retry for a
        minute.
    """
    host, _, port = address.rpartition(':')
    try:
      if host:  # The address is not `auto`.
        socket.create_connection((host, int(port)), _REACH_SECONDS).close()
    except OSError as error:
      raise OSError(f'no cluster head answers at {address}: {error}') from error
    import ray

    ray.init(address=address, log_to_driver=False, logging_level='ERROR')
    self._ray = ray
    self._actors: Dict[int, Any] = {}
    self._placed: Set[int] = set()  # The actors that Ray has scheduled.

  def machines(self) -> List[Dict[str, Any]]:
    """Returns the numbers of cores and GPUs of each machine."""
    return [
      {kind: int(node['Resources'].get(kind, 0)) for kind in ('CPU', 'GPU')}
      for node in self._ray.nodes()
      if node['Alive']
    ]

  def take(self, request: Dict[str, Any]) -> None:
    """Executes a request."""
    number = request.pop('id')
    if 'signum' not in request:
      options = {'max_concurrency': 2, **request.pop('options')}
      actor = self._ray.remote(Command).options(**options).remote()
      self._actors[number] = actor
      placed, code = actor.__ray_ready__.remote(), actor.run.remote(**request)
      threading.Thread(target=self._wait, args=(number, placed, code)).start()
    elif number in self._placed:
      self._actors[number].signal.remote(request['signum'])
    elif number in self._actors:
      self._ray.kill(self._actors[number])

  def _wait(self, number: int, placed: Any, code: Any) -> None:
    """Waits for a command and writes the answer with its exit code."""
    try:
      self._ray.get(placed)
      self._placed.add(number)
      answer = self._ray.get(code)
    except self._ray.exceptions.RayError:  # Such as a lost machine.
      answer = _LOST
    self._ray.kill(self._actors.pop(number))
    _answer(id=number, code=answer)


def _answer(**answer: Any) -> None:
  _output.write(json.dumps(answer) + '\n')
  _output.flush()


if __name__ == '__main__':
  # Ray prints to standard output, which is reserved for the answers.
  _output = os.fdopen(os.dup(1), 'w')
  os.dup2(2, 1)
  try:
    tasks = Tasks(sys.argv[1])
  except Exception as error:
    _answer(refused=(str(error).strip().splitlines() or [repr(error)])[0])
    sys.exit(1)
  _answer(machines=tasks.machines())
  for line in sys.stdin:
    tasks.take(json.loads(line))
  os._exit(0)  # Ray kills all commands when this process ends.
