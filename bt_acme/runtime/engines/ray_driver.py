"""Drives a Ray cluster for `engines.ray_cluster`, in an environment of its own.

It imports the standard library and Ray alone, and is executed by path: Ray's
protobuf then never meets TensorFlow's, and the program's environment needs no
Ray. It takes commands from standard input and writes events to standard output,
a JSON object in each line.

Commands: {"do": "place", "title", "num_ports", "options"}, {"do": "keep",
"name", "data"}, {"do": "start", "title", "command", "environment", "data",
"folder"} with the name of data that it keeps, {"do": "signal", "title",
"signum"}, {"do": "release", "title"}. The end of the input releases everything.
A node that has ended may be started again, at its place or, if that was lost,
at another. A node that has ended may also be placed anew.

With a second argument, `machines`, it takes no commands, and tells of the
machines of the cluster: {"event": "machines", "machines"}.

Events: {"event": "refused", "reason"} before this process ends, {"event":
"placed", "title", "host", "ports"}, {"event": "waiting", "title", "reason"},
{"event": "output", "title", "data", "is_error"}, {"event": "ended", "title",
"code", "reason"}, with "lost" if the place is gone with it, {"event":
"released", "title"}. Bytes are in base64.

Each node has a keeper (`ray_node`), a Ray actor on the node's machine.
"""

import base64
import json
import os
import queue
import signal
import socket
import sys
import threading
import time
from typing import Any, Dict, List, Optional

import ray
import ray_node  # Of the folder of this script.
from ray import exceptions
from ray.util import scheduling_strategies

_POLL_SECONDS = 0.05  # Between two looks at commands, while nothing happens.
_WAITING_SECONDS = 5.0  # After this time without a place the user is told.
_REACH_SECONDS = 5.0  # Within this time the cluster's head has to answer.
_LOST = -signal.SIGKILL  # The exit code of a node whose keeper is gone.


class Node:
  """A node, as the driver knows it.

  Attributes:
    title: its title, `LABEL/INDEX`.
    num_ports: the number of ports that it listens on.
    options: the options of its keeper.
    keeper: the handle of its keeper.
    pending: the reference of the answer that the keeper owes; None if none.
    placed: whether it has a place.
    host: the machine of its place.
    started: whether its keeper was told to start its process.
    lost: whether its keeper is gone.
    waiting_told: whether the user knows that it waits for one.
    ended: whether its end was told.
    asked: when the place was asked for, in seconds.
  """

  def __init__(self, title: str, num_ports: int, options: Dict[str, Any]):
    self.title = title
    self.num_ports = num_ports
    self.options = dict(options)
    self.placed = False
    self.host = ''
    self.started = False
    self.ended = False
    self.lost = False
    self.waiting_told = False
    self.asked = time.monotonic()
    keeper_class = ray.remote(ray_node.NodeRunner)
    self.keeper = keeper_class.options(
      max_concurrency=4, max_restarts=0, **_strategy(self.options)
    ).remote()
    self.pending = self.keeper.find_ports.remote(num_ports)


def _strategy(options: Dict[str, Any]) -> Dict[str, Any]:
  """Turns a node's options into those of `ray.remote`."""
  options = {'num_cpus': 0, **options}
  strategy: Any = 'SPREAD'
  if options.pop('here'):
    strategy = scheduling_strategies.NodeAffinitySchedulingStrategy(
      ray.get_runtime_context().get_node_id(), soft=False
    )
  return {**options, 'scheduling_strategy': strategy}


class Driver:
  """Executes commands and tells events."""

  def __init__(self, commands: queue.Queue):
    """Takes over a queue of commands, in which None stands for the end."""
    self._commands = commands
    self._nodes: Dict[str, Node] = {}
    self._data: Dict[str, Any] = {'': b''}

  def run(self) -> None:
    """Runs until the commands end."""
    while True:
      command = self._next_command()
      if command is None:
        break
      if command:
        getattr(self, '_' + command.pop('do'))(**command)
      self._look()
    for title in list(self._nodes):
      self._release(title)

  def _next_command(self) -> Optional[Dict[str, Any]]:
    """Returns a command, {} for none yet, or None at their end."""
    is_owed = any(n.pending is not None for n in self._nodes.values())
    try:
      return self._commands.get(block=not is_owed)
    except queue.Empty:
      return {}

  def _place(self, title: str, num_ports: int, options: Dict[str, Any]) -> None:
    if title in self._nodes:
      ray.kill(self._nodes[title].keeper)
    self._nodes[title] = Node(title, num_ports, options)

  def _keep(self, name: str, data: str) -> None:
    """Keeps what nodes are started with; each machine fetches it once."""
    self._data[name] = ray.put(base64.b64decode(data))

  def _start(self, title: str, data: str, **what: Any) -> None:
    node = self._nodes[title]
    what['data'] = self._data[data]
    if node.lost and node.num_ports:
      reason = 'cannot start anew: others know it by the address that it lost.'
      _tell(event='ended', title=title, code=_LOST, reason=reason, lost=True)
      return
    if node.lost:
      node = self._nodes[title] = Node(title, 0, node.options)
    # Ray holds this back until the keeper has a place.
    node.keeper.start.remote(**what)
    node.started, node.ended = True, False
    if node.placed:
      node.pending = node.keeper.next_events.remote()

  def _signal(self, title: str, signum: int) -> None:
    if title in self._nodes:
      self._nodes[title].keeper.signal.remote(signum)

  def _release(self, title: str) -> None:
    node = self._nodes.pop(title, None)
    if node is not None:
      if node.placed and not node.ended:
        # What the process has started in its turn dies with it, and the rest of
        # its output comes.
        try:
          ray.get(node.keeper.signal.remote(int(signal.SIGKILL)), timeout=5)
          while not node.ended and node.pending is not None:
            self._tell_all(node, ray.get(node.pending, timeout=5))
        except exceptions.RayError:
          pass  # It is gone already.
      ray.kill(node.keeper)
    _tell(event='released', title=title)

  def _look(self) -> None:
    """Tells what has happened since the last look."""
    owed = {n.pending: n for n in self._nodes.values() if n.pending is not None}
    if not owed:
      return
    ready, _ = ray.wait(list(owed), num_returns=len(owed), timeout=0)
    if not ready and self._commands.empty():
      ready, _ = ray.wait(list(owed), num_returns=1, timeout=_POLL_SECONDS)
    for reference in ready:
      self._take(owed[reference], reference)
    for node in self._nodes.values():
      if not (node.placed or node.waiting_told or node.ended):
        self._tell_waiting(node)

  def _take(self, node: Node, reference: Any) -> None:
    """Takes a keeper's answer."""
    node.pending = None
    try:
      answer = ray.get(reference)
    except exceptions.RayError as error:
      self._lose(node, error)
      return
    if node.placed:
      self._tell_all(node, answer)
      return
    node.placed = True
    node.host, ports = answer
    _tell(event='placed', title=node.title, host=node.host, ports=ports)
    if node.started:
      node.pending = node.keeper.next_events.remote()

  def _tell_waiting(self, node: Node) -> None:
    if time.monotonic() - node.asked < _WAITING_SECONDS:
      return
    node.waiting_told = True
    wanted = {k: v for k, v in node.options.items() if v}
    free = {
      name: amount
      for name, amount in sorted(ray.available_resources().items())
      if name in ('CPU', 'GPU')
    }
    reason = f'it asks for {wanted}, and free in the cluster are {free}.'
    _tell(event='waiting', title=node.title, reason=reason)

  def _tell_all(self, node: Node, events: List[Any]) -> None:
    for kind, *values in events:
      if kind == 'output':
        data, is_error = values
        _tell(event='output', title=node.title, data=data, is_error=is_error)
      else:
        code, reason = values
        node.ended = True
        _tell(event='ended', title=node.title, code=code, reason=reason)
    node.pending = None if node.ended else node.keeper.next_events.remote()

  def _lose(self, node: Node, error: Exception) -> None:
    node.lost = True
    if node.ended:
      return
    node.ended = True
    what = 'got no place'
    if node.placed:
      what = f'was lost with its machine or its keeper on {node.host}'
    _tell(
      event='ended',
      title=node.title,
      code=_LOST,
      reason=f'{what}: {_cause(error)}',
      lost=True,
    )


def _cause(error: Exception) -> str:
  """Returns the line of an error of Ray's that says most.

  The first one of a lost actor is the same for all causes, and fields of the
  actor follow, which are indented.
  """
  lines = [line for line in str(error).splitlines() if line.strip()]
  causes = [line for line in lines[1:] if not line[0].isspace()]
  return ' '.join((causes or lines or [repr(error)])[0].split())


_output = sys.stdout.buffer
_output_lock = threading.Lock()


def _tell(**event: Any) -> None:
  with _output_lock:
    _output.write(json.dumps(event).encode() + b'\n')
    _output.flush()


def _read(commands: queue.Queue) -> None:
  for line in sys.stdin.buffer:
    commands.put(json.loads(line))
  commands.put(None)


def _check_reachable(address: str) -> None:
  """Raises an OSError if nothing listens there; Ray would try for a minute."""
  host, _, port = address.rpartition(':')
  if not host:  # It is `auto`.
    return
  try:
    socket.create_connection((host, int(port)), _REACH_SECONDS).close()
  except OSError as error:
    raise OSError(
      f'no head of a cluster answers at {address}: {error}'
    ) from error


def _machines() -> List[Dict[str, Any]]:
  """Returns the machines of the cluster, as `ray_cluster.Machine` has them."""
  return [
    {
      'id': node['NodeID'],
      'host': node['NodeManagerAddress'],
      'resources': {
        'num_cpus': node['Resources'].get('CPU', 0.0),
        'num_gpus': node['Resources'].get('GPU', 0.0),
      },
    }
    for node in ray.nodes()
    if node['Alive']
  ]


def main(address: str, question: str = '') -> int:
  """Connects to a cluster, and executes commands until they end.

  Args:
    address: of the cluster's head.
    question: `machines` asks for these only, in an event, and for no commands.
  """
  global _output
  # Ray prints to standard output, which belongs to the events.
  _output = os.fdopen(os.dup(1), 'wb')
  os.dup2(2, 1)
  try:
    _check_reachable(address)
    # The other machines do not have the module.
    ray.cloudpickle.register_pickle_by_value(ray_node)
    ray.init(address=address, log_to_driver=False, logging_level='WARNING')
  except Exception as error:
    words = str(error).strip().splitlines() or [repr(error)]
    _tell(event='refused', reason=words[0])
    return 1
  if question:
    _tell(event='machines', machines=_machines())
    ray.shutdown()
    return 0
  commands: queue.Queue = queue.Queue()
  threading.Thread(target=_read, args=(commands,), daemon=True).start()
  Driver(commands).run()
  ray.shutdown()
  return 0


if __name__ == '__main__':
  sys.exit(main(*sys.argv[1:]))
