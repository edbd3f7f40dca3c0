"""Parses slots, shares of a machine that each execute one run at a time.

`cpu:4` stands for four slots of one core each, and `cpu` for one slot per core.
`gpu:0` is one slot with that GPU, and `gpu:0/2` stands for two slots that share
the GPU. Commas separate several items.
"""

import os
import re
import subprocess
import sys
from collections.abc import Sequence

from bt_acme.runtime import environment_variables
from experiments.harness import processes

_MOST_ON_A_GPU = 4
# The share of a GPU's memory for JAX in total, and for the inference server of
# each run (`bt_acme.runtime.environment_variables`).
_GPU_MEMORY, _SERVER_MEMORY = 0.95, 0.2

_NO_MEMORY = {'XLA_PYTHON_CLIENT_PREALLOCATE': 'false'}


def parse(text: str) -> list[processes.Slot]:
  """Parses a list of slots.

  Args:
    text: the list. Its cores are those that this process may use, so that
      workers on one machine can divide its cores with `taskset`.

  Raises:
    ValueError: if the text is malformed or requests more cores than exist.
  """
  slots: list[processes.Slot] = []
  left = environment_variables.cores()
  for part in text.split(','):
    found = re.fullmatch(r'cpu(?::([0-9]+))?|gpu:([0-9]+)(?:/([0-9]+))?', part)
    if found is None:
      raise ValueError(
        f'slots={text!r}: {part!r} is not a slot. Use cpu for all cores, cpu:4 '
        'for four cores, gpu:0 for a GPU, or gpu:0/2 for two runs on one GPU.'
      )
    count, device, share = found.groups()
    if device is not None:
      if any(s.variables.get('CUDA_VISIBLE_DEVICES') == device for s in slots):
        raise ValueError(
          f'slots={text!r}: GPU {device} occurs twice. Use gpu:{device}/2.'
        )
      slots += _gpu(device, int(share or 1), text)
      continue
    number = len(left) if count is None else int(count)
    if not 0 < number <= len(left):
      raise ValueError(
        f'slots={text!r}: {part!r} requests {number} cores, but only '
        f'{len(left)} are left. Choose from cpu:1 to cpu:{len(left)}.'
      )
    slots += [
      processes.Slot(
        f'core {core}', environment_variables.one_core(), frozenset([core])
      )
      for core in left[:number]
    ]
    left = left[number:]
  return slots


def unpinned(number: int) -> list[processes.Slot]:
  """Returns slots of one thread each, which are not pinned to cores."""
  return [processes.Slot('', environment_variables.one_core())] * number


def check(slots: Sequence[processes.Slot]) -> None:
  """Raises ValueError for a slot whose GPU is not visible to JAX.

  Without this check, JAX would only warn and train on the CPU. The check runs
  in a separate process that sees a single GPU, as the process of a run does.
  """
  gpus = [slot for slot in slots if slot.is_gpu]
  by_device = {slot.variables['CUDA_VISIBLE_DEVICES']: slot for slot in gpus}
  for device, slot in by_device.items():
    found = subprocess.run(
      [sys.executable, '-c', 'import jax; jax.devices("gpu")'],
      env={**os.environ, **slot.variables, **_NO_MEMORY},
      capture_output=True,
      check=False,
    )
    if found.returncode:
      raise ValueError(
        f'slots=gpu:{device}: JAX does not find this GPU. Choose --slots=cpu, '
        'or install JAX with CUDA if the machine has a GPU.'
      )


def _gpu(device: str, share: int, text: str) -> list[processes.Slot]:
  if not 0 < share <= _MOST_ON_A_GPU:
    raise ValueError(
      f'slots={text!r}: {share} runs cannot share a GPU. Choose from 1 to '
      f'{_MOST_ON_A_GPU} runs.'
    )
  variables = {'CUDA_VISIBLE_DEVICES': device}
  if share > 1:
    fraction = _GPU_MEMORY / share - _SERVER_MEMORY
    names = environment_variables.GPU_SHARES
    variables |= zip(names, ('', f'{fraction:.3f}'), strict=True)
  return [processes.Slot(f'GPU {device}', variables, is_gpu=True)] * share
