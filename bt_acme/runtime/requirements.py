"""Checks a run's settings against its agent and this machine, on any engine.

`bt_acme.config` rejects settings that are wrong on every machine.
"""

import glob
import importlib.util
import os

from bt_acme import assembly, memory_check
from bt_acme.config import run as run_config


def check(run: run_config.RunConfig, agent: assembly.Agent) -> None:
  """Checks that the settings can take effect, and that the memory suffices.

  Raises:
    ValueError: if a setting has no effect, the learner would never start, two
      processes would need the same TPU, or the memory is too small.
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
  memory_check.check(memory_check.estimate(run, agent))


def _uses_tpu() -> bool:
  """Returns whether JAX uses a TPU of this machine, without starting JAX."""
  chips = glob.glob('/dev/accel*') + glob.glob('/dev/vfio/[0-9]*')
  platforms = os.environ.get('JAX_PLATFORMS') or 'tpu'
  has_compiler = importlib.util.find_spec('libtpu') is not None
  return bool(chips) and has_compiler and 'tpu' in platforms.split(',')


def num_cores() -> int:
  """Returns the number of cores that this process may use."""
  if hasattr(os, 'sched_getaffinity'):
    return len(os.sched_getaffinity(0))
  return os.cpu_count() or 1


def oversubscription_warning(run: run_config.RunConfig) -> str:
  """Returns a warning if there are more actors than cores; otherwise empty."""
  cores = num_cores()
  if not run.has_nodes or run.spans_machines or run.num_actors <= cores:
    return ''
  return (
    f'num_actors={run.num_actors} exceeds the number of cores ({cores}). Use '
    'fewer actors and a larger envs_per_actor to save time and memory with the '
    'same number of environments.'
  )
