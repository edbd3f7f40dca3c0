"""What one run is: where it runs, with how many processes, and for how long.

`bt_acme.config.agent` configures the agent itself.
"""

import dataclasses
import itertools
import pathlib
import re
from typing import Tuple

from bt_acme.config import checks
from bt_acme.config import placement as placement_lib

LARGEST_SEED = 2**32 - 1  # A JAX key takes no larger seed.
# The largest number of actor steps; the paper pre-trains for 4 billion.
_LARGEST_BUDGET = 1_000_000_000_000


@dataclasses.dataclass(frozen=True)
class RunConfig:
  """One run of one agent: its environment, processes, budget and folder."""

  env: str = checks.setting(
    'montezuma_revenge',
    'Environment: an Atari game (`montezuma_revenge`), a game with a modified '
    'reward (`hero:miners_easy`) or a MiniGrid id. A comma-separated list of '
    'environments with equal spaces spreads the environments of the run over '
    'them, in rotation.',
  )
  num_stacked: int = checks.setting(
    0,
    'An observation stacks this many frames; 0 takes the usual number, which '
    'is 4 on Atari and 1 elsewhere. Campos et al. stack frames and do not say '
    'how many; NGU, from which their settings derive, has 1.',
    minimum=0,
    largest=64,
  )
  lp_launch_type: str = checks.setting(
    'local_mp',
    'How the run is executed. With `local_mp` each node is a process, and with '
    '`local_mt` a thread. With `ray` each node is a process on a machine of '
    'the Ray cluster at `ray_address`. With `in_process` all nodes take turns '
    'in one thread, so that the seed decides every number, and Launchpad and '
    'Reverb are not needed.',
    choices=('in_process', 'local_mp', 'local_mt', 'ray'),
  )
  ray_address: str = checks.setting(
    '',
    'With lp_launch_type=ray, the address of the head of the cluster, as '
    '10.0.0.1:6379, or `auto` for the cluster of this machine.',
  )
  ray_python: str = checks.setting(
    '.venv-ray/bin/python',
    'With lp_launch_type=ray, the Python of an environment with the same Ray '
    'as the cluster; `make ray` makes one.',
  )
  placement: str = checks.setting(
    '',
    'With lp_launch_type=ray, what the machines of nodes must have: cores, '
    'GPUs, labels (`ray start --labels`), as '
    'learner:num_gpus=1,role=trainer;actor:num_cpus=2. By default actors and '
    'evaluators are spread over all machines, a core for each, and the others '
    'are on the machine of the launcher.',
  )
  num_actors: int = checks.setting(
    16,
    'The run has this many actor processes. The paper has 256 actors, each '
    'with one environment and an epsilon of its own, as here each environment '
    'has one.',
    above=0,
  )
  envs_per_actor: int = checks.setting(
    16,
    'Each actor steps this many environments at once, with one call of its '
    'networks.',
    above=0,
  )
  max_actor_steps: int = checks.setting(
    1_000_000,
    'The run ends after this many actor steps, counted over all environments. '
    'An actor step is 4 frames on Atari.',
    above=0,
    largest=_LARGEST_BUDGET,
  )
  workdir: str = checks.setting(
    'runs/run',
    'The folder for logs, checkpoints and the exported behavior. The same '
    'command with the same workdir resumes the run.',
  )
  seed: int = checks.setting(
    0,
    'The seed of the run. It does not repeat the numbers of a run of several '
    'nodes, because these run side by side; with lp_launch_type=in_process it '
    'does.',
    minimum=0,
    maximum=LARGEST_SEED,
  )
  num_evaluators: int = checks.setting(
    1,
    'The run has this many evaluator processes, which share its evaluations; '
    '0 evaluates nothing.',
    minimum=0,
  )
  evaluation_period: int = checks.setting(
    100_000,
    'The number of actor steps from one evaluation to the next: the run is '
    'evaluated at 0, at all multiples, and at its end.',
    above=0,
    largest=_LARGEST_BUDGET,
  )
  evaluation_episodes: int = checks.setting(
    5, 'An evaluation plays this many episodes.', above=0
  )
  max_episode_rows: int = checks.setting(
    200_000,
    'The log of training episodes has at most so many rows. If there are more '
    'episodes, it has a part of them, spread evenly over the run and its '
    'environments. If max_actor_steps is raised later, its rows stay, and what '
    'follows has as many as if that budget had been there from the start.',
    above=0,
  )
  checkpoint_period: float = checks.setting(
    300.0,
    'The number of seconds from one checkpoint to the next.',
    above=0,
  )
  checkpoint_replay: bool = checks.setting(
    True,
    'A checkpoint holds the replay too, so that a run that resumes goes on '
    'learning at once. It is written while the learner goes on; sampling '
    'stops for 0.6 s at 125,000 sequences. It takes up to twice the size of '
    'the replay on the disk. Without it, such a run fills its replay anew.',
  )
  snapshot_steps: str = checks.setting(
    '',
    'Numbers of actor steps, separated by commas: when pre-training passes '
    'one, it exports the behavior that it has by then to `behavior-STEPS` in '
    'the workdir.',
  )
  open_ports: bool = checks.setting(
    False,
    'Whether programs outside of the run can connect to its nodes. They can '
    'then run code as the user who started it (SECURITY.md). By default the '
    'processes of a run on one machine have a network of their own.',
  )
  replay_port: int = checks.setting(
    0,
    'The replay server listens on this port; 0 picks a free one.',
    minimum=0,
    maximum=65535,
  )
  inference: str = checks.setting(
    'local',
    'Where actions are chosen: `local` chooses them in each actor; `server` '
    "has one process choose them for all actors on the learner's accelerator. "
    'On an accelerator the server also computes the intrinsic rewards and '
    'holds the episodic memories of all environments, so that actors only '
    'emulate; on a CPU the actors keep both. Choose `server` if there is a '
    'GPU.',
    choices=('local', 'server'),
  )
  max_restarts: int = checks.setting(
    3,
    'How many deaths in an hour the run survives by itself. An actor, '
    'evaluator or inference server that dies is started anew at most so often, '
    'each of them, while the others go on. If the learner, the replay or the '
    'coordinator dies, the whole run goes back to its last checkpoint at most '
    'so often. The next death ends the run, and with 0 the first one does. '
    'Threads cannot be started anew.',
    minimum=0,
  )
  watchdog_seconds: float = checks.setting(
    600.0,
    'A process that has begun its work and gives no sign of life for so many '
    'seconds is killed, which counts as its death. It has to be longer than '
    'the longest step or checkpoint takes.',
    minimum=10,
  )

  def __post_init__(self) -> None:
    checks.check(self)
    checks.require(
      self.envs_per_actor % self.groups_per_actor == 0,
      f'envs_per_actor={self.envs_per_actor} must be even with '
      "inference='server', because one half acts while the other waits.",
    )
    steps = (0, *self.snapshots)
    checks.require(
      all(a < b for a, b in itertools.pairwise(steps)),
      f'snapshot_steps={self.snapshot_steps!r} must be positive and increase.',
    )
    checks.require(
      steps[-1] <= self.max_actor_steps,
      f'snapshot_steps={self.snapshot_steps!r} exceeds max_actor_steps='
      f'{self.max_actor_steps}: the run would end before. Leave out the last, '
      'or raise max_actor_steps.',
    )
    if not self.has_nodes:
      self._refuse(
        *('inference', 'open_ports', 'replay_port', 'checkpoint_replay'),
        *('max_restarts', 'watchdog_seconds'),
        belongs_to='a node',
        but='has none',
        choose='local_mp',
      )
    checks.require(
      self.open_ports or self.spans_machines or not self.replay_port,
      f'replay_port={self.replay_port} is for programs outside of the run, '
      'which cannot reach it: add --open_ports, or leave it out.',
    )
    self._check_ray()

  def _refuse(
    self, *names: str, belongs_to: str, but: str, choose: str
  ) -> None:
    """Requires that settings have their defaults with this launch type."""
    for name in names:
      value = getattr(self, name)
      checks.require(
        value == getattr(type(self), name),
        f'{name}={value!r} is a setting of {belongs_to}, and lp_launch_type='
        f'{self.lp_launch_type!r} {but}: leave it out, or choose '
        f'lp_launch_type={choose!r}.',
      )

  def _check_ray(self) -> None:
    """Checks the settings of a cluster."""
    if not self.spans_machines:
      self._refuse(
        *('ray_address', 'ray_python', 'placement'),
        belongs_to='a cluster',
        but='uses this machine only',
        choose='ray',
      )
    checks.require(
      not self.spans_machines
      or self.ray_address == 'auto'
      or re.fullmatch(r'[^:\s]+:[0-9]{1,5}', self.ray_address) is not None,
      f'ray_address={self.ray_address!r} must be HOST:PORT, as 10.0.0.1:6379, '
      'which `ray start --head` prints, or auto.',
    )
    placement_lib.parse(self.placement)

  @property
  def has_nodes(self) -> bool:
    """Whether the nodes are those of a Launchpad program."""
    return self.lp_launch_type != 'in_process'

  @property
  def is_in_this_process(self) -> bool:
    """Whether all that computes does so in the process that launches it."""
    return self.lp_launch_type in ('in_process', 'local_mt')

  @property
  def spans_machines(self) -> bool:
    """Whether nodes may run on other machines than the launcher's."""
    return self.lp_launch_type == 'ray'

  @property
  def num_environments(self) -> int:
    """The number of environments of all actors."""
    return self.num_actors * self.envs_per_actor

  @property
  def groups_per_actor(self) -> int:
    """The number of groups in which an actor's environments ask for actions."""
    return 2 if self.inference == 'server' else 1

  @property
  def group_size(self) -> int:
    """The number of environments in a group."""
    return self.envs_per_actor // self.groups_per_actor

  @property
  def num_groups(self) -> int:
    """The number of groups of all actors."""
    return self.num_actors * self.groups_per_actor

  @property
  def snapshots(self) -> Tuple[int, ...]:
    """The numbers of actor steps that `snapshot_steps` lists."""
    if not self.snapshot_steps:
      return ()
    try:
      return tuple(int(steps) for steps in self.snapshot_steps.split(','))
    except ValueError as error:
      raise ValueError(
        f'snapshot_steps={self.snapshot_steps!r} must be whole numbers '
        'separated by commas.'
      ) from error

  @property
  def behavior_folder(self) -> str:
    """The folder that the learner exports the behavior to."""
    return str(pathlib.Path(self.workdir) / 'behavior')

  def snapshot_folder(self, actor_steps: int) -> str:
    """The folder that takes the behavior as it is after so many steps."""
    return f'{self.behavior_folder}-{actor_steps}'

  @property
  def checkpoint_folder(self) -> str:
    """The folder of the learner's checkpoints."""
    return str(pathlib.Path(self.workdir) / 'checkpoints')
