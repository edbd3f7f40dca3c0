"""A worker on each machine of a Ray cluster, as one command.

The workers need nothing but the folder of all runs, which the machines share
(`experiments.harness.queue`). Ray only starts them, and tells of their ends.
"""

import functools
import os
import signal
import time
import types
from typing import Any, Callable, Dict, List, Sequence, Set, Tuple

from bt_acme.config import placement
from bt_acme.runtime import events
from bt_acme.runtime.engines import ray_cluster
from experiments.harness import jobs

# The label by which Ray knows a machine.
_MACHINE = 'ray.io/node-id'
# How a worker ends that has found nothing left to do: all is done, or some runs
# have failed. An error in Python ends it with 1.
_DONE, _SOME_FAILED, _ERROR = 0, jobs.SOME_FAILED, 1
# Upon the first a worker saves its runs, upon the second it kills them.
_SIGNALS = (signal.SIGTERM, signal.SIGTERM, signal.SIGKILL)


def find_machines(address: str, python: str) -> List[ray_cluster.Machine]:
  """Returns the machines of a cluster that offer a core or a GPU.

  Args:
    address: of the cluster's head, `HOST:PORT`, or `auto`.
    python: the Python of an environment with Ray.

  Raises:
    ValueError: if there is no such cluster, or none of its machines offers
      anything.
  """
  try:
    machines = ray_cluster.machines(address, python)
  except OSError as error:
    raise ValueError(
      f'ray_address={address!r}, ray_python={python!r}: '
      f'{str(error).rstrip(".")}. docs/clusters.md has what a cluster needs.'
    ) from error
  machines = [m for m in machines if any(m.resources.values())]
  if not machines:
    raise ValueError(
      f'ray_address={address!r}: no machine of the cluster offers a core or a '
      'GPU: see its `ray status`.'
    )
  return machines


def work(
  command: Sequence[str],
  machines: Sequence[ray_cluster.Machine],
  *,
  address: str,
  python: str,
  hours: float = float('inf'),
  say: Callable[[str], None] = print,
) -> int:
  """Has each machine of a cluster execute a command, and waits for all.

  Ray sets all cores and GPUs of each machine aside. A signal that stops this
  process has all workers save their runs and end; a second one kills the runs.
  If a machine vanishes, the others go on.

  Args:
    command: a worker's command line, the same on all machines. A worker ends
      with `jobs.SOME_FAILED` if some runs have failed.
    machines: what `find_machines` has found.
    address: of the cluster's head, `HOST:PORT`, or `auto`.
    python: the Python of an environment with Ray.
    hours: after so long all workers are stopped.
    say: is called with each line of a worker, after its machine's address.

  Returns:
    0 if all is done or the hours are over, 1 if some runs have failed; else the
    largest exit code of a worker, with `os.EX_SOFTWARE` for an error in Python.
  """
  places = {
    f'worker-{number}': placement.Place(
      here=False, resources=machine.resources, labels={_MACHINE: machine.id}
    )
    for number, machine in enumerate(machines)
  }
  hosts = {
    f'{label}/0': machine.host
    for label, machine in zip(places, machines, strict=True)
  }
  with events.EventQueue() as queue:
    workers = Workers(queue, hosts, command, hours=hours, say=say)
    for signum in jobs.stops_here():
      queue.on_signal(signum, functools.partial(workers.stop, signum))
    engine = ray_cluster.RayCluster(
      queue, address=address, python=python, places=places
    )
    try:
      return workers.run(engine)
    finally:
      engine.close()


class Workers:
  """The workers of a cluster, from their start to their end."""

  def __init__(
    self,
    queue: events.EventQueue,
    hosts: Dict[str, str],
    command: Sequence[str],
    *,
    hours: float,
    say: Callable[[str], None],
  ):
    """Starts nothing yet.

    Args:
      queue: takes what happens to them.
      hosts: the address of each one's machine, by the title of its node.
      command: see `work`, like what follows.
      hours: after so long all are stopped.
      say: takes their lines.
    """
    self._queue = queue
    self._hosts = hosts
    self._command = types.SimpleNamespace(command_as_list=list(command))
    self._deadline = time.monotonic() + 3600 * hours
    self._say = say
    self._engine: Any = None
    self._started: Set[str] = set()
    self._codes: Dict[str, int] = {}
    # The last line of each worker's output and of its errors, while it is torn.
    self._torn: Dict[Tuple[str, bool], bytes] = {}
    self._signums: List[int] = []
    self._is_over = False

  def run(self, engine: Any) -> int:
    """Starts all on an engine; returns the exit code once all have ended."""
    self._engine = engine
    for title in self._hosts:
      engine.place(title, 0)
    while len(self._codes) < len(self._hosts):
      event = self._queue.get(self._seconds_left())
      if isinstance(event, events.NodeScheduled):
        self._start(event.title)
      elif isinstance(event, events.NodePending):
        self._tell(event.title, f'waits for its machine: {event.reason}')
      elif isinstance(event, events.Output):
        self._take_output(event.title, event.is_error, event.data)
      elif isinstance(event, events.NodeExited):
        self._take_end(event)
      elif self._seconds_left() == 0 and not self._is_over:
        self._say('Stopping, because the hours are over.')
        self._is_over = True
        self._end_all(_SIGNALS[0], _DONE)
    return self._code()

  def stop(self, signum: int) -> None:
    """Has all workers end, after a signal to this process."""
    self._signums.append(signum)
    sent = _SIGNALS[min(len(self._signums), len(_SIGNALS)) - 1]
    self._end_all(sent, 128 + signum)
    self._queue.post(None)  # Wakes `run`.

  def _code(self) -> int:
    codes = set(self._codes.values())
    if self._signums:
      return 128 + self._signums[0]
    if _SOME_FAILED in codes:
      return 1
    if _DONE in codes or self._is_over:
      return _DONE
    if codes == {_ERROR}:
      return os.EX_SOFTWARE
    return max(code if code >= 0 else 128 - code for code in codes)

  def _seconds_left(self) -> Any:
    if self._is_over or self._deadline == float('inf'):
      return None
    return max(0.0, self._deadline - time.monotonic())

  def _start(self, title: str) -> None:
    if title not in self._codes:
      self._started.add(title)
      self._engine.start(title, self._command, {})

  def _end_all(self, signum: int, code: int) -> None:
    for title in self._started - set(self._codes):
      self._engine.signal(title, signum)
    self._give_up_places(code)

  def _give_up_places(self, code: int) -> None:
    """Does without the workers that have no machine yet."""
    for title in set(self._hosts) - self._started:
      self._codes.setdefault(title, code)

  def _take_output(self, title: str, is_error: bool, data: bytes) -> None:
    *lines, torn = (self._torn.pop((title, is_error), b'') + data).split(b'\n')
    if torn:
      self._torn[title, is_error] = torn
    for line in lines:
      self._tell(title, line.decode(errors='replace'))

  def _take_end(self, event: events.NodeExited) -> None:
    self._codes[event.title] = event.code
    for title, is_error in list(self._torn):
      if title == event.title:
        self._take_output(title, is_error, b'\n')
    if event.code in (_DONE, _SOME_FAILED):
      self._give_up_places(event.code)  # There is nothing left to do.
    elif not (self._signums or self._is_over):
      reason = event.reason or f'ended with exit code {event.code}.'
      self._tell(event.title, f'The worker {reason}')

  def _tell(self, title: str, text: str) -> None:
    self._say(f'[{self._hosts[title]}] {text}')
