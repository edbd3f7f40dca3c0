"""Four scales at which the paper can be made, out of `data/scales.json`.

`paper` is Campos et al. 2021 itself. The others replace its games and budgets:
their numbers stand beside the paper's, and are never those.

`smoke` and `laptop` have MiniGrid's worlds. R2D2 alone finds the goal of the
hard ones with few seeds, or with none; in FourRooms:fixed=1 it is five actions
away. Tasks are the original, the easier and the harder rewards: to visit cells
does not matter, pays, or costs, as Ms Pacman's dots do; so does opening the
door, as destroying Hero's walls does.
"""

import json
import re
from typing import Any, Iterator, Mapping, NamedTuple, Tuple

from bt_acme.config import names
from experiments.paper import data_files
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
      all games, its part `atari_26` (Kaiser et al. 2019). What the file leaves
      out is the paper's.
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


def _read() -> Iterator[Scale]:
  content = json.loads((data_files.FOLDER / 'scales.json').read_text())
  for name, fields in content.items():
    own = {suite: tuple(envs) for suite, envs in fields.pop('suites').items()}
    fields['suites'] = {**PAPER_SUITES, **own}
    for key in ('seeds', 'snapshots'):
      fields[key] = tuple(fields[key])
    yield Scale(name, **fields)


SCALES: Mapping[str, Scale] = {scale.name: scale for scale in _read()}
SMOKE, LAPTOP, GPU, PAPER = SCALES.values()
