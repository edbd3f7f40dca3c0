"""What one run is: where, how many, how long. Not what the agent is."""

import dataclasses
import pathlib

from bt_acme import config as config_lib

_LARGEST_SEED = 2**32 - 1  # JAX's keys take no more of it.


def check_seed(seed: int) -> None:
  """Raises ValueError for a seed that is out of range."""
  if not 0 <= seed <= _LARGEST_SEED:
    raise ValueError(f'seed={seed} must lie in [0, {_LARGEST_SEED}].')


@dataclasses.dataclass(frozen=True)
class RunConfig:
  """One run of one agent.

  Attributes:
    env: the environment: an Atari game (`montezuma_revenge`), a game with a
      modified reward (`hero:miners_easy`) or a MiniGrid id.
    num_stacked: frames in an observation; 0 for what is usual: 4 on Atari, 1
      elsewhere. Campos et al. say frame stacking, not how many, and NGU, whose
      settings theirs derive from, has 1.
    num_actors: actor processes.
    envs_per_actor: environments that each actor steps at once, with one call of
      its networks.
    max_actor_steps: the budget, in actor steps over all environments (4 frames
      each on Atari).
    workdir: where logs, checkpoints and the exported behavior go; the same
      command on the same workdir resumes.
    seed: of the run.
    num_evaluators: evaluator processes; 0 for none.
    evaluation_period: actor steps between two evaluations; one more comes last.
    evaluation_episodes: episodes of one evaluation.
    checkpoint_period: seconds between two checkpoints.
    replay_port: of the replay server; 0 picks a free one.
    inference: where actions are chosen: `local`, in each actor; or `server`, in
      one process on the learner's accelerator for all actors. It then makes
      intrinsic rewards there as well and holds the episodic memories of all
      environments, so that actors only emulate; on a CPU actors keep those.
      Choose `server` where there is a GPU.
  """

  env: str = 'montezuma_revenge'
  num_stacked: int = 0
  num_actors: int = 2
  envs_per_actor: int = 16
  max_actor_steps: int = 1_000_000
  workdir: str = 'runs/run'
  seed: int = 0
  num_evaluators: int = 1
  evaluation_period: int = 100_000
  evaluation_episodes: int = 5
  checkpoint_period: float = 300.0
  replay_port: int = 0
  inference: str = 'local'

  def __post_init__(self) -> None:
    for name in (
      'num_actors',
      'envs_per_actor',
      'max_actor_steps',
      'evaluation_period',
      'evaluation_episodes',
      'checkpoint_period',
    ):
      if getattr(self, name) <= 0:
        raise ValueError(
          f'{name}={getattr(self, name)} must be positive: nothing would run.'
        )
    check_seed(self.seed)
    for name in ('num_evaluators', 'num_stacked'):
      if getattr(self, name) < 0:
        raise ValueError(f'{name}={getattr(self, name)} must not be negative.')
    if not 0 <= self.replay_port < 65536:
      raise ValueError(
        f'replay_port={self.replay_port} must lie in [0, 65535].'
      )
    if self.inference not in ('local', 'server'):
      raise ValueError(
        f"inference={self.inference!r} is unknown: choose 'local' or 'server'."
      )
    if self.envs_per_actor % self.groups_per_actor:
      raise ValueError(
        f'envs_per_actor={self.envs_per_actor} must be even with '
        "inference='server': one half acts while the other waits."
      )
    config_lib.check_finite(self)

  @property
  def num_environments(self) -> int:
    """Over all actors."""
    return self.num_actors * self.envs_per_actor

  @property
  def groups_per_actor(self) -> int:
    """Groups in which an actor's environments ask for actions."""
    return 2 if self.inference == 'server' else 1

  @property
  def group_size(self) -> int:
    """Environments in a group."""
    return self.envs_per_actor // self.groups_per_actor

  @property
  def num_groups(self) -> int:
    """Over all actors."""
    return self.num_actors * self.groups_per_actor

  @property
  def behavior_folder(self) -> str:
    """Where the learner exports the behavior."""
    return str(pathlib.Path(self.workdir) / 'behavior')

  @property
  def checkpoint_folder(self) -> str:
    """Of the learner."""
    return str(pathlib.Path(self.workdir) / 'checkpoints')
