"""Checks a run's settings against its agent and this machine, on any engine.

`bt_acme.config` rejects settings that are wrong on every machine.
"""

import math
import socket

from bt_acme import assembly, memory_check
from bt_acme import config as config_lib
from bt_acme.config import placement
from bt_acme.config import run as run_config
from bt_acme.runtime import accelerators, environment_variables


def check(run: run_config.RunConfig, agent: assembly.Agent) -> None:
  """Checks that the settings can take effect, and that the memory suffices.

  Raises:
    ValueError: if a setting has no effect, the learner would never start, two
      processes would need the same TPU, the memory of this machine, of its
      TPUs, or of a process's part of its GPUs is too small, or a port cannot be
      used.
  """
  if run.snapshots and agent.intrinsic is None:
    raise ValueError(
      f'snapshot_steps={run.snapshot_steps!r} exports behaviors during '
      f'pre-training, but {type(agent.config).__name__} does not pre-train. '
      'Remove snapshot_steps.'
    )
  if (
    run.inference == 'server'
    and not run.is_in_this_process
    and accelerators.uses_tpu()
  ):
    raise ValueError(
      "inference='server' selects actions in a second process on the learner's "
      'accelerator, but only one process can use a TPU. Choose '
      "inference='local', or set JAX_PLATFORMS=cpu to leave the TPU unused."
    )
  gpus, chips = accelerators.gpu_memories(), accelerators.tpu_memories()
  memory_check.check(
    memory_check.estimate(run, agent, has_accelerator=bool(gpus or chips))
  )
  if not run.spans_machines:
    _check_devices(run, agent, 'GPUs', gpus, 4)
    # A TPU multiplies in bfloat16 and may store operands in no other form.
    _check_devices(run, agent, 'TPU chips', chips, 2)
  _check_budget(run, agent.config.replay)
  if run.replay_port and placement.parse(run.placement)['replay']['here']:
    _check_free(run.replay_port)


def _check_budget(
  run: run_config.RunConfig, replay: config_lib.ReplayConfig
) -> None:
  """Raises ValueError if the replay would hardly fill up to its minimum.

  How many sequences a run produces depends on its episodes: one of n periods
  has n - K + 1 sequences of K periods, and at least one. The check assumes a
  sequence per period; the error suggests what also suffices for episodes of K.
  """
  num, period = run.num_environments, replay.sequence_period
  least = replay.min_replay_size
  in_each = math.ceil(run.max_actor_steps // num / period)
  fillable = min(run.max_actor_steps // period, num * in_each)
  if fillable < least:
    enough = math.ceil(least / num) * num * replay.sequence_length
    raise ValueError(
      f'max_actor_steps={run.max_actor_steps} produces only about {fillable} '
      f'sequences in {num} environments, fewer than min_replay_size={least}, '
      'so the learner would never start. Raise max_actor_steps, for example to '
      f'{enough}, lower min_replay_size, or choose a smaller preset.'
    )


def _check_free(port: int) -> None:
  """Raises ValueError if a server cannot listen on a port of this machine."""
  with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
    # A port counts as free while its last connections are in TIME_WAIT.
    probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
      probe.bind(('', port))
    except OSError as error:
      raise ValueError(
        f'replay_port={port} cannot be used ({error.strerror}). Choose another '
        'port, or end the program that uses this one.'
      ) from error


def _check_devices(
  run: run_config.RunConfig,
  agent: assembly.Agent,
  kind: str,
  memories: list[int],
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
    share = environment_variables.gpu_share(label) if kind == 'GPUs' else 1.0
    memory_check.check(
      needs,
      int(share * max(memories)),
      f"the part of each of this machine's {kind} for {label} ({share:.0%})",
    )


def oversubscription_warning(run: run_config.RunConfig) -> str:
  """Returns a warning if there are more actors than cores; otherwise empty."""
  cores = len(environment_variables.cores())
  if not run.uses_launchpad or run.spans_machines or run.num_actors <= cores:
    return ''
  return (
    f'num_actors={run.num_actors} exceeds the number of cores ({cores}). Use '
    'fewer actors and a larger envs_per_actor to save time and memory with the '
    'same number of environments.'
  )
