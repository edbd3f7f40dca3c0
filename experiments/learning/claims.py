"""The runs behind each claim, as data."""

import dataclasses
import re
from typing import Any, List, Mapping, Optional, Tuple

CLAIMS = ('memory', 'coverage', 'transfer', 'deceptive')

RECALL = 'Recall-6'
CHAIN = 'Chain-49'
FOUR_ROOMS = 'MiniGrid-FourRooms-v0'
# The same layout in all episodes: the goal is 15 actions away, through a door.
FAR_GOAL = f'{FOUR_ROOMS}:fixed'
# The goal is five actions away, and exploring costs.
COSTLY = f'{FOUR_ROOMS}:fixed=1:new_cell=-0.1'

Settings = Mapping[str, Mapping[str, Any]]  # By group of the configuration.

_FLIGHTS = {'min_flight_probability': 0.01}  # Of every run that transfers.


@dataclasses.dataclass(frozen=True)
class Run:
  """One algorithm's run on one world.

  Attributes:
    claim: the claim that it belongs to.
    algorithm: its name in the table.
    kind: `r2d2`, `ngu` or `bt`; `random` acts at random and `behavior` as the
      behavior does, both without learning.
    world: name of the environment.
    actor_steps: of training.
    settings: settings that differ from the preset, by group.
    behavior: the pre-training run whose policy BT transfers, and whose weights
      R2D2 starts from. Without it, BT transfers an action repeat.
  """

  claim: str
  algorithm: str
  kind: str
  world: str
  actor_steps: int = 0
  settings: Settings = dataclasses.field(default_factory=dict)
  behavior: Optional['Run'] = None

  def name(self, seed: int) -> str:
    """Name of the files that keep its result."""
    words = re.sub(r'\W+', '_', f'{self.claim} {self.world} {self.algorithm}')
    return f'{words}-{seed}'


def runs() -> List[Run]:
  """All runs of all claims, in the order of the report."""
  pretraining = Run(
    'coverage', 'ngu 100k', 'ngu', f'{FOUR_ROOMS}:no_goal', 100_000
  )
  return [
    *_memory(),
    *_coverage_of_the_chain(),
    *_coverage_of_rooms(pretraining),
    *_transfer(
      'transfer',
      FAR_GOAL,
      40_000,
      pretraining,
      learner={'discount': 0.97, 'target_update_period': 100},
    ),
    *_transfer(
      'deceptive',
      COSTLY,
      30_000,
      pretraining,
      only=('R2D2', 'BT', 'fine-tuning'),
    ),
  ]


def _memory() -> List[Run]:
  def run(algorithm: str, **groups: Mapping[str, Any]) -> Run:
    # Episodes have eight steps.
    sequences = {'trace_length': 8, 'sequence_period': 8}
    settings = {'replay': sequences, **groups}
    return Run('memory', algorithm, 'r2d2', RECALL, 12_000, settings)

  return [
    run('Q(lambda)'),
    run('Retrace', learner={'loss': 'retrace'}),
    run('Q(lambda) no LSTM', network={'lstm_size': 0}),
  ]


_CONSTANT: Settings = {'intrinsic': {'intrinsic_reward': 'constant'}}
# RND's reward falls as its predictor learns, but rewards in the replay stay as
# they were. So this replay holds a few thousand steps only, to forget the large
# rewards of the beginning, and more of the environments explore by epsilon.
_RND: Settings = {
  'intrinsic': {'intrinsic_reward': 'rnd'},
  'replay': {
    'min_replay_size': 20,
    'max_replay_size': 150,
    'samples_per_insert': 24.0,
  },
  'learner': {'discount': 0.97, 'target_update_period': 50},
  'acting': {'epsilon_alpha': 2.0},
}


def _coverage_of_the_chain() -> List[Run]:
  def run(algorithm: str, steps: int, settings: Settings) -> Run:
    return Run('coverage', algorithm, 'ngu', CHAIN, steps, settings)

  explored = run('ngu 40k', 40_000, {})
  return [
    Run('coverage', 'random policy', 'random', CHAIN, behavior=explored),
    run('constant 20k', 20_000, _CONSTANT),
    run('constant 40k', 40_000, _CONSTANT),
    run('rnd 20k', 20_000, _RND),
    run('rnd 40k', 40_000, _RND),
    run('ngu 20k', 20_000, {}),
    explored,
  ]


def _coverage_of_rooms(pretraining: Run) -> List[Run]:
  return [
    dataclasses.replace(
      pretraining,
      algorithm='random policy',
      kind='random',
      actor_steps=0,
      behavior=pretraining,
    ),
    dataclasses.replace(
      pretraining, algorithm='constant 100k', settings=_CONSTANT
    ),
    pretraining,
  ]


def _transfer(
  claim: str,
  world: str,
  steps: int,
  behavior: Run,
  *,
  learner: Optional[Mapping[str, Any]] = None,
  only: Tuple[str, ...] = (),
) -> List[Run]:
  """A behavior zero-shot, and every way to make use of it.

  Args:
    claim: of the runs.
    world: of the runs.
    steps: actor steps of each run.
    behavior: the run that pre-trained the behavior.
    learner: settings of all runs.
    only: algorithms that are wanted; all of them if empty.

  Returns:
    The runs.
  """

  def run(
    algorithm: str, kind: str, transferred: Optional[Run] = None, **own: Any
  ) -> Run:
    settings = {'learner': learner or {}, 'transfer': {**_FLIGHTS, **own}}
    return Run(claim, algorithm, kind, world, steps, settings, transferred)

  learned = [
    run('R2D2', 'r2d2'),
    run('R2D2 ez-greedy', 'bt', extra_action=False),
    run('BT flights only', 'bt', behavior, extra_action=False),
    run('BT extra action only', 'bt', behavior, flights=False),
    run('BT', 'bt', behavior),
    run('fine-tuning', 'r2d2', behavior),
  ]
  return [
    Run(claim, 'pi_p zero-shot', 'behavior', world, behavior=behavior),
    *(r for r in learned if not only or r.algorithm in only),
  ]
