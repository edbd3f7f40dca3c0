"""What stands for 0 and 100 in MiniGrid worlds, which have no human scores.

0 is the mean return of a uniform policy over 1,000 episodes. 100 is the mean
return of the best episode in each of these layouts, which a search finds. Only
where new cells pay is there no search, and 100 is a bound: each step enters a
new cell, and the last one is the goal.

  python -m experiments.paper.small_scores WORLD ...

writes them to `data/small_scores.csv`: for the worlds that are named, or for
all that are there already.
"""

import heapq
import itertools
import sys
from typing import (
  Any,
  Dict,
  FrozenSet,
  Iterator,
  List,
  Mapping,
  NamedTuple,
  Tuple,
)

import numpy as np
from minigrid.core import world_object

from bt_acme import environments, files
from bt_acme.environments import minigrid, naming
from bt_acme.evaluation import tables
from experiments.paper import data_files

PATH = data_files.FOLDER / 'small_scores.csv'
EPISODES = 1_000

_LEFT, _RIGHT, _FORWARD, _TOGGLE = 0, 1, 2, 5  # MiniGrid's actions.
_DIRECTIONS = ((1, 0), (0, 1), (-1, 0), (0, -1))  # By `agent_dir`.
_STEP_COST = 0.9  # The goal pays 1 - 0.9 steps / max_steps.
# Where the player may stand; empty cells are None.
_PASSABLE = (
  *(world_object.Goal, world_object.Floor, world_object.Door, type(None)),
)

_HEADER = """\
# These are mean returns in MiniGrid worlds. The column random is of a uniform
# policy over all episodes; best is of the best episode in each layout (kind
# search), or a bound that no policy exceeds (kind bound). The file is made by
# python -m experiments.paper.small_scores
"""


class SmallScore(NamedTuple):
  """The returns that stand for 0 and 100 in a world.

  Attributes:
    env: the world's whole name.
    random: the mean return of a uniform policy.
    best: the mean return of the best policy, or a bound on it.
    kind: `search` or `bound`, of `best`.
    episodes: the episodes behind `random`, and the layouts behind `best`.
  """

  env: str
  random: float
  best: float
  kind: str
  episodes: int


class Solution(NamedTuple):
  """The best episode of a layout: its actions, and what they return."""

  value: float
  actions: Tuple[int, ...]


class _State(NamedTuple):
  cell: Tuple[int, int]
  direction: int
  opened: FrozenSet[Tuple[int, int]]  # The doors opened in this episode.


def measure(env: str, episodes: int, seed: int = 0) -> SmallScore:
  """Plays a uniform policy, and searches the layouts that it meets.

  Args:
    env: a MiniGrid name with a goal, and with the modifiers `fixed`, `door` and
      `new_cell`.
    episodes: the number of episodes.
    seed: of the layouts and of the policy.
  """
  bonuses = naming.parse(env, minigrid.MODIFIERS)
  world: Any = environments.make(env, seed=seed)
  rng = np.random.default_rng(seed)
  num_actions = world.action_spec().num_values
  is_bound = bonuses.get('new_cell', 0) > 0
  random: List[float] = []
  best: List[float] = []
  for _ in range(episodes):
    step = world.reset()
    if not best or 'fixed' not in bonuses:
      best.append(
        _bound(world, bonuses) if is_bound else solve(world, bonuses).value
      )
    total = 0.0
    while not step.last():
      step = world.step(int(rng.integers(num_actions)))
      total += float(step.reward)
    random.append(total)
  kind = 'bound' if is_bound else 'search'
  return SmallScore(
    env, float(np.mean(random)), float(np.mean(best)), kind, episodes
  )


def solve(world: Any, bonuses: Mapping[str, Any]) -> Solution:
  """Finds the best episode from a world's first observation.

  Dijkstra's search over cell, direction and opened doors. It is exact, because
  a best path enters no cell twice: turning on the spot is never dearer than a
  loop. Doing nothing returns 0.

  Args:
    world: a MiniGrid world at the start of an episode.
    bonuses: its modifiers' values; `new_cell` must not be positive.

  Raises:
    ValueError: if it has locked doors or things that move or are carried,
      or if the goal cannot be reached in time.
  """
  inner = world._env
  _check_static(inner)
  x, y = map(int, inner.agent_pos)
  start = _State((x, y), int(inner.agent_dir), frozenset())
  # Entries are (cost, order, state, actions); equal costs keep their order. A
  # door's first opening is the end's business, so that no cost is negative.
  queue: List[Tuple[float, int, _State, Tuple[int, ...]]] = [(0, 0, start, ())]
  order = itertools.count(1)
  seen = set()
  solutions = []
  while queue:
    cost, _, state, actions = heapq.heappop(queue)
    if state in seen or len(actions) > inner.max_steps:
      continue
    seen.add(state)
    if isinstance(inner.grid.get(*state.cell), world_object.Goal):
      value = 1 - cost + bonuses.get('door', 0.0) * len(state.opened)
      solutions.append(Solution(value, actions))
      continue
    for action, then in _moves(inner.grid, state):
      step_cost = _STEP_COST / inner.max_steps
      if then.cell != state.cell:
        step_cost -= bonuses.get('new_cell', 0.0)
      heapq.heappush(
        queue, (cost + step_cost, next(order), then, (*actions, action))
      )
  if not solutions:
    raise ValueError(
      f'no path of at most {inner.max_steps} steps leads to a goal: name a '
      'world that has a goal.'
    )
  best = max(solutions, key=lambda solution: solution.value)
  return best if best.value > 0 else Solution(0.0, ())


def _moves(grid: Any, state: _State) -> Iterator[Tuple[int, _State]]:
  """The actions that change something and do not end in lava."""
  for action, turn in ((_LEFT, -1), (_RIGHT, 1)):
    yield action, state._replace(direction=(state.direction + turn) % 4)
  dx, dy = _DIRECTIONS[state.direction]
  ahead = (state.cell[0] + dx, state.cell[1] + dy)
  thing = grid.get(*ahead)
  if isinstance(thing, world_object.Door) and ahead not in state.opened:
    yield _TOGGLE, state._replace(opened=state.opened | {ahead})
  elif isinstance(thing, _PASSABLE):
    yield _FORWARD, state._replace(cell=ahead)


def _bound(world: Any, bonuses: Mapping[str, Any]) -> float:
  """A bound on returns where new cells pay more than a step costs."""
  inner = world._env
  # Where new cells pay nothing, the search finds the shortest path.
  steps = np.arange(len(solve(world, {}).actions), inner.max_steps + 1)
  cells = sum(isinstance(thing, _PASSABLE) for thing in inner.grid.grid)
  doors = sum(isinstance(t, world_object.Door) for t in inner.grid.grid)
  goal = 1 - _STEP_COST * steps / inner.max_steps
  new_cells = np.minimum(steps, cells - 1)
  extra = max(bonuses.get('door', 0.0), 0.0) * doors
  return float(np.max(goal + bonuses['new_cell'] * new_cells) + extra)


def _check_static(inner: Any) -> None:
  known = (*_PASSABLE, world_object.Wall, world_object.Lava)
  for thing in inner.grid.grid:
    is_set = isinstance(thing, world_object.Door) and (
      thing.is_locked or thing.is_open
    )
    if not isinstance(thing, known) or is_set:
      raise ValueError(
        f'{type(inner).__name__} has a {thing.type} that the search does not '
        'know: enter its best return by hand.'
      )


def read() -> Dict[str, SmallScore]:
  """The scores of `data/small_scores.csv`, by world."""
  if not PATH.exists():
    return {}
  return {
    row['env']: SmallScore(
      row['env'],
      float(row['random']),
      float(row['best']),
      row['kind'],
      int(row['episodes']),
    )
    for row in tables.read_csv(PATH)
  }


def write(scores: Mapping[str, SmallScore]) -> None:
  """Writes `data/small_scores.csv`, in the order of the worlds' names."""
  rows = [
    {
      **score._asdict(),
      'random': f'{score.random:.6f}',
      'best': f'{score.best:.6f}',
    }
    for _, score in sorted(scores.items())
  ]
  files.write_text(PATH, _HEADER + tables.csv_text(rows))


def main(arguments: List[str]) -> None:
  scores = read()
  for env in arguments or list(scores):
    scores[env] = measure(env, EPISODES)
    print(*scores[env], flush=True)
    write(scores)


if __name__ == '__main__':
  main(sys.argv[1:])
