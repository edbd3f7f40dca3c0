"""Small worlds that ask one thing of an agent, for `experiments.learning`."""

from typing import Set, Tuple

import dm_env
import numpy as np
from dm_env import specs

from bt_acme import environments
from bt_acme.environments import minigrid

RECALL = 'Recall-10'
COSTLY = 'CostlyFourRooms'

_SIZE = 7  # Observations are as large as MiniGrid's.


class Recall(dm_env.Environment):
  """Shows one of two signs, then nothing, and then asks which it was.

  The reward of the last step is 1 for the action that names the sign and -1 for
  any other; actions before that have no effect. Without a memory no policy has
  a positive mean return. After bsuite's memory length (Osband et al. 2020,
  "Behaviour Suite for Reinforcement Learning").
  """

  def __init__(self, length: int = 10, *, seed: int):
    """Makes the world.

    Args:
      length: steps between the sign and the answer.
      seed: of the signs.
    """
    self._length = length
    self._rng = np.random.default_rng(seed)
    self._sign = 0
    self._step = 0

  def reset(self) -> dm_env.TimeStep:
    self._sign = int(self._rng.integers(2))
    self._step = 0
    return dm_env.restart(self._observation())

  def step(self, action: int) -> dm_env.TimeStep:
    if self._step > self._length:
      return self.reset()
    self._step += 1
    if self._step <= self._length:
      return dm_env.transition(np.float32(0), self._observation())
    reward = np.float32(1 if action == self._sign else -1)
    return dm_env.termination(reward, self._observation())

  def observation_spec(self) -> specs.BoundedArray:
    return specs.BoundedArray((_SIZE, _SIZE, 3), np.uint8, 0, 255)

  def action_spec(self) -> specs.DiscreteArray:
    return specs.DiscreteArray(2)

  def _observation(self) -> np.ndarray:
    observation = np.zeros([_SIZE, _SIZE, 3], np.uint8)
    if self._step == 0:
      observation[:, :, self._sign] = 10
    elif self._step == self._length:
      observation[:, :, 2] = 10  # The question.
    return observation


class CostlyFourRooms(minigrid.MiniGrid):
  """FourRooms with the goal near the start, where seeing the world costs.

  Each cell that the agent had not been on before in the episode costs 0.1, so
  that a policy that explores well does worse than one that stands still. The
  way to the goal is worth it: layout 1, five actions.
  """

  _COST = np.float32(0.1)

  def __init__(self, *, seed: int):
    super().__init__('MiniGrid-FourRooms-v0', seed=seed, layout_seed=1)
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


def register() -> None:
  """Gives the worlds their names in this process."""
  environments.register(RECALL, Recall)
  environments.register(COSTLY, CostlyFourRooms)
