"""Four scales at which the paper can be made, as data.

`paper` is Campos et al. 2021 itself. The others replace its games and budgets:
their numbers stand beside the paper's, and are never those.
"""

import re
from typing import Any, Mapping, NamedTuple, Tuple

from bt_acme.config import names
from experiments.paper.artifacts import PAPER_SUITES, Suites

SHARED, PER_SEED = 'shared', 'per_seed'
# By choice: which policy a seed of transfer uses, and what its results tell of.
PRETRAINING: Mapping[str, str] = {
  SHARED: (
    'shared: all seeds use the policy that seed 0 has pre-trained, as in the '
    'paper, so that they tell how safe transfer is'
  ),
  PER_SEED: (
    'per seed: each seed pre-trains a policy of its own, so that they tell how '
    'safe pre-training and transfer are together'
  ),
}


class Scale(NamedTuple):
  """Games, budgets and settings of all artifacts.

  Attributes:
    name: what `--scale` takes.
    purpose: what it is for.
    suites: environments by the name of the suite: `full`, its part `hard` of
      hard exploration, `ablation`, `tasks` (three rewards of each of some
      worlds), `strategies` (figure 1), `budgets` (figure 2, right) and, with
      all games, its part `atari_26` (Kaiser et al. 2019).
    seeds: the seeds, unless others are asked for.
    pretraining: one of `PRETRAINING`.
    pretraining_steps: actor steps of pre-training.
    transfer_steps: actor steps of a run that learns a task.
    snapshots: the actor steps of pre-training after which its policy is kept;
      the last one is the end.
    final_episodes: how many episodes make a final score.
    settings: the flags of all runs that have them.
    pretraining_settings: more flags, of pre-training alone.
    steps_per_second: actor steps of a run, an estimate until runs have told.
    evaluation_seconds: of a final evaluation, an estimate likewise.
    slots: where it is meant to run, as `harness.slots` reads them; `cpu` stands
      for all cores that are there.
    megabytes: what a run leaves on the disk, an estimate.
  """

  name: str
  purpose: str
  suites: Suites
  seeds: Tuple[int, ...]
  pretraining: str
  pretraining_steps: int
  transfer_steps: int
  snapshots: Tuple[int, ...]
  final_episodes: int
  settings: Mapping[str, Any]
  pretraining_settings: Mapping[str, Any]
  steps_per_second: float
  evaluation_seconds: float
  slots: str
  megabytes: float

  @property
  def envs(self) -> Tuple[str, ...]:
    """All environments of the suites, each once."""
    suites = self.suites.values()
    return tuple(dict.fromkeys(env for envs in suites for env in envs))


def frames_per_step(env: str) -> int:
  """Returns the frames of an actor step: 4 on Atari, 1 elsewhere."""
  return 4 if _is_atari(env) else 1


def pretraining_env(env: str) -> str:
  """Returns where a policy for an environment is pre-trained.

  Pre-training ignores the task's reward, so that all tasks of a game or of a
  kind of world share it. MiniGrid's worlds lose their goal, because it would
  end the episode, and have another layout in each episode.
  """
  base = env.partition(':')[0]
  return base if _is_atari(env) else f'{base}:no_goal'


def get(name: str) -> Scale:
  """Returns a scale; raises ValueError for an unknown one."""
  if name not in SCALES:
    advice = names.suggest(name, SCALES)
    raise ValueError(f'scale={name!r} is unknown: {advice}')
  return SCALES[name]


def _is_atari(env: str) -> bool:
  return re.fullmatch('[a-z0-9_]+(:.*)?', env) is not None


def _evaluations(num: int, budget: int) -> Mapping[str, int]:
  """Returns the setting of so many evaluations over a budget."""
  return {'evaluation_period': budget // num}


_ROOMS = 'MiniGrid-FourRooms-v0'
_NEAR = f'{_ROOMS}:fixed=1'  # The goal is five actions away.
_TWO_ROOMS = 'MiniGrid-MultiRoom-N2-S4-v0'
# The original, the easier and the harder rewards: to visit cells does not
# matter, pays, or costs, as Ms Pacman's dots do.
_PELLETS = (_NEAR, f'{_NEAR}:new_cell=0.15', f'{_NEAR}:new_cell=-0.15')
# So does opening the door, as destroying Hero's walls does.
_DOORS = (_TWO_ROOMS, f'{_TWO_ROOMS}:door=0.3', f'{_TWO_ROOMS}:door=-0.3')
_FAR = (f'{_ROOMS}:fixed', f'{_ROOMS}:fixed=15', f'{_ROOMS}:fixed=19')
# R2D2 alone finds the goal of these with few seeds, or with none.
_LAPTOP_HARD = (
  *_FAR,
  f'{_ROOMS}:fixed=5',
  'MiniGrid-LavaCrossingS9N1-v0:fixed=2',
)
_LAPTOP_DENSE = (_NEAR, 'MiniGrid-Empty-8x8-v0', _TWO_ROOMS)
_GPU_GAMES = tuple(
  dict.fromkeys((*PAPER_SUITES['ablation'], *PAPER_SUITES['hard']))
)
_ONE_PROCESS = {'lp_launch_type': 'in_process', 'num_actors': 1}
# The paper's settings and its 256 environments, on one machine with a GPU.
_ATARI = {'preset': 'gpu'}

SMOKE = Scale(
  name='smoke',
  purpose='whether everything works, in minutes; its scores mean nothing',
  suites={
    'full': (_FAR[0], 'MiniGrid-Empty-Random-6x6-v0'),
    'hard': (_FAR[0],),
    'ablation': (_FAR[0],),
    'tasks': _PELLETS,
    'strategies': (_FAR[0],),
    'budgets': (_FAR[0],),
  },
  seeds=(0, 1),
  pretraining=PER_SEED,
  pretraining_steps=2_000,
  transfer_steps=1_500,
  snapshots=(500, 1_000, 2_000),
  final_episodes=50,
  settings={
    'preset': 'minigrid',
    **_ONE_PROCESS,
    'envs_per_actor': 8,
    **{'torso_size': 16, 'lstm_size': 16, 'head_size': 16},
    'min_replay_size': 10,
    'samples_per_insert': 4.0,
    'evaluation_episodes': 50,  # The run itself makes its final score.
    **_evaluations(5, 1_500),
  },
  pretraining_settings={'evaluation_episodes': 5, **_evaluations(2, 2_000)},
  steps_per_second=150,
  evaluation_seconds=10,
  slots='cpu',
  megabytes=1,
)

LAPTOP = Scale(
  name='laptop',
  purpose='whether the claims hold in small worlds, in a night on two cores',
  suites={
    'full': (*_LAPTOP_HARD, *_LAPTOP_DENSE),
    'hard': _LAPTOP_HARD,
    'ablation': _LAPTOP_HARD,
    'tasks': (*_PELLETS, *_DOORS),
    'strategies': (_FAR[0], _NEAR),
    'budgets': (_FAR[0], 'MiniGrid-Empty-8x8-v0'),
  },
  seeds=(0, 1, 2, 3, 4),
  pretraining=PER_SEED,
  pretraining_steps=40_000,
  transfer_steps=40_000,
  snapshots=(5_000, 10_000, 20_000, 40_000),
  final_episodes=64,
  settings={
    'preset': 'minigrid',
    **_ONE_PROCESS,
    'envs_per_actor': 16,
    **_evaluations(10, 40_000),
  },
  # Its worlds pay nothing: zero-shot scores are measured on the tasks.
  pretraining_settings={'num_evaluators': 0},
  steps_per_second=700,
  evaluation_seconds=6,
  slots='cpu',
  megabytes=3,
)

GPU = Scale(
  name='gpu',
  purpose='the direction on Atari, in days of one accelerator',
  suites={**PAPER_SUITES, 'full': _GPU_GAMES, 'atari_26': ()},
  seeds=(0, 1, 2),
  pretraining=SHARED,
  pretraining_steps=25_000_000,
  transfer_steps=12_500_000,
  snapshots=(1_000_000, 2_500_000, 10_000_000, 25_000_000),
  final_episodes=50,
  settings={**_ATARI, **_evaluations(50, 12_500_000)},
  pretraining_settings=_evaluations(50, 25_000_000),
  steps_per_second=40_000,
  evaluation_seconds=3_600,
  slots='gpu:0,cpu',
  megabytes=1_000,
)

PAPER = Scale(
  name='paper',
  purpose='the paper itself: 2.6e12 actor steps if all is made',
  suites=PAPER_SUITES,
  seeds=(0, 1, 2),
  pretraining=SHARED,
  pretraining_steps=4_000_000_000,
  transfer_steps=1_250_000_000,
  snapshots=(
    *(25_000_000, 250_000_000, 500_000_000),
    *(1_000_000_000, 2_000_000_000, 4_000_000_000),
  ),
  final_episodes=50,
  settings={**_ATARI, **_evaluations(200, 1_250_000_000)},
  pretraining_settings=_evaluations(200, 4_000_000_000),
  steps_per_second=40_000,
  evaluation_seconds=3_600,
  slots='gpu:0,cpu',
  megabytes=2_000,
)

SCALES: Mapping[str, Scale] = {
  scale.name: scale for scale in (SMOKE, LAPTOP, GPU, PAPER)
}
