"""What a run needs of its settings and this machine, whichever engine runs it.

Settings that are wrong anywhere are refused by `bt_acme.config`.
"""

import os

from bt_acme import assembly
from bt_acme.config import run as run_config
from bt_acme.runtime import memory_check


def check(run: run_config.RunConfig, agent: assembly.Agent) -> None:
  """Checks that all that is asked for happens, and the memory for it.

  Raises:
    ValueError: if the run could not do what it is meant to.
  """
  replay = agent.config.replay
  if run.snapshots and agent.intrinsic is None:
    raise ValueError(
      f'snapshot_steps={run.snapshot_steps!r} exports behaviors that are being '
      f'pre-trained, and this is no pre-training ('
      f'{type(agent.config).__name__}): leave it out.'
    )
  fillable = run.max_actor_steps // replay.sequence_period
  if fillable < replay.min_replay_size:
    raise ValueError(
      f'max_actor_steps={run.max_actor_steps} fill the replay with about '
      f'{fillable} sequences, fewer than min_replay_size='
      f'{replay.min_replay_size}: the learner would never start. Raise '
      'max_actor_steps, lower min_replay_size, or choose a smaller preset.'
    )
  memory_check.check(memory_check.estimate(run, agent))


def check_evaluation(agent: assembly.Agent, episodes: int) -> None:
  """Checks the memory for episodes that are played all at once.

  Raises:
    ValueError: if this machine has too little.
  """
  memory_check.check(memory_check.estimate_evaluation(agent, episodes))


def num_cores() -> int:
  """Returns the number of cores that this process may use."""
  if hasattr(os, 'sched_getaffinity'):
    return len(os.sched_getaffinity(0))
  return os.cpu_count() or 1


def oversubscription_warning(run: run_config.RunConfig, cores: int) -> str:
  """Returns a sentence about what works on so many cores, slowly; or none."""
  if not run.has_nodes or run.spans_machines or run.num_actors <= cores:
    return ''
  return (
    f'num_actors={run.num_actors} take turns on {cores} cores: with fewer '
    'actors and a larger envs_per_actor, as many environments need less time '
    'and memory.'
  )
