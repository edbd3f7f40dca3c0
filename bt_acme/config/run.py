"""Settings of a run, such as its environment, processes and budget.

`bt_acme.config.agent` configures the agent itself.
"""

import dataclasses
import itertools
import pathlib
import re

from bt_acme.config import checks
from bt_acme.config import placement as placement_lib

LARGEST_SEED = 2**32 - 1  # The limit of JAX keys.
# The largest number of actor steps; the paper pre-trains for 4 billion.
_LARGEST_BUDGET = 1_000_000_000_000
# Settings without effect in runs of one process.
OF_NODES = (
  *('inference', 'open_ports', 'replay_port', 'checkpoint_replay'),
  *('max_restarts', 'watchdog_seconds'),
)


@dataclasses.dataclass(frozen=True)
class RunConfig:
  """A run of an agent: its environment, processes, budget and directory.

  Attributes:
    env: Environment: an Atari game (`montezuma_revenge`), a game with a
      modified reward (`hero:miners_easy`) or a MiniGrid ID. A comma-separated
      list of names with equal observation and action shapes is assigned to the
      environments of the run in rotation.
    num_stacked: Number of frames stacked in an observation; 0 uses the usual
      number, which is 4 on Atari and 1 elsewhere. Campos et al. stack frames,
      but do not say how many; NGU, from which their settings derive, uses 1.
    lp_launch_type: Execution mode of the run. With `local_mp`, each node is a
      process, and with `local_mt` a thread. With `ray`, each node is a process
      on a machine of the Ray cluster at ray_address. With `in_process`, all
      nodes take turns in one thread, so that results are reproducible (see
      seed); this mode does not need Launchpad or Reverb.
    ray_address: Address of the head of the Ray cluster, such as 10.0.0.1:6379,
      or `auto` for the cluster of this machine; only with lp_launch_type=ray.
    ray_python: Python executable of an environment with the same Ray version as
      the cluster; only with lp_launch_type=ray. `make ray` creates such an
      environment.
    placement: Requirements of nodes for their machines: cores, GPUs and labels
      (`ray start --labels`), such as
      learner:num_gpus=1,role=trainer;actor:num_cpus=2; only with
      lp_launch_type=ray. By default, actors and evaluators are spread over all
      machines, with one core each, and the other nodes run on the machine of
      the launcher.
    num_actors: Number of actor processes. The paper uses 256 actors with one
      environment and one epsilon each; here, too, each environment has its own
      epsilon.
    envs_per_actor: Number of environments that each actor steps at once, with
      one call of its networks.
    max_actor_steps: Number of actor steps after which the run ends, counted
      over all environments. An actor step is 4 frames on Atari. The paper
      pre-trains for 4 billion and learns a task for 1.25 billion actor steps.
    workdir: Directory for logs, checkpoints and the exported behavior.
      Rerunning the same command with the same workdir resumes the run.
    seed: Random seed. Results are reproducible only with
      lp_launch_type=in_process, because nodes otherwise run concurrently, and
      only on one processor type with one set of package versions.
    num_evaluators: Number of evaluator processes, which share the evaluations
      of the run; 0 disables evaluation.
    evaluation_period: Number of actor steps from one evaluation to the next:
      the run is evaluated at 0, at all multiples, and at its end.
    evaluation_episodes: Number of episodes of each evaluation.
    max_episode_rows: Maximum number of rows in the log of training episodes.
      Longer logs are subsampled evenly over time and environments. If
      max_actor_steps is raised later, existing rows remain, and new rows are as
      dense as if that budget had been set from the start.
    checkpoint_period: Number of seconds from one checkpoint to the next.
    checkpoint_replay: Whether to include the replay in checkpoints, so that a
      resumed run continues learning at once. The replay is written while the
      learner keeps running; sampling stops for 0.6 s at 125,000 sequences. The
      copies take up to twice the size of the replay on disk. Without them, a
      resumed run fills its replay again.
    snapshot_steps: Numbers of actor steps, separated by commas. When
      pre-training passes one of them, it exports its current behavior to
      `behavior-STEPS` in the workdir.
    open_ports: Whether to expose the ports of nodes outside the run. Anyone who
      can connect can then run code as the launching user (see SECURITY.md). By
      default, the processes of a run on one machine have a private network.
    replay_port: Port of the replay server; 0 picks a free port.
    inference: Location of action selection: `local` selects actions in each
      actor; `server` selects them for all actors in one process on the
      learner's accelerator. On an accelerator, the server also computes the
      intrinsic rewards and holds the episodic memories of all environments, so
      that actors only emulate; on a CPU, the actors keep both. Use `server` if
      there is a GPU.
    max_restarts: Maximum number of restarts per hour. Each actor, evaluator and
      inference server that fails is restarted up to this many times, while the
      other nodes keep running. If the learner, the replay or the coordinator
      fails, the whole run restarts from its last checkpoint, also up to this
      many times. The next failure ends the run; with 0, the first failure does.
      A node that exits with an error before its first heartbeat ends the run at
      once: it would fail again.
      Threads cannot be restarted.
    watchdog_seconds: Heartbeat timeout in seconds. A process that has started
      work and then sends no heartbeat for this long is killed and treated as
      failed. The timeout must exceed the duration of the longest step or
      checkpoint.

  Example:
    ```python
    from bt_acme import config

    run = config.RunConfig(env='pong', num_actors=4, workdir='runs/pong')
    print(run.num_environments)
    ```
  """

  env: str = 'montezuma_revenge'
  num_stacked: int = checks.setting(0, minimum=0, largest=64)
  lp_launch_type: str = checks.choice(
    'local_mp', 'in_process', 'local_mt', 'ray'
  )
  ray_address: str = ''
  ray_python: str = '.venv-ray/bin/python'
  placement: str = ''
  num_actors: int = checks.setting(16, above=0)
  envs_per_actor: int = checks.setting(16, above=0)
  max_actor_steps: int = checks.setting(
    1_000_000, above=0, largest=_LARGEST_BUDGET
  )
  workdir: str = 'runs/run'
  seed: int = checks.setting(0, minimum=0, maximum=LARGEST_SEED)
  num_evaluators: int = checks.setting(1, minimum=0)
  evaluation_period: int = checks.setting(
    100_000, above=0, largest=_LARGEST_BUDGET
  )
  evaluation_episodes: int = checks.setting(5, above=0)
  max_episode_rows: int = checks.setting(200_000, above=0)
  checkpoint_period: float = checks.setting(300.0, above=0)
  checkpoint_replay: bool = True
  snapshot_steps: str = ''
  open_ports: bool = False
  replay_port: int = checks.setting(0, minimum=0, maximum=65535)
  inference: str = checks.choice('local', 'server')
  max_restarts: int = checks.setting(3, minimum=0)
  watchdog_seconds: float = checks.setting(600.0, minimum=10)

  def __post_init__(self) -> None:
    checks.check(self)
    checks.require(
      self.envs_per_actor % self.groups_per_actor == 0,
      f'envs_per_actor={self.envs_per_actor} must be even with '
      "inference='server', because one half of the environments acts while the "
      'other half waits.',
    )
    steps = (0, *self.snapshots)
    checks.require(
      all(a < b for a, b in itertools.pairwise(steps)),
      f'snapshot_steps={self.snapshot_steps!r} must be positive and strictly '
      'increasing.',
    )
    checks.require(
      steps[-1] <= self.max_actor_steps,
      f'snapshot_steps={self.snapshot_steps!r} exceeds max_actor_steps='
      f'{self.max_actor_steps}, the end of the run. Remove the larger steps, '
      'or raise max_actor_steps.',
    )
    if not self.uses_launchpad:
      checks.require_defaults(
        self, *OF_NODES, without=f'lp_launch_type={self.lp_launch_type!r}'
      )
    checks.require(
      self.open_ports or self.spans_machines or not self.replay_port,
      f'replay_port={self.replay_port} is for programs outside the run, which '
      'cannot reach its private network. Add --open_ports, or remove '
      'replay_port.',
    )
    if not self.spans_machines:
      checks.require_defaults(
        self,
        *('ray_address', 'ray_python', 'placement'),
        without=f'lp_launch_type={self.lp_launch_type!r}',
      )
    checks.require(
      not self.spans_machines
      or self.ray_address == 'auto'
      or re.fullmatch(r'[^:\s]+:[0-9]{1,5}', self.ray_address) is not None,
      f'ray_address={self.ray_address!r} must be HOST:PORT (such as '
      '10.0.0.1:6379, which `ray start --head` prints), or auto.',
    )
    placement_lib.parse(self.placement)

  @property
  def uses_launchpad(self) -> bool:
    """Whether the run is a Launchpad program, not a run in one process."""
    return self.lp_launch_type != 'in_process'

  @property
  def is_in_this_process(self) -> bool:
    """Whether all nodes run in the process that launches the run."""
    return self.lp_launch_type in ('in_process', 'local_mt')

  @property
  def spans_machines(self) -> bool:
    """Whether nodes may run on machines other than the launcher's."""
    return self.lp_launch_type == 'ray'

  @property
  def environments_setting(self) -> str:
    """The settings that determine `num_environments`, for errors."""
    flags = 'num_actors * envs_per_actor'
    if self.uses_launchpad:
      return flags
    return f'num_environments (in launch scripts, {flags})'

  @property
  def num_environments(self) -> int:
    """The total number of environments of all actors."""
    return self.num_actors * self.envs_per_actor

  @property
  def groups_per_actor(self) -> int:
    """The number of groups of an actor's environments; a group is one batch."""
    return 2 if self.inference == 'server' else 1

  @property
  def group_size(self) -> int:
    """The number of environments in a group."""
    return self.envs_per_actor // self.groups_per_actor

  @property
  def num_groups(self) -> int:
    """The total number of groups of all actors."""
    return self.num_actors * self.groups_per_actor

  @property
  def snapshots(self) -> tuple[int, ...]:
    """The numbers of actor steps that `snapshot_steps` lists."""
    return checks.numbers_in('snapshot_steps', self.snapshot_steps, int)

  @property
  def behavior_folder(self) -> str:
    """The directory to which the learner exports the behavior."""
    return str(pathlib.Path(self.workdir) / 'behavior')

  def snapshot_folder(self, actor_steps: int) -> str:
    """Returns the directory for the behavior exported after `actor_steps`."""
    return f'{self.behavior_folder}-{actor_steps}'

  @property
  def checkpoint_folder(self) -> str:
    """The directory of the learner's checkpoints."""
    return str(pathlib.Path(self.workdir) / 'checkpoints')
