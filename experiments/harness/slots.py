"""Slots: the shares of a machine in which runs are executed.

`cpu:4` are four slots of one core each, and `cpu` has one for each core;
`gpu:0` is one slot with that GPU, and `gpu:0/2` are two slots that share it.
Several are separated by commas.
"""

import os
import re
import subprocess
import sys
from typing import Dict, List, Optional, Sequence

from bt_acme import compilation_cache
from experiments.harness import pool

# Processes read these when they start: each has one core for itself.
_ONE_THREAD = {
  'JAX_PLATFORMS': 'cpu',
  'OMP_NUM_THREADS': '1',
  'XLA_FLAGS': '--xla_cpu_multi_thread_eigen=false '
  'intra_op_parallelism_threads=1',
}
_MOST_ON_A_GPU = 4
# What JAX may take of a GPU's memory in all, and what the inference server of a
# run takes of it (`bt_acme.runtime.process_environments`).
_GPU_MEMORY, _SERVER_MEMORY = 0.95, 0.2

_NO_MEMORY = {'XLA_PYTHON_CLIENT_PREALLOCATE': 'false'}


def parse(
  text: str, cores: Optional[Sequence[int]] = None, num_gpus: int = 0
) -> List[pool.Slot]:
  """Reads a list of slots.

  Args:
    text: the list.
    cores: those of a machine of a cluster. If they are given, slots that the
      machine does not have are left out. If not, they are those that this
      process may use, so that two workers on one machine share its cores if
      each is started by `taskset`.
    num_gpus: that such a machine has.

  Raises:
    ValueError: if it is no such list, or asks for more cores than there are.
  """
  slots: List[pool.Slot] = []
  left = list(_cores() if cores is None else cores)
  for part in text.split(','):
    count, device, share = _read(part, text)
    if device is not None:
      gpu = _gpu(device, int(share or 1), text)
      slots += gpu if cores is None or int(device) < num_gpus else []
      continue
    number = len(left) if count is None else int(count)
    if cores is None and not 0 < number <= len(left):
      raise ValueError(
        f'slots={text!r}: {part!r} asks for {number} cores, and {len(left)} '
        f'are left here: choose from cpu:1 to cpu:{len(left)}.'
      )
    slots += [
      pool.Slot(f'core {core}', _one_thread(), frozenset([core]))
      for core in left[:number]
    ]
    left = left[number:]
  return slots


def _read(part: str, text: str) -> Sequence[Optional[str]]:
  """Returns the number of cores, the GPU and its share, if they are said."""
  found = re.fullmatch(r'cpu(?::([0-9]+))?|gpu:([0-9]+)(?:/([0-9]+))?', part)
  if found is None:
    raise ValueError(
      f'slots={text!r}: {part!r} is no slot: write cpu for all cores, cpu:4 '
      'for four, gpu:0 for a GPU, gpu:0/2 for two runs on it.'
    )
  return found.groups()


def unpinned(number: int) -> List[pool.Slot]:
  """Returns slots of one thread each, on whichever cores are free."""
  return [pool.Slot('', _one_thread())] * number


def check(slots: Sequence[pool.Slot]) -> None:
  """Raises ValueError for a slot whose GPU JAX does not find here.

  JAX would warn, and learn on the CPU. It is asked in a process of its own,
  which shows it one GPU as a run's does.
  """
  asked = set()
  for slot in slots:
    device = slot.variables.get('CUDA_VISIBLE_DEVICES', '')
    if not slot.is_gpu or device in asked:
      continue
    asked.add(device)
    found = subprocess.run(
      [sys.executable, '-c', 'import jax; jax.devices("gpu")'],
      env={**os.environ, **slot.variables, **_NO_MEMORY},
      capture_output=True,
      check=False,
    )
    if found.returncode:
      raise ValueError(
        f'slots=gpu:{device}: JAX finds no such GPU on this machine. Choose '
        '--slots=cpu, or install JAX with CUDA where there is one.'
      )


def _cores() -> List[int]:
  if hasattr(os, 'sched_getaffinity'):
    return sorted(os.sched_getaffinity(0))
  return list(range(os.cpu_count() or 1))  # It is no Linux.


def _one_thread() -> Dict[str, str]:
  return {**_ONE_THREAD, **compilation_cache.variables()}


def _gpu(device: str, share: int, text: str) -> List[pool.Slot]:
  if not 0 < share <= _MOST_ON_A_GPU:
    raise ValueError(
      f'slots={text!r}: {share} runs cannot share a GPU: choose from 1 to '
      f'{_MOST_ON_A_GPU}.'
    )
  variables = {
    **compilation_cache.variables(),
    'CUDA_VISIBLE_DEVICES': device,
  }
  if share > 1:
    fraction = _GPU_MEMORY / share - _SERVER_MEMORY
    variables['XLA_PYTHON_CLIENT_MEM_FRACTION'] = f'{fraction:.3f}'
  slot = pool.Slot(f'GPU {device}', variables, gpu_share=1 / share)
  return [slot] * share
