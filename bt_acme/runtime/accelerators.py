"""Finds the accelerators of this machine that JAX would use.

JAX itself cannot be asked: once started, it would reserve their memory. Which
processes see an accelerator is decided in `environment_variables`.
"""

import glob
import importlib.util
import os
import pathlib
import re
import subprocess

_GPU_TOOL = 'nvidia-smi'  # It comes with the driver.
_GPU_TOOL_SECONDS = 20.0  # A broken driver may never answer.
_PCI_VENDORS = '/sys/bus/pci/devices/*.0/vendor'
# The memory of a TPU chip by its PCI device: v4, v5p, v5e and v6e.
_TPU_GB = {'0x005e': 32, '0x0062': 95, '0x0063': 16, '0x006f': 32}


def uses_tpu() -> bool:
  """Returns whether JAX uses a TPU of this machine, without starting JAX."""
  chips = glob.glob('/dev/accel*') + glob.glob('/dev/vfio/[0-9]*')
  # JAX starts every platform of the list.
  return bool(chips) and 'tpu' in _platforms('tpu') and _has('libtpu')


def _platforms(default: str) -> list[str]:
  """Returns the platforms that JAX may use; the first one is its default."""
  platforms = os.environ.get('JAX_PLATFORMS') or default
  return platforms.replace('gpu', 'cuda').split(',')


def _has(package: str) -> bool:
  """Returns whether a package is installed, without importing it."""
  return importlib.util.find_spec(package) is not None


def tpu_memories() -> list[int]:
  """Returns the memory of each TPU chip that JAX uses, without starting JAX.

  Chips of unknown size are left out.
  """
  if _platforms('tpu')[0] != 'tpu' or not uses_tpu():
    return []
  devices = [
    path.with_name('device').read_text().strip()
    for path in map(pathlib.Path, glob.glob(_PCI_VENDORS))
    if path.read_text().strip() == '0x1ae0'  # Google.
  ]
  return [_TPU_GB[device] * 10**9 for device in devices if device in _TPU_GB]


def gpu_memories() -> list[int]:
  """Returns the memory of each GPU that JAX uses, without starting JAX."""
  plugins = ('jax_cuda12_plugin', 'jax_cuda13_plugin')
  if _platforms('cuda')[0] != 'cuda' or not any(map(_has, plugins)):
    return []
  command = [_GPU_TOOL, '--query-gpu=index,uuid,memory.total', '--format=csv']
  try:
    listed = subprocess.run(
      command,
      capture_output=True,
      text=True,
      check=False,
      timeout=_GPU_TOOL_SECONDS,
    ).stdout
  except (OSError, subprocess.TimeoutExpired):  # No driver, or a broken one.
    return []
  gpus = re.findall(r'(?m)^(\d+), (\S+), (\d+) MiB$', listed)
  visible = os.environ.get('CUDA_VISIBLE_DEVICES')
  if visible is None:
    visible = ','.join(index for index, _, _ in gpus)
  return _visible_memories(gpus, visible)


def _visible_memories(
  gpus: list[tuple[str, str, str]], visible: str
) -> list[int]:
  """Returns the memory of each visible GPU.

  Args:
    gpus: index, UUID and memory in MiB of each GPU.
    visible: indices, UUIDs or starts of UUIDs, separated by commas. As in CUDA,
      the first entry that matches no GPU ends the list.
  """
  memories = []
  for name in visible.split(','):
    name = name.strip()
    found = [
      int(memory) << 20
      for index, uuid, memory in gpus
      if name == index or (name.startswith('GPU-') and uuid.startswith(name))
    ]
    if len(found) != 1:
      break
    memories += found
  return memories
