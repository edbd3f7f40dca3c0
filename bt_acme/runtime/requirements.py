"""Checks a run's settings against its agent and this machine, on any engine.

`bt_acme.config` rejects settings that are wrong on every machine.
"""

import glob
import importlib.util
import os
import pathlib
import re
import subprocess
from typing import List, Tuple

from bt_acme import assembly, memory_check
from bt_acme.config import run as run_config
from bt_acme.runtime import process_environments

_GPU_TOOL = 'nvidia-smi'  # It comes with the driver.
_GPU_TOOL_SECONDS = 20.0  # A broken driver may never answer.
_PCI_VENDORS = '/sys/bus/pci/devices/*.0/vendor'
# The memory of a TPU chip by its PCI device: v4, v5p, v5e and v6e.
_TPU_GB = {'0x005e': 32, '0x0062': 95, '0x0063': 16, '0x006f': 32}


def check(run: run_config.RunConfig, agent: assembly.Agent) -> None:
  """Checks that the settings can take effect, and that the memory suffices.

  Raises:
    ValueError: if a setting has no effect, the learner would never start, two
      processes would need the same TPU, or the memory of this machine, of its
      TPUs, or of a process's part of its GPUs is too small.
  """
  replay = agent.config.replay
  if run.snapshots and agent.intrinsic is None:
    raise ValueError(
      f'snapshot_steps={run.snapshot_steps!r} exports behaviors during '
      f'pre-training, but {type(agent.config).__name__} does not pre-train. '
      'Remove snapshot_steps.'
    )
  fillable = run.max_actor_steps // replay.sequence_period
  if fillable < replay.min_replay_size:
    raise ValueError(
      f'max_actor_steps={run.max_actor_steps} produces only about {fillable} '
      f'sequences, fewer than min_replay_size={replay.min_replay_size}, so the '
      'learner would never start. Raise max_actor_steps, lower '
      'min_replay_size, or choose a smaller preset.'
    )
  if run.inference == 'server' and not run.is_in_this_process and _uses_tpu():
    raise ValueError(
      "inference='server' selects actions in a second process on the learner's "
      'accelerator, but only one process can use a TPU. Choose '
      "inference='local', or set JAX_PLATFORMS=cpu to leave the TPU unused."
    )
  gpus, chips = _gpu_memories(), _tpu_memories()
  memory_check.check(
    memory_check.estimate(run, agent, has_accelerator=bool(gpus or chips))
  )
  if not run.spans_machines:
    _check_devices(run, agent, 'GPUs', gpus, 4)
    # A TPU multiplies in bfloat16 and may store operands in no other form.
    _check_devices(run, agent, 'TPU chips', chips, 2)


def _check_devices(
  run: run_config.RunConfig,
  agent: assembly.Agent,
  kind: str,
  memories: List[int],
  operand_size: int,
) -> None:
  """Raises ValueError if a process does not fit into its part of a device."""
  if not memories:
    return
  number = agent.config.learner.num_devices or len(memories)
  parts = {'learner': memory_check.estimate_device(agent, number, operand_size)}
  if run.inference == 'server':
    label = 'learner' if run.is_in_this_process else 'inference'
    server = memory_check.estimate_server(run, agent)
    parts[label] = parts.get(label, []) + server
  for label, needs in parts.items():
    share = process_environments.gpu_share(label) if kind == 'GPUs' else 1.0
    memory_check.check(
      needs,
      int(share * max(memories)),
      f"the part of each of this machine's {kind} for {label} ({share:.0%})",
    )


def _uses_tpu() -> bool:
  """Returns whether JAX uses a TPU of this machine, without starting JAX."""
  chips = glob.glob('/dev/accel*') + glob.glob('/dev/vfio/[0-9]*')
  # JAX starts every platform of the list.
  return bool(chips) and 'tpu' in _platforms('tpu') and _has('libtpu')


def _platforms(default: str) -> List[str]:
  """Returns the platforms that JAX may use; the first one is its default."""
  platforms = os.environ.get('JAX_PLATFORMS') or default
  return platforms.replace('gpu', 'cuda').split(',')


def _has(package: str) -> bool:
  """Returns whether a package is installed, without importing it."""
  return importlib.util.find_spec(package) is not None


def _tpu_memories() -> List[int]:
  """Returns the memory of each TPU chip that JAX uses, without starting JAX.

  Chips of unknown size are left out.
  """
  if _platforms('tpu')[0] != 'tpu' or not _uses_tpu():
    return []
  devices = [
    path.with_name('device').read_text().strip()
    for path in map(pathlib.Path, glob.glob(_PCI_VENDORS))
    if path.read_text().strip() == '0x1ae0'  # Google.
  ]
  return [_TPU_GB[device] * 10**9 for device in devices if device in _TPU_GB]


def _gpu_memories() -> List[int]:
  """Returns the memory of each GPU that JAX uses, without starting JAX."""
  if _platforms('cuda')[0] != 'cuda' or not _has('jax_cuda12_plugin'):
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
  gpus: List[Tuple[str, str, str]], visible: str
) -> List[int]:
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


def oversubscription_warning(run: run_config.RunConfig) -> str:
  """Returns a warning if there are more actors than cores; otherwise empty."""
  cores = len(process_environments.cores())
  if not run.has_nodes or run.spans_machines or run.num_actors <= cores:
    return ''
  return (
    f'num_actors={run.num_actors} exceeds the number of cores ({cores}). Use '
    'fewer actors and a larger envs_per_actor to save time and memory with the '
    'same number of environments.'
  )
