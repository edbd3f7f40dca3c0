"""A row of cells with distinct observations, for exploration without reward."""

import functools
import math
import re

import dm_env
import numpy as np
from dm_env import specs

from bt_acme.environments import base, naming, saving

_SMALLEST_SIDE = 7  # Observations are at least as large as MiniGrid's.
_LONGEST = 400
_STEPS_OF_49 = 60  # Number of steps per episode in a chain of 49 cells.

_MODIFIERS = (naming.Modifier('random_actions=3', naming.number, default=0),)


def names() -> tuple[str, ...]:
  """Returns an example name."""
  return ('Chain-49',)


def find(name: str) -> naming.Maker | None:
  """Returns the maker of 'Chain-N', a chain of N cells; None for other names.

  With ':random_actions', each cell has its own mapping of the two actions, so
  repeating one action does not traverse the chain. ':random_actions=3' selects
  mapping 3.
  """
  match = re.fullmatch(r'Chain-([1-9][0-9]*)', name.partition(':')[0])
  if not match or not 2 <= int(match[1]) <= _LONGEST:
    return None
  mapping = naming.parse(name, _MODIFIERS).get('random_actions')
  return naming.Maker(
    functools.partial(Chain, int(match[1]), mapping_seed=mapping)
  )


class Chain(base.Environment):
  """A row of cells; an episode starts in the first cell.

  One action moves forward by one cell, the other backward. There is no reward.
  An episode is about a fifth longer than needed to traverse the row: 60 steps
  for 49 cells. A random policy visits a fifth of 49 cells.
  """

  def __init__(
    self, num_cells: int = 49, *, seed: int, mapping_seed: int | None = None
  ):
    """Initializes the environment.

    Args:
      num_cells: the number of cells in the row.
      seed: unused, because episodes are deterministic.
      mapping_seed: the seed of the random choice, for each cell, of the action
        that moves forward; if None, action 1 moves forward in all cells.
    """
    del seed
    self._side = max(_SMALLEST_SIDE, math.ceil(math.sqrt(num_cells)))
    self._ahead = np.ones(num_cells, np.int64)
    if mapping_seed is not None:
      rng = np.random.default_rng(mapping_seed)
      self._ahead = rng.integers(2, size=num_cells)
    self._num_steps = round(_STEPS_OF_49 * num_cells / 49)
    self._cell = 0
    self._step = self._num_steps  # The first `step` calls `reset`.

  def reset(self) -> dm_env.TimeStep:
    """Starts an episode in the first cell."""
    self._cell = self._step = 0
    return dm_env.restart(self._observation())

  def step(self, action: int) -> dm_env.TimeStep:
    """Moves forward or backward; the step after an episode starts the next."""
    if self._step == self._num_steps:
      return self.reset()
    self._step += 1
    ahead = 1 if action == self._ahead[self._cell] else -1
    self._cell = min(max(self._cell + ahead, 0), len(self._ahead) - 1)
    is_last = self._step == self._num_steps
    return base.time_step(
      self._observation(), 0.0, terminated=False, truncated=is_last
    )

  def observation_spec(self) -> specs.BoundedArray:
    """Describes observations: the cell, wrapped into a square [S, S, 3]."""
    return specs.BoundedArray((self._side, self._side, 3), np.uint8, 0, 255)

  def action_spec(self) -> specs.DiscreteArray:
    """Describes the two actions."""
    return specs.DiscreteArray(2)

  def agent_cell(self) -> int:
    """Returns the index of the agent's cell; for evaluation only."""
    return self._cell

  def state(self) -> saving.State:
    """Returns the cell and the step of the episode."""
    return {'cell': self._cell, 'step': self._step}

  def restore(self, state: saving.State) -> None:
    """Restores a state returned by `state()`."""
    self._cell, self._step = state['cell'], state['step']

  def _observation(self) -> np.ndarray:
    observation = np.zeros([self._side, self._side, 3], np.uint8)
    observation[divmod(self._cell, self._side)] = 10
    return observation
