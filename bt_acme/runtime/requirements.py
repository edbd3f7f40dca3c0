"""What a run needs, whichever engine runs it."""

from bt_acme import assembly
from bt_acme.config import run as run_config
from bt_acme.replay import memory_estimate


def check(run: run_config.RunConfig, agent: assembly.Agent) -> None:
  """Checks the memory for the replay, and that all that is asked for happens.

  Raises:
    ValueError: if the run could not do what it is meant to.
  """
  replay = agent.config.replay
  memory_estimate.check(memory_estimate.estimate(replay, agent.replay_shapes))
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
