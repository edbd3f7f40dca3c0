"""The slots of a Ray cluster, as if they were of this machine.

Ray chooses the machine of each run. It is only in the environment of a process
of its own (`ray_tasks`), which this module starts and talks to.
"""

import base64
import contextlib
import itertools
import json
import os
import pathlib
import pickle
import shutil
import signal
import subprocess
import sys
import threading
from concurrent import futures
from typing import Any, Dict, Iterator, List, Tuple

from experiments.harness import pool
from experiments.harness import slots as slots_lib

_SCRIPT = pathlib.Path(__file__).with_name('ray_tasks.py')
_ANSWER_SECONDS = 60.0  # For a cluster to tell of its machines.
# What a machine executes: a run, in a process of its own.
_EXECUTE = (
  'import base64, pickle, sys\n'
  f'sys.path.insert(0, {str(pool.ROOT)!r})\n'
  'from experiments.harness import pool\n'
  'sys.exit(pool.execute(*pickle.loads(base64.b64decode(sys.argv[1]))))'
)


class Cluster:
  """A cluster that this process has joined."""

  def __init__(self, address: str, python: str):
    """Joins it.

    Args:
      address: of the cluster's head, `HOST:PORT`, or `auto`.
      python: the Python of an environment with Ray.

    Raises:
      ValueError: if there is no such environment, or no such cluster.
    """
    if not shutil.which(python):
      raise ValueError(
        f'ray_python={python!r} is not an executable. Run `make ray` to create '
        'an environment with Ray, or pass the path of your own Python.'
      )
    # Without an authentication, whoever reaches a port of Ray runs code.
    variables = {'RAY_AUTH_MODE': 'token', **os.environ}
    variables.pop('PYTHONPATH', None)
    self._process = subprocess.Popen(
      [python, str(_SCRIPT), address],
      env=variables,
      stdin=subprocess.PIPE,
      stdout=subprocess.PIPE,
      stderr=subprocess.DEVNULL,
      text=True,
      start_new_session=True,
    )
    self._numbers = itertools.count()
    self._futures: Dict[int, 'futures.Future[int]'] = {}
    self._reader = threading.Thread(target=self._read, daemon=True)
    # The end of a process that does not answer in time is its answer.
    timer = threading.Timer(_ANSWER_SECONDS, self._process.kill)
    timer.start()
    assert self._process.stdout is not None
    answer = json.loads(self._process.stdout.readline() or '{}')
    timer.cancel()
    if 'machines' not in answer:
      self.close()
      raise ValueError(
        f'ray_address={address!r}, ray_python={python!r}: '
        f'{answer.get("refused", "no Ray cluster answers").rstrip(".")}. '
        'docs/clusters.md has what a cluster needs.'
      )
    self._machines: List[Dict[str, int]] = answer['machines']
    self._reader.start()

  def processes(self, text: str) -> 'List[ClusterProcess]':
    """Returns a process for each slot of all machines.

    Args:
      text: the slots of each machine, as `slots.parse` reads them. What a
        machine does not offer Ray is left out.

    Raises:
      ValueError: if no machine offers any of them.
    """
    slots = [
      slot
      for machine in self._machines
      for slot in slots_lib.parse(text, range(machine['CPU']), machine['GPU'])
    ]
    if not slots:
      raise ValueError(
        f'slots={text!r}: no machine of the cluster offers a core or a GPU of '
        'these: see its `ray status`.'
      )
    return [ClusterProcess(self, slot) for slot in slots]

  def start(self, **what: Any) -> 'Tuple[int, futures.Future[int]]':
    """Starts a command; returns its number, and its exit code to come."""
    number = next(self._numbers)
    future: 'futures.Future[int]' = futures.Future()
    self._futures[number] = future
    self.tell(id=number, **what)
    return number, future

  def tell(self, **request: Any) -> None:
    """Sends Ray's process a request.

    Raises:
      ValueError: if it has lost the cluster, and ended.
    """
    assert self._process.stdin is not None
    try:
      self._process.stdin.write(json.dumps(request) + '\n')
      self._process.stdin.flush()
    except OSError as error:
      raise ValueError('ray_address: the connection to Ray is lost.') from error

  def close(self) -> None:
    """Ends all that is executed, and leaves the cluster."""
    self._process.kill()
    self._process.wait()
    if self._reader.is_alive():
      self._reader.join()
    for pipe in (self._process.stdin, self._process.stdout):
      assert pipe is not None
      with contextlib.suppress(BrokenPipeError):
        pipe.close()

  def _read(self) -> None:
    assert self._process.stdout is not None
    for line in self._process.stdout:
      answer = json.loads(line)
      self._futures.pop(answer['id']).set_result(answer['code'])
    for future in self._futures.values():
      future.set_result(128 + signal.SIGKILL)


class ClusterProcess:
  """A slot of the cluster, which is used like a `pool.Process`.

  Attributes:
    slot: its share of a machine.
  """

  def __init__(self, cluster: Cluster, slot: pool.Slot):
    # Ray says which of its GPUs a run may use, and cores are not kept.
    variables = dict(slot.variables)
    variables.pop('CUDA_VISIBLE_DEVICES', None)
    self.slot = slot._replace(
      name=f'{"a GPU" if slot.is_gpu else "a core"} of the cluster',
      variables=variables,
      cores=frozenset(),
    )
    self._cluster = cluster

  def start(self, call: pool.Call, log: pathlib.Path) -> 'futures.Future[int]':
    """Executes a run, whose output replaces a log."""
    what = base64.b64encode(pickle.dumps((self.slot, call, log))).decode()
    self._number, future = self._cluster.start(
      command=[sys.executable, '-c', _EXECUTE, what],
      folder=str(pool.ROOT),
      options={
        'num_cpus': 0 if self.slot.is_gpu else 1,
        'num_gpus': self.slot.gpu_share,
      },
    )
    return future

  def exit_code(self, future: 'futures.Future[int]') -> int:
    """Returns the exit code of a run that has ended; negative for a signal.

    Raises:
      ValueError: if its machine does not have the folder of all runs.
    """
    code = future.result()
    if code == pool.NOT_SHARED:
      raise ValueError(
        'folder: a machine of the cluster does not have it, and all machines '
        'have to share it (docs/clusters.md).'
      )
    return code

  def news(self) -> Iterator[Any]:
    """Yields nothing: scripts report nothing."""
    return iter(())

  def stop(self) -> None:
    """Asks the run to save itself and to end."""
    self._cluster.tell(id=self._number, signum=int(signal.SIGINT))

  def kill(self) -> None:
    """Ends the run, at once."""
    self._cluster.tell(id=self._number, signum=int(signal.SIGKILL))

  def close(self) -> None:
    """Keeps the slot; `Cluster.close` ends what is executed."""
