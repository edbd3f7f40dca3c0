"""Checks that a run fits into memory, before anything is started.

Every requirement is a lower bound, except for those of the replay, a cautious
estimate (`replay.memory_estimate`), and of episodic memories, which are assumed
to be full. `runtime.launch_checks` compares them with the memory of this
machine and of its GPUs and TPUs.
"""

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import haiku as hk
import jax
import numpy as np

from bt_acme import assembly, learner_assembly
from bt_acme import config as config_lib
from bt_acme.acting import grouped_core
from bt_acme.config import placement as placement_lib
from bt_acme.config import run as run_config
from bt_acme.core import jaxprs
from bt_acme.core.intrinsic import rewards
from bt_acme.replay import blocks, fields, memory_estimate

# The private memory of an actor or evaluator, with JAX and compiled functions;
# 310 MB were measured on MiniGrid. The few other processes are ignored.
_PROCESS_BYTES = 250 * 10**6
# The memory of the smallest environments, those of MiniGrid.
_ENVIRONMENT_BYTES = 10**5
# One batch is filled while the learner reads another.
_BATCHES = 2


class MemoryRequirement(NamedTuple):
  """The memory that a part of a run requires.

  Attributes:
    settings: the settings that determine the amount, with their values.
    what: the part, with a verb: 'a full replay takes'.
    num_bytes: the amount of memory.
    advice: a sentence that says how to reduce the amount.
  """

  settings: str
  what: str
  num_bytes: int
  advice: str = 'Lower one of these settings.'


def estimate(
  run: run_config.RunConfig,
  agent: assembly.Agent,
  *,
  has_accelerator: bool = False,
) -> list[MemoryRequirement]:
  """Lists the memory requirements of a run on this machine.

  For a run that spans machines, these are only nodes that do not act and whose
  machine the placement does not choose.

  Args:
    run: the run.
    agent: the agent of the run.
    has_accelerator: whether JAX uses an accelerator of this machine. An
      inference server then computes the rewards, and stores all states there.
  """
  replay = agent.config.replay
  block = blocks.block_dtype(agent.replay_layout).itemsize
  evaluators = run.num_evaluators
  if not run.uses_launchpad:
    evaluators = min(evaluators, 1)
  processes = run.num_actors + run.num_evaluators
  if run.is_in_this_process:
    processes = 1
  acting = [
    MemoryRequirement(
      _settings(run, 'num_actors', 'num_evaluators'),
      f'{processes:,} processes take',
      processes * _PROCESS_BYTES,
      'Lower one of these settings, and raise envs_per_actor if necessary.',
    ),
    environments(
      agent,
      run.num_environments,
      f'{_num_environments(run)}, sequence_period={replay.sequence_period}',
      block,
      has_memories=run.inference == 'local' or not has_accelerator,
    ),
    environments(
      agent,
      evaluators * run.evaluation_episodes,
      _settings(run, 'num_evaluators', 'evaluation_episodes'),
    ),
  ]
  others = {
    'learner': [_learner(agent), _batches(agent)],
    'replay': [_replay(agent)],
  }
  if run.inference == 'server' and not has_accelerator:
    others['inference'] = estimate_server(run, agent, has_rewards=False)
  placed = placement_lib.parse(run.placement)
  here = [label for label in others if placed[label]['here']]
  needs = [need for label in here for need in others[label]]
  return needs if run.spans_machines else acting + needs


def estimate_device(
  agent: assembly.Agent, num_devices: int, operand_size: int = 4
) -> list[MemoryRequirement]:
  """Lists the memory requirements of the learner on each of several devices.

  Args:
    agent: the agent that learns.
    num_devices: the number of devices that share a batch.
    operand_size: the number of bytes in which a device stores a number that it
      multiplies, if it is not smaller anyway.
  """
  return [
    _learner(agent),
    _batches(agent, num_devices),
    _activations(agent, num_devices, operand_size),
  ]


def estimate_server(
  run: run_config.RunConfig, agent: assembly.Agent, *, has_rewards: bool = True
) -> list[MemoryRequirement]:
  """Lists the memory requirements of the inference server on its device.

  Args:
    run: the run.
    agent: the agent that acts.
    has_rewards: whether the server also computes intrinsic rewards.
  """
  core = grouped_core.GroupedCore(
    agent, group_size=run.group_size, rewards=has_rewards
  )
  # Padding uses an additional group.
  params, *states = core.shapes(run.num_environments + run.group_size)
  settings = _num_environments(run)
  if has_rewards:
    settings += _memory_settings(agent)
  return [
    MemoryRequirement(
      settings,
      f'the state of {run.num_environments:,} environments takes',
      hk.data_structures.tree_bytes(states),
      "Lower one of these settings, or choose inference='local'.",
    ),
    MemoryRequirement(
      _network_settings(agent),
      'the networks that act take',
      hk.data_structures.tree_bytes(params),
    ),
  ]


def check(
  needs: list[MemoryRequirement],
  memory: int | None = None,
  owner: str = 'this machine',
) -> None:
  """Checks that all requirements together fit into a memory.

  Args:
    needs: the list that one of the functions above returned.
    memory: the number of bytes; None for the memory of this machine.
    owner: the owner of the memory, for the message.

  Raises:
    ValueError: if they do not fit; the message names the largest requirement.
  """
  memory = memory_estimate.available_memory() if memory is None else memory
  total = sum(need.num_bytes for need in needs)
  if total <= memory:
    return
  largest = max(needs, key=lambda need: need.num_bytes)
  size = memory_estimate.size_in_words
  raise ValueError(
    f'{largest.settings}: {owner} has {size(memory)}, but {largest.what} '
    f'about {size(largest.num_bytes)} and everything else '
    f'{size(total - largest.num_bytes)}. {largest.advice}'
  )


def _settings(group: Any, *names: str) -> str:
  """Formats some settings of a group with their values."""
  return ', '.join(f'{name}={getattr(group, name)!r}' for name in names)


def _num_environments(run: run_config.RunConfig) -> str:
  if run.uses_launchpad:
    return _settings(run, 'num_actors', 'envs_per_actor')
  return f'{run.environments_setting}={run.num_environments}'


def environments(
  agent: assembly.Agent,
  number: int,
  settings: str,
  num_bytes: int = 0,
  *,
  has_memories: bool = True,
) -> MemoryRequirement:
  """Returns the requirement of environments and their episodic memories.

  Args:
    agent: the agent that acts in the environments.
    number: the number of environments.
    settings: the settings that determine `number` and `num_bytes`.
    num_bytes: the other memory that each environment takes.
    has_memories: whether the episodic memories are on the host.
  """
  num_bytes += _ENVIRONMENT_BYTES
  if has_memories:
    settings += _memory_settings(agent)
    for config in _memories(agent):
      # The host also stores the norm of each embedding.
      row = (config.embedding_size + 1) * np.dtype(np.float32).itemsize
      num_bytes += config.memory_capacity * row
  what = f'{number:,} environments with their buffers take'
  return MemoryRequirement(settings, what, number * num_bytes)


def _memories(agent: assembly.Agent) -> list[config_lib.IntrinsicConfig]:
  """Returns the settings of an environment's episodic memories."""
  return [
    spec.config
    for spec in agent.reward_specs
    if spec is not None and rewards.for_config(spec.config).uses_memory
  ]


def _memory_settings(agent: assembly.Agent) -> str:
  return ''.join(
    f', {_settings(config, "memory_capacity", "embedding_size")}'
    for config in _memories(agent)
  )


def _network_settings(agent: assembly.Agent) -> str:
  sizes = ('torso_size', 'lstm_size', 'head_size')
  return _settings(agent.config.network, *sizes)


def _learner(agent: assembly.Agent) -> MemoryRequirement:
  """Returns the requirement of parameters and optimizers, from shapes alone."""
  state = learner_assembly.state_shapes(agent)
  return MemoryRequirement(
    _network_settings(agent),
    'the networks in training take',
    hk.data_structures.tree_bytes(state),
  )


def _batches(agent: assembly.Agent, num_devices: int = 1) -> MemoryRequirement:
  layout = agent.replay_layout
  sequence = 2 * 4 * layout.lstm_size + sum(
    (layout.config.sequence_length + field.overlap)
    * math.prod(field.row_shape)
    * np.dtype(field.dtype).itemsize
    for field in fields.stored(layout)
  )
  return MemoryRequirement(
    _batch_settings(agent),
    f'{_BATCHES} batches take',
    _BATCHES * _share(agent, num_devices) * sequence,
  )


def _activations(
  agent: assembly.Agent, num_devices: int, operand_size: int
) -> MemoryRequirement:
  """Returns the requirement of a learner step's gradient, from shapes alone.

  The gradient of a product needs its left operand, and the gradient of the
  largest operand is computed next to all of them.
  """
  network, shape = agent.network, jax.ShapeDtypeStruct
  rows = (agent.config.replay.sequence_length + 1, _share(agent, num_devices))
  observation = shape((*rows, *agent.spec.observation_shape), np.uint8)
  state = jax.tree.map(
    lambda x: shape((rows[1], *x.shape), x.dtype),
    jax.eval_shape(network.initial_state),
  )
  params = jax.eval_shape(network.init, jax.random.key(0))
  previous = shape(rows, np.int32), shape(rows, np.float32)  # Action, reward.
  unroll = jax.make_jaxpr(network.unroll_all)
  jaxpr = unroll([params], observation, *previous, [state]).jaxpr
  operands = sorted(_left_operands(jaxpr, operand_size))
  # The largest operand is the observation, which has no gradient.
  gradient = sum(operands[-2:-1])
  return MemoryRequirement(
    _batch_settings(agent),
    'a learner step takes',
    observation.size + sum(operands) + gradient,
    'Lower one of these settings, or raise num_devices on a machine with more '
    'devices.',
  )


def _left_operands(jaxpr: Any, operand_size: int) -> Iterator[int]:
  """Yields the bytes of the left operands of products outside of loops."""
  for equation, times in jaxprs.equations(jaxpr):
    name = equation.primitive.name
    if times == 1 and name in ('dot_general', 'conv_general_dilated'):
      operand = equation.invars[0].aval
      yield operand.size * min(operand.dtype.itemsize, operand_size)


def _batch_settings(agent: assembly.Agent) -> str:
  lengths = _settings(agent.config.replay, 'trace_length', 'burn_in_length')
  return f'{_settings(agent.config.learner, "batch_size")}, {lengths}'


def _share(agent: assembly.Agent, num_devices: int) -> int:
  """Returns the number of sequences of a batch on each device."""
  return -(-agent.config.learner.batch_size // num_devices)


def _replay(agent: assembly.Agent) -> MemoryRequirement:
  replay = agent.config.replay
  return MemoryRequirement(
    _settings(replay, 'max_replay_size', 'codec'),
    'a full replay takes',
    memory_estimate.estimate(agent.replay_layout),
    "Lower max_replay_size. codec='tensors' takes many times as much memory as "
    "'blocks'.",
  )
