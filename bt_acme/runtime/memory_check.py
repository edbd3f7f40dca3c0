"""The memory that a run takes at the least, before anything is started.

Every need is a lower bound or, for the replay, a cautious guess. What does not
fit into the machine by these numbers cannot run there.
"""

import math
from typing import List, NamedTuple, Optional

import jax
import numpy as np

from bt_acme import assembly, learner_assembly, untrusted
from bt_acme.config import run as run_config
from bt_acme.core import learner_core
from bt_acme.core.intrinsic import rewards
from bt_acme.replay import blocks, fields, memory_estimate

# What an actor or an evaluator has for itself, with JAX and compiled functions;
# 310 MB were measured on MiniGrid. The other processes are few.
_PROCESS_BYTES = 250 * 10**6
# The smallest environments, which are MiniGrid's.
_ENVIRONMENT_BYTES = 10**5
# One batch is filled while the learner reads another.
_BATCHES = 2


class MemoryRequirement(NamedTuple):
  """Something that takes memory.

  Attributes:
    settings: the settings that decide how much, with their values.
    what: what takes it, with a verb: 'a full replay takes'.
    num_bytes: how much it takes.
    advice: a sentence that says how to make it less.
  """

  settings: str
  what: str
  num_bytes: int
  advice: str


def estimate(
  run: run_config.RunConfig, agent: assembly.Agent
) -> List[MemoryRequirement]:
  """Lists what a run needs on this machine.

  Of a run that spans machines these are the nodes that do not act, which are
  on this machine unless its placement says otherwise.

  Args:
    run: the run.
    agent: the agent of the run.
  """
  replay = agent.config.replay
  block = blocks.BlockLayout(replay, agent.replay_shapes).num_bytes
  most = run.num_evaluators if run.has_nodes else 1
  evaluators = min(run.num_evaluators, most)
  acting = [
    _processes(run),
    _environments(
      agent,
      run.num_environments,
      f'num_actors={run.num_actors}, envs_per_actor={run.envs_per_actor}, '
      f'sequence_period={replay.sequence_period}',
      block,
    ),
    _environments(
      agent,
      evaluators * run.evaluation_episodes,
      f'num_evaluators={run.num_evaluators}, '
      f'evaluation_episodes={run.evaluation_episodes}',
    ),
  ]
  others = [_learner(agent), _batches(agent), _replay(agent)]
  return others if run.spans_machines else acting + others


def estimate_evaluation(
  agent: assembly.Agent, episodes: int
) -> List[MemoryRequirement]:
  """Lists what it takes to play episodes, all at once, in this process.

  Args:
    agent: the agent that plays.
    episodes: the number of episodes.
  """
  return [_environments(agent, episodes, f'episodes={episodes}')]


def check(needs: List[MemoryRequirement], memory: Optional[int] = None) -> None:
  """Checks that all fits into the memory together.

  Args:
    needs: what `estimate` or `estimate_evaluation` lists.
    memory: the number of bytes that there are; None for those of this machine.

  Raises:
    ValueError: if it does not fit; the message is about the largest need.
  """
  memory = memory_estimate.available_memory() if memory is None else memory
  total = sum(need.num_bytes for need in needs)
  if total <= memory:
    return
  largest = max(needs, key=lambda need: need.num_bytes)
  size = memory_estimate.size_in_words
  raise ValueError(
    f'{largest.settings}: this machine has {size(memory)}, and {largest.what} '
    f'about {size(largest.num_bytes)}, all else '
    f'{size(total - largest.num_bytes)}. {largest.advice}'
  )


def _processes(run: run_config.RunConfig) -> MemoryRequirement:
  nodes = run.num_actors + run.num_evaluators
  number = 1 if run.is_in_this_process else nodes
  return MemoryRequirement(
    f'num_actors={run.num_actors}, num_evaluators={run.num_evaluators}',
    f'{number:,} processes take',
    number * _PROCESS_BYTES,
    'Lower them; an actor can have more environments (envs_per_actor).',
  )


def _environments(
  agent: assembly.Agent, number: int, settings: str, num_bytes: int = 0
) -> MemoryRequirement:
  """Environments with the episodic memories of the rewards in them.

  Args:
    agent: the agent that acts in them.
    number: the number of environments.
    settings: the settings that decide how many there are, and `num_bytes`.
    num_bytes: what else each of them takes.
  """
  num_bytes += _ENVIRONMENT_BYTES
  for spec in agent.reward_specs:
    if spec is not None and rewards.for_config(spec.config).uses_memory:
      capacity, size = spec.config.memory_capacity, spec.config.embedding_size
      settings += f', memory_capacity={capacity}, embedding_size={size}'
      # The host keeps the norm of each embedding too.
      num_bytes += capacity * (size + 1) * np.dtype(np.float32).itemsize
  return MemoryRequirement(
    settings,
    f'{number:,} environments with all that belongs to them take',
    number * num_bytes,
    'Lower one of these settings.',
  )


def _learner(agent: assembly.Agent) -> MemoryRequirement:
  """The parameters and their optimizers; nothing is computed."""
  core = learner_assembly.make_learner_core(agent)
  state = learner_core.without_key(jax.eval_shape(core.init, jax.random.key(0)))
  network = agent.config.network
  return MemoryRequirement(
    f'torso_size={network.torso_size}, lstm_size={network.lstm_size}, '
    f'head_size={network.head_size}',
    'the networks in training take',
    untrusted.num_bytes(jax.tree.leaves(state)),
    'Lower one of these settings.',
  )


def _batches(agent: assembly.Agent) -> MemoryRequirement:
  replay, shapes = agent.config.replay, agent.replay_shapes
  batch_size = agent.config.learner.batch_size
  sequence = 2 * 4 * shapes.lstm_size + sum(
    (replay.sequence_length + field.overlap(shapes))
    * math.prod(field.row_shape(shapes))
    * np.dtype(field.dtype).itemsize
    for field in fields.FIELDS
  )
  return MemoryRequirement(
    f'batch_size={batch_size}, trace_length={replay.trace_length}, '
    f'burn_in_length={replay.burn_in_length}',
    f'{_BATCHES} batches take',
    _BATCHES * batch_size * sequence,
    'Lower one of these settings.',
  )


def _replay(agent: assembly.Agent) -> MemoryRequirement:
  replay = agent.config.replay
  return MemoryRequirement(
    f'max_replay_size={replay.max_replay_size}, codec={replay.codec!r}',
    'a full replay takes',
    memory_estimate.estimate(replay, agent.replay_shapes).compressed,
    "Lower max_replay_size; codec='tensors' takes many times what 'blocks' "
    'does.',
  )
