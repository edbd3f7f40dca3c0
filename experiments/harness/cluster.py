"""Slots on a Ray cluster, with the same interface as local slots.

Ray selects the machine of each run. Ray is installed only in a separate Python
environment, so this module starts a process there (`ray_tasks`) and
communicates with it.
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
_ANSWER_SECONDS = 60.0  # Time limit for a cluster to list its machines.
# Program that executes one run in its own process on a machine of the cluster.
_EXECUTE = (
  'import base64, pickle, sys\n'
  f'sys.path.insert(0, {str(pool.ROOT)!r})\n'
  'from experiments.harness import pool\n'
  'sys.exit(pool.execute(*pickle.loads(base64.b64decode(sys.argv[1]))))'
)


class Cluster:
  """A Ray cluster that this process is connected to."""

  def __init__(self, address: str, python: str):
    """Initializes the connection to a cluster.

    Args:
      address: address of the cluster's head, `HOST:PORT`, or `auto`.
      python: Python executable of an environment with Ray.

    Raises:
      ValueError: if the executable or the cluster cannot be found.
    """
    if not shutil.which(python):
      raise ValueError(
        f'ray_python={python!r} is not an executable. Run `make ray` to create '
        'an environment with Ray, or set ray_python to a Python in which Ray '
        'is installed.'
      )
    # Without authentication, anyone who can reach a port of Ray can run code.
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
    # Killing a process that does not answer in time unblocks the read below.
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
        'See docs/clusters.md for the requirements of a cluster.'
      )
    self._machines: List[Dict[str, int]] = answer['machines']
    self._reader.start()

  def processes(self, text: str) -> 'List[ClusterProcess]':
    """Returns a process for each slot of all machines.

    Args:
      text: the slots of each machine, in the syntax of `slots.parse`. Slots
        that a machine does not offer to Ray are omitted.

    Raises:
      ValueError: if no machine offers any of the slots.
    """
    slots = [
      slot
      for machine in self._machines
      for slot in slots_lib.parse(text, range(machine['CPU']), machine['GPU'])
    ]
    if not slots:
      raise ValueError(
        f'slots={text!r}: no machine of the cluster offers any of these cores '
        'or GPUs. Run `ray status` to see the available resources.'
      )
    return [ClusterProcess(self, slot) for slot in slots]

  def start(self, **what: Any) -> 'Tuple[int, futures.Future[int]]':
    """Starts a command; returns its number and the future of its exit code."""
    number = next(self._numbers)
    future: 'futures.Future[int]' = futures.Future()
    self._futures[number] = future
    self.tell(id=number, **what)
    return number, future

  def tell(self, **request: Any) -> None:
    """Sends a request to the process that runs Ray.

    Raises:
      ValueError: if that process has exited after losing the cluster.
    """
    assert self._process.stdin is not None
    try:
      self._process.stdin.write(json.dumps(request) + '\n')
      self._process.stdin.flush()
    except OSError as error:
      raise ValueError(
        'ray_address: lost the connection to Ray. Check the cluster, then '
        'rerun the same command.'
      ) from error

  def close(self) -> None:
    """Kills all running commands and disconnects from the cluster."""
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
  """A slot of the cluster, with the interface of `pool.Process`.

  Attributes:
    slot: the share of a machine that runs may use.
  """

  def __init__(self, cluster: Cluster, slot: pool.Slot):
    # Ray assigns the GPU of each run and does not pin runs to cores.
    variables = dict(slot.variables)
    variables.pop('CUDA_VISIBLE_DEVICES', None)
    self.slot = slot._replace(
      name=f'{"a GPU" if slot.is_gpu else "a core"} of the cluster',
      variables=variables,
      cores=frozenset(),
    )
    self._cluster = cluster

  def start(self, call: pool.Call, log: pathlib.Path) -> 'futures.Future[int]':
    """Starts a run and overwrites a log with its output."""
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
    """Returns the exit code of a finished run; negative for a signal.

    Raises:
      ValueError: if the machine of the run does not share the directory of all
        runs.
    """
    code = future.result()
    if code == pool.NOT_SHARED:
      raise ValueError(
        'folder: a machine of the cluster does not have this directory. Choose '
        'a directory that all machines share (see docs/clusters.md).'
      )
    return code

  def news(self) -> Iterator[Any]:
    """Yields nothing, because scripts do not report progress."""
    return iter(())

  def stop(self) -> None:
    """Asks the run to save its state and exit."""
    self._cluster.tell(id=self._number, signum=int(signal.SIGINT))

  def kill(self) -> None:
    """Kills the run."""
    self._cluster.tell(id=self._number, signum=int(signal.SIGKILL))

  def close(self) -> None:
    """Does nothing; `Cluster.close` kills running commands."""
