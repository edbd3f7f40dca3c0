"""The claims: tables of runs, as data.

A run says what is trained on which world; several tables may show the same run,
and it is executed once. Run `s` of an algorithm that transfers a behavior uses
the behavior that pre-training run `s` has learned, so that a result tells how
safe pre-training and transfer are together.
"""

import dataclasses
import re
from typing import Any, Dict, List, Mapping, Sequence, Tuple

from experiments.harness import small_runs

# What the tables of each claim ask.
CLAIMS = {
  'exploration': (
    "Does NGU's policy visit more cells of a world in an episode than the "
    "policies that RND's reward and a constant reward teach, and than a random "
    'policy? The worlds pay nothing. The columns with a share are evaluations '
    'during training.'
  ),
  'transfer': (
    'Does behavior transfer solve worlds whose reward is far away, within a '
    'budget in which epsilon-greedy R2D2, ez-greedy R2D2 and fine-tuning do '
    'not? pi_p is the behavior by itself.'
  ),
  'limits': (
    'Worlds of the same kind that behavior transfer solves with some seeds '
    'only: often the behavior of the seed hardly ever comes near the goal.'
  ),
  'no_harm': (
    'Is behavior transfer no worse where R2D2 finds the reward easily?'
  ),
  'deception': (
    'The behavior visits as many cells as it can, and opens doors on its way. '
    'In these worlds that pays, or does not matter; it costs in the last one, '
    'and in the world above whose name ends in `new_cell=-0.15`. Does behavior '
    'transfer learn which of it pays?'
  ),
  'ablation': 'What do flights and the extra action do, apart and together?',
  'weights': (
    "What do the behavior's weights do as a start, those of the torso and the "
    'LSTM (partial) or of all layers (full), with and without behavior '
    'transfer?'
  ),
  'settings': (
    'What becomes of exploration and of behavior transfer if one setting of '
    'the `minigrid` preset has another value? These seeds and this task appear '
    'in no other table.'
  ),
  'memory': (
    'Does the LSTM recall what was seen at the beginning of an episode?'
  ),
}

PRETRAINING_STEPS = 40_000
TASK_STEPS = 40_000
EASY_TASK_STEPS = 20_000  # Where the reward is near.

# Each cell has its own mapping of the two actions, so that no constant action
# walks the chain.
CHAIN = 'Chain-50:random_actions'
ROOMS = 'MiniGrid-FourRooms-v0'
CROSSING = 'MiniGrid-LavaCrossingS9N1-v0'
RECALL = 'Recall-6'
NEAR = f'{ROOMS}:fixed=1'  # The goal is five actions away.
COSTLY = f'{NEAR}:new_cell=-0.15'  # Each new cell of an episode costs.
COSTLY_FAR = f'{ROOMS}:fixed=24:new_cell=-0.1'  # Seven actions away.
# Worlds with one layout each: the goal is 11 to 16 actions away, or exploring
# costs.
HARD = (
  *(f'{ROOMS}:fixed', f'{ROOMS}:fixed=15', f'{ROOMS}:fixed=19'),
  COSTLY,
)
HARDER = (COSTLY_FAR, f'{ROOMS}:fixed=5', f'{CROSSING}:fixed=2')
TAKEN_APART = (HARD[0], COSTLY)  # One far away, and one that costs.
# A world of the same kind, for the choice of settings.
SEARCH = f'{ROOMS}:fixed=9'
TWO_ROOMS = 'MiniGrid-MultiRoom-N2-S4-v0'
# Worlds in which what the behavior does pays, does not, or costs: to visit
# cells (`COSTLY` is the last of these), and to open the door.
VARIANTS = (
  *(f'{NEAR}:new_cell=0.15', NEAR),
  *(f'{TWO_ROOMS}:door=0.3', TWO_ROOMS, f'{TWO_ROOMS}:door=-0.3'),
)
EASY = (NEAR, TWO_ROOMS, f'{NEAR}:new_cell=0.15')  # Rewards are near or dense.


Run = small_runs.Run


@dataclasses.dataclass(frozen=True)
class Table:
  """Runs to compare on one world.

  Attributes:
    claim: one of `CLAIMS`.
    world: the world of all runs.
    runs: the rows.
    columns: what is shown of each run, of `report`'s columns.
    seeds: of each run.
  """

  claim: str
  world: str
  runs: Tuple[Run, ...]
  columns: Tuple[str, ...]
  seeds: Sequence[int] = range(10)


def tables() -> List[Table]:
  """All tables, in the order of the report."""
  explored = (f'{ROOMS}:no_goal', f'{TWO_ROOMS}:no_goal', CHAIN)
  return [
    *(_exploration(world) for world in explored),
    *(_transfer('transfer', world, _COMPARED) for world in HARD),
    *(_transfer('limits', world, ('pi_p', 'R2D2', 'BT')) for world in HARDER),
    *(_transfer('no_harm', world, ('R2D2', 'BT')) for world in EASY),
    *(
      _transfer('deception', world, ('pi_p', 'R2D2', 'fine-tuning', 'BT'))
      for world in VARIANTS
    ),
    *(_transfer('ablation', world, _PARTS) for world in TAKEN_APART),
    *(_transfer('weights', world, _WEIGHTS) for world in TAKEN_APART),
    _settings_of_pretraining(),
    _settings_of_transfer(),
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
    settings: Dict[str, Any] = {}
    if algorithm in ('ez-greedy', 'BT, flights only'):
      settings['extra_action'] = False
    if algorithm == 'ez-greedy':
      # What repeats an action has no state, and no epsilon.
      settings['flight_behavior_state'] = 'advance'
      settings['behavior_epsilon'] = 0.01
    if algorithm == 'BT, extra action only':
      settings['flights'] = False
    uses_behavior = init or algorithm.startswith('BT')
    return Run(
      algorithm,
      kind,
      world,
      EASY_TASK_STEPS if world in VARIANTS else TASK_STEPS,
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


# One setting that differs from the preset. First come the values that these had
# in version 0.1.0, or the paper's.
_PRETRAINING_SETTINGS: Tuple[Mapping[str, Any], ...] = (
  {'discount': 0.99},
  {'error_decay': 0.0},
  {'initial_priority': 'largest'},
  {'target_update_period': 200},
  {'adam_epsilon': 1e-4},
  {'discount': 0.97},
  {'intrinsic_steps': 20, 'intrinsic_window': 'spread'},
  {'batch_size': 8, 'samples_per_insert': 12.0},
  {'learning_rate': 5e-4},
)
_TASK_SETTINGS: Tuple[Mapping[str, Any], ...] = (
  {'flight_behavior_state': 'advance'},
  {'initial_priority': 'largest'},
  {'target_update_period': 200},
  {'adam_epsilon': 1e-4},
  {'trace_decay': 0.7},
  {'discount': 0.99},
  {'min_flight_probability': 0.0001, 'flight_exponent': 2.0},
  {'batch_size': 8},
  {'trace_length': 80},
  {'samples_per_insert': 12.0},
  {'learning_rate': 5e-4},
  {'behavior_epsilon': 0.3},
  {'trace_decay': 0.95},
)
_SEARCH_SEEDS = range(100, 103)  # No other table has these.


def _with_settings(run: Run, settings: Mapping[str, Any]) -> Run:
  words = ', '.join(f'{name}={value}' for name, value in settings.items())
  return dataclasses.replace(
    run, algorithm=words, settings={**run.settings, **settings}
  )


def _settings_of_pretraining() -> Table:
  ngu = _explorer(f'{ROOMS}:no_goal')
  runs = [ngu, *(_with_settings(ngu, each) for each in _PRETRAINING_SETTINGS)]
  columns = ('cells_25', 'cells_50', 'cells_75', 'cells')
  return Table('settings', ngu.world, tuple(runs), columns, _SEARCH_SEEDS)


def _settings_of_transfer() -> Table:
  table = _transfer('settings', SEARCH, ('R2D2', 'BT'))
  r2d2, bt = table.runs
  runs = [r2d2, bt, *(_with_settings(bt, each) for each in _TASK_SETTINGS)]
  return dataclasses.replace(table, runs=tuple(runs), seeds=_SEARCH_SEEDS)


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
