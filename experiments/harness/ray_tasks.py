"""Executes commands on the machines of a Ray cluster.

  python ray_tasks.py ADDRESS

It reads requests from its input and writes answers to its output, a JSON object
in each line. The first answer is {"machines": [{"CPU", "GPU"}]} or {"refused":
REASON}. Then {"id", "command", "folder", "options"} starts a command, with the
options that Ray takes, {"id", "signum"} sends it a signal, and the answer
{"id", "code"} tells of its end. The end of the input ends all commands.

`harness.cluster` executes this by its path in an environment that has Ray, and
nothing of ours.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from typing import Any, Dict, List, Set

_REACH_SECONDS = 5.0  # Within this time the cluster's head has to answer.
_LOST = 128 + signal.SIGKILL  # The exit code where a machine was lost.


class Command:
  """A command on one of the machines; a Ray actor."""

  def __init__(self) -> None:
    """Has a machine."""
    self._is_running = threading.Event()

  def run(self, command: List[str], folder: str) -> int:
    """Executes it, and returns its exit code."""
    self._process = subprocess.Popen(
      command, cwd=folder, start_new_session=True
    )
    self._is_running.set()
    return self._process.wait()

  def signal(self, signum: int) -> None:
    """Sends it a signal; the one that kills reaches all that it started."""
    self._is_running.wait()
    send = os.killpg if signum == signal.SIGKILL else os.kill
    send(self._process.pid, signum)


class Tasks:
  """All commands that are executed."""

  def __init__(self, address: str):
    """Joins a cluster.

    Raises:
      OSError: if nothing listens there; Ray would try for a minute.
    """
    host, _, port = address.rpartition(':')
    try:
      if host:  # It is not `auto`.
        socket.create_connection((host, int(port)), _REACH_SECONDS).close()
    except OSError as error:
      raise OSError(
        f'no head of a cluster answers at {address}: {error}'
      ) from error
    import ray

    ray.init(address=address, log_to_driver=False, logging_level='ERROR')
    self._ray = ray
    self._actors: Dict[int, Any] = {}
    self._placed: Set[int] = set()  # Of these, those that have a machine.

  def machines(self) -> List[Dict[str, Any]]:
    """Returns what each machine offers."""
    return [
      {kind: int(node['Resources'].get(kind, 0)) for kind in ('CPU', 'GPU')}
      for node in self._ray.nodes()
      if node['Alive']
    ]

  def take(self, request: Dict[str, Any]) -> None:
    """Does what a request says."""
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
    """Waits for the end of a command."""
    try:
      self._ray.get(placed)
      self._placed.add(number)
      answer = self._ray.get(code)
    except self._ray.exceptions.RayError:  # Its machine was lost, for example.
      answer = _LOST
    self._ray.kill(self._actors.pop(number))
    _answer(id=number, code=answer)


def _answer(**answer: Any) -> None:
  _output.write(json.dumps(answer) + '\n')
  _output.flush()


if __name__ == '__main__':
  # Ray prints to standard output, which belongs to the answers.
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
  os._exit(0)  # Which ends all commands.
