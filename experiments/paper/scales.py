"""The four scales of the reproduction, read from `data/scales.json`.

`paper` has the scale of Campos et al. 2021. The other scales use other games
and budgets, so their numbers are shown next to the paper's but do not reproduce
them.

`smoke` and `laptop` use MiniGrid environments. In the hard ones, R2D2 alone
finds the goal with few seeds or none; in FourRooms:fixed=1 the goal is five
actions away. The tasks have an original, an easier and a harder reward:
visiting cells is neutral, rewarded or penalized, like the dots of Ms Pacman,
and so is opening the door, like destroying walls in Hero.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from experiments import command_line
from experiments.harness import runs
from experiments.paper.artifacts import DATA, PAPER_SUITES, Suites

SHARED, PER_SEED = 'shared', 'per_seed'
# Explains which pre-trained policy each seed transfers.
PRETRAINING: Mapping[str, str] = {
  SHARED: (
    'shared: all seeds use the policy pre-trained with seed 0, as in the '
    'paper, so the results show how reliable transfer is'
  ),
  PER_SEED: (
    'per seed: each seed pre-trains its own policy, so the results show how '
    'reliable pre-training and transfer are together'
  ),
}


class Scale(NamedTuple):
  """Games, budgets and settings of all artifacts.

  Attributes:
    name: the value of `--scale`.
    purpose: the purpose of the scale.
    suites: environments by suite (see `artifacts`). Suites that the file omits
      are the paper's; the paper's suites of Atari benchmarks are in
      `bt_acme.evaluation.human_normalized_scores`.
    seeds: the default seeds.
    pretraining: one of `PRETRAINING`.
    pretraining_steps: actor steps of pre-training.
    transfer_steps: actor steps of a run that learns a task.
    snapshots: the actor steps of pre-training after which the policy is
      exported; the last one is the end.
    final_episodes: the number of episodes behind a final score.
    settings: flags for all runs whose script has them.
    pretraining_settings: additional flags for pre-training.
    steps_per_second: estimated actor steps per second of a run, used until runs
      have finished.
    evaluation_seconds: estimated duration of a final evaluation, used until
      evaluations have finished.
    slots: the default slots, in the syntax of `harness.slots`.
    megabytes: estimated disk space of a run.
    overrides: the user's flags for all runs whose script has them, which
      override those of the scale.
  """

  name: str
  purpose: str
  suites: Suites
  seeds: Sequence[int]
  pretraining: str
  pretraining_steps: int
  transfer_steps: int
  snapshots: Sequence[int]
  final_episodes: int
  settings: Mapping[str, Any]
  pretraining_settings: Mapping[str, Any]
  steps_per_second: float
  evaluation_seconds: float
  slots: str
  megabytes: float
  overrides: Mapping[str, Any] = {}

  @property
  def envs(self) -> tuple[str, ...]:
    """All environments of the suites, without duplicates."""
    suites = self.suites.values()
    return tuple(dict.fromkeys(env for envs in suites for env in envs))


def pretraining_env(env: str) -> str:
  """Returns the environment in which to pre-train a policy for another one.

  Pre-training ignores the task's reward, so all tasks of a game or of a kind of
  environment share their pre-training. MiniGrid environments lose their goal,
  which would end the episode, and have another layout in each episode.
  """
  base = env.partition(':')[0]
  return base if runs.is_atari(env) else f'{base}:no_goal'


def get(name: str) -> Scale:
  """Returns a scale; raises ValueError for an unknown one."""
  return SCALES[command_line.known('scale', name, SCALES)]


SCALES: Mapping[str, Scale] = {
  name: Scale(
    name, **{**fields, 'suites': {**PAPER_SUITES, **fields['suites']}}
  )
  for name, fields in json.loads((DATA / 'scales.json').read_text()).items()
}
