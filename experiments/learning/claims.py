"""The claims: tables of runs, as data.

A run says what is trained on which world; several tables may show the same run,
and it is executed once. Run `s` of an algorithm that transfers a behavior uses
the behavior that pre-training run `s` has learned, so that a result tells how
safe pre-training and transfer are together.
"""

import dataclasses
import re
from typing import Any, List, Mapping, Optional, Sequence, Tuple

# What each claim says, above its tables.
CLAIMS = {
  'exploration': (
    "NGU's policy visits more cells of a world in an episode than the policies "
    "that RND's reward and a constant reward teach, and than a random policy. "
    'The worlds pay nothing. The columns with a share are evaluations during '
    'training.'
  ),
  'transfer': (
    'Behavior transfer solves worlds whose reward is far away, within a budget '
    'in which epsilon-greedy R2D2, ez-greedy R2D2 and fine-tuning do not. pi_p '
    'is the behavior by itself.'
  ),
  'no_harm': (
    'Where R2D2 finds the reward easily, behavior transfer is no worse.'
  ),
  'deception': (
    'The behavior visits as many cells as it can, and each costs. Behavior '
    'transfer learns nonetheless which of its visits pay.'
  ),
  'ablation': 'Flights and the extra action, apart and together.',
  'weights': (
    "The behavior's weights as a start, of the torso and the LSTM (partial) or "
    'of all layers (full), with and without behavior transfer.'
  ),
  'memory': 'The LSTM recalls what was seen at the beginning of an episode.',
}

NUM_SEEDS = 10  # Of the results that are published.
PRETRAINING_STEPS = 40_000
TASK_STEPS = 25_000

# Each cell has its own mapping of the two actions, so that no constant action
# walks the chain.
CHAIN = 'Chain-50:random_actions'
ROOMS = 'MiniGrid-FourRooms-v0'
CROSSING = 'MiniGrid-LavaCrossingS9N1-v0'
RECALL = 'Recall-6'
# The goal is five actions away, and each new cell of an episode costs.
COSTLY = f'{ROOMS}:fixed=1:new_cell=-0.2'
# Worlds with one layout each, whose goal is 14 actions away or more.
HARD = (
  *(f'{ROOMS}:fixed', f'{ROOMS}:fixed=5', f'{ROOMS}:fixed=9'),
  f'{CROSSING}:fixed',
)
# Worlds that R2D2 solves.
EASY = (f'{ROOMS}:fixed=3', 'MiniGrid-Empty-8x8-v0')


@dataclasses.dataclass(frozen=True)
class Run:
  """One algorithm's run on one world.

  Attributes:
    algorithm: its name in the tables.
    kind: `r2d2`, `ngu` or `bt`; `random` acts at random and `behavior` as the
      behavior does, both without learning.
    world: the name of the environment.
    actor_steps: the number of steps of training.
    settings: settings by name, over those of the preset.
    behavior: the pre-training run whose policy is transferred, and whose
      weights `init` loads. Without it, BT transfers an action repeat.
    init: the weights that are loaded: `partial`, `full`, or none if empty.
  """

  algorithm: str
  kind: str
  world: str
  actor_steps: int = 0
  settings: Mapping[str, Any] = dataclasses.field(
    default_factory=dict, hash=False
  )
  behavior: Optional['Run'] = None
  init: str = ''

  def name(self, seed: int) -> str:
    """The name of the files that keep its result."""
    words = re.sub(r'[^0-9A-Za-z.=-]+', '_', f'{self.world} {self.algorithm}')
    return f'{words}-{seed}'


@dataclasses.dataclass(frozen=True)
class Table:
  """Runs to compare on one world.

  Attributes:
    claim: one of `CLAIMS`.
    world: the world of all runs.
    runs: the rows.
    columns: what is shown of each run, of `report`'s columns.
  """

  claim: str
  world: str
  runs: Tuple[Run, ...]
  columns: Tuple[str, ...]


def tables() -> List[Table]:
  """All tables, in the order of the report."""
  explored = (f'{ROOMS}:no_goal', f'{CROSSING}:no_goal', CHAIN)
  return [
    *(_exploration(world) for world in explored),
    *(_transfer('transfer', world, _COMPARED) for world in HARD),
    *(_transfer('no_harm', world, ('R2D2', 'BT')) for world in EASY),
    _transfer('deception', COSTLY, _COMPARED),
    *(_transfer('ablation', world, _PARTS) for world in HARD),
    *(_transfer('weights', world, _WEIGHTS) for world in HARD),
    _memory(),
  ]


def _explorer(world: str, reward: str = 'NGU') -> Run:
  """Pre-training, by one of the intrinsic rewards."""
  settings = {'intrinsic_reward': reward.lower()}
  return Run(reward, 'ngu', world, PRETRAINING_STEPS, settings)


def _exploration(world: str) -> Table:
  ngu = _explorer(world)
  return Table(
    'exploration',
    world,
    (
      Run('random', 'random', world, behavior=ngu),
      _explorer(world, 'constant'),
      _explorer(world, 'RND'),
      ngu,
    ),
    ('cells_25', 'cells_50', 'cells_75', 'cells'),
  )


# The rows of the claims about transfer.
_COMPARED = ('pi_p', 'R2D2', 'ez-greedy', 'fine-tuning', 'BT')
_PARTS = ('R2D2', 'BT, flights only', 'BT, extra action only', 'BT')
_WEIGHTS = (
  *('R2D2', 'R2D2, partial', 'fine-tuning'),
  *('BT', 'BT, partial', 'BT, full'),
)


def _transfer(claim: str, world: str, algorithms: Sequence[str]) -> Table:
  """Ways to learn a task, some of which make use of a behavior.

  Args:
    claim: of the table.
    world: the task; the behavior comes from the same kind of world without its
      goal, with another layout in each episode.
    algorithms: the rows.
  """
  behavior = _explorer(f'{world.partition(":")[0]}:no_goal')

  def run(algorithm: str) -> Run:
    kind = 'bt' if algorithm.startswith(('BT', 'ez')) else 'r2d2'
    init = {'partial': 'partial', 'full': 'full', 'tuning': 'full'}.get(
      re.split('[ -]', algorithm)[-1], ''
    )
    settings = {}
    if algorithm in ('ez-greedy', 'BT, flights only'):
      settings['extra_action'] = False
    if algorithm == 'BT, extra action only':
      settings['flights'] = False
    uses_behavior = init or algorithm.startswith('BT')
    return Run(
      algorithm,
      kind,
      world,
      TASK_STEPS,
      settings,
      behavior if uses_behavior else None,
      init,
    )

  runs = [
    Run('pi_p', 'behavior', world, behavior=behavior)
    if algorithm == 'pi_p'
    else run(algorithm)
    for algorithm in algorithms
  ]
  columns = ('solved', 'seeds', 'each', 'return', 'training_solved')
  return Table(claim, world, tuple(runs), columns)


def _memory() -> Table:
  def run(algorithm: str, **settings: Any) -> Run:
    # Episodes have eight steps.
    sequences = {'trace_length': 8, 'sequence_period': 8}
    return Run(algorithm, 'r2d2', RECALL, 12_000, {**sequences, **settings})

  return Table(
    'memory',
    RECALL,
    (
      run('Q(lambda)'),
      run('Retrace', loss='retrace'),
      run('without LSTM', lstm_size=0),
    ),
    ('return',),
  )
