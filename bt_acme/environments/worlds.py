"""Small worlds that ask one thing of an agent, for `experiments.learning`."""

import functools
from typing import Sequence, Set, Tuple

import dm_env
import numpy as np
from dm_env import specs

from bt_acme import environments
from bt_acme.environments import minigrid

RECALL = 'Recall'
COSTLY = 'CostlyFourRooms'
CHAIN = 'Chain'
FOUR_ROOMS = 'MiniGrid-FourRooms-v0'
# One of them, the same in all episodes: the goal is 15 actions away, behind a
# door.
FAR_GOAL = f'{FOUR_ROOMS}:fixed'

_SIZE = 7  # Observations are as large as MiniGrid's.


class Recall(dm_env.Environment):
  """Shows a sign, keeps the agent's hands busy, and then asks for the sign.

  There are two signs, and an action for each. After the sign come steps whose
  action must copy what they show, at random one or the other; a wrong copy
  costs 0.5. The last action is to name the first sign: 1 if it does, else -1.
  Without a memory no policy has a positive mean return: the action before,
  which agents see too, is a copy and can carry nothing. After bsuite's memory
  length (Osband et al. 2020, "Behaviour Suite for Reinforcement Learning").
  """

  def __init__(self, length: int = 6, *, seed: int):
    """Makes the world.

    Args:
      length: steps to copy, between the sign and the question.
      seed: of the signs.
    """
    self._length = length
    self._rng = np.random.default_rng(seed)
    self._wanted: Sequence[int] = ()
    self._step = 0

  def reset(self) -> dm_env.TimeStep:
    signs = self._rng.integers(2, size=1 + self._length).tolist()
    # At the sign itself no action is wrong.
    self._wanted = (*signs, signs[0])
    self._step = 0
    return dm_env.restart(self._observation())

  def step(self, action: int) -> dm_env.TimeStep:
    if self._step > self._length + 1:
      return self.reset()
    step, right = self._step, action == self._wanted[self._step]
    self._step += 1
    if step > self._length:
      return dm_env.termination(np.float32(1 if right else -1), self._blank())
    reward = np.float32(0 if right or step == 0 else -0.5)
    return dm_env.transition(reward, self._observation())

  def observation_spec(self) -> specs.BoundedArray:
    return specs.BoundedArray((_SIZE, _SIZE, 3), np.uint8, 0, 255)

  def action_spec(self) -> specs.DiscreteArray:
    return specs.DiscreteArray(2)

  def _blank(self) -> np.ndarray:
    return np.zeros([_SIZE, _SIZE, 3], np.uint8)

  def _observation(self) -> np.ndarray:
    observation = self._blank()
    if self._step > self._length:
      return observation  # The question.
    observation[:, :, self._wanted[self._step]] = 10
    if self._step == 0:
      observation[:, :, 2] = 10
    return observation


class Chain(dm_env.Environment):
  """A row of cells, all of which look different; to be explored.

  Actions are one step back and one ahead, from the first cell on. There is no
  reward. A random walk of an episode's length sees a fifth of the cells.
  """

  _LENGTH = _SIZE**2
  _STEPS = 60  # Of an episode.

  def __init__(self, *, seed: int):
    del seed  # Nothing is random.
    self._cell = 0
    self._step = self._STEPS

  def reset(self) -> dm_env.TimeStep:
    self._cell = self._step = 0
    return dm_env.restart(self._observation())

  def step(self, action: int) -> dm_env.TimeStep:
    if self._step == self._STEPS:
      return self.reset()
    self._step += 1
    self._cell = min(max(self._cell + 2 * action - 1, 0), self._LENGTH - 1)
    if self._step == self._STEPS:
      return dm_env.truncation(np.float32(0), self._observation())
    return dm_env.transition(np.float32(0), self._observation())

  def observation_spec(self) -> specs.BoundedArray:
    return specs.BoundedArray((_SIZE, _SIZE, 3), np.uint8, 0, 255)

  def action_spec(self) -> specs.DiscreteArray:
    return specs.DiscreteArray(2)

  def agent_cell(self) -> int:
    """As `MiniGrid.agent_cell`."""
    return self._cell

  def _observation(self) -> np.ndarray:
    observation = np.zeros([_SIZE, _SIZE, 3], np.uint8)
    observation[divmod(self._cell, _SIZE)] = 10
    return observation


class CostlyFourRooms(minigrid.MiniGrid):
  """FourRooms with the goal near the start, where seeing the world costs.

  Each cell that the agent had not been on before in the episode costs 0.1, so
  that a policy that explores well does worse than one that stands still. The
  way to the goal is worth it: layout 1, five actions.
  """

  _COST = np.float32(0.1)

  def __init__(self, *, seed: int):
    super().__init__(FOUR_ROOMS, seed=seed, layout_seed=1)
    self._visited: Set[Tuple[int, int]] = set()

  def reset(self) -> dm_env.TimeStep:
    timestep = super().reset()
    self._visited = {self.agent_cell()}
    return timestep

  def step(self, action: int) -> dm_env.TimeStep:
    timestep = super().step(action)
    if timestep.first() or self.agent_cell() in self._visited:
      return timestep
    self._visited.add(self.agent_cell())
    return timestep._replace(reward=timestep.reward - self._COST)


@functools.lru_cache(maxsize=None)  # Names are given once.
def register() -> None:
  """Gives the worlds their names in this process."""
  environments.register(RECALL, Recall)
  environments.register(CHAIN, Chain)
  environments.register(COSTLY, CostlyFourRooms)
