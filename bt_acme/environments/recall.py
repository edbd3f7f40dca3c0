"""A test of memory: shows a sign, and asks for it some steps later."""

import functools
import re
from typing import Optional, Sequence, Tuple

import dm_env
import numpy as np
from dm_env import specs

from bt_acme.environments import base, naming, saving

_SIDE = 7  # Observations are as large as MiniGrid's.
_BLUE = 2  # The channel that marks the first sign.
_LONGEST = 1_000


def names() -> Tuple[str, ...]:
  """Returns one name, as an example."""
  return ('Recall-6',)


def find(name: str) -> Optional[naming.Maker]:
  """Finds 'Recall-N', where N steps lie between the sign and the question."""
  match = re.fullmatch(r'Recall-([1-9][0-9]*)', name)
  if not match or int(match[1]) > _LONGEST:
    return None
  return naming.Maker(functools.partial(Recall, int(match[1])))


class Recall(base.Environment):
  """Shows a sign, keeps the agent's hands busy, and then asks for the sign.

  There are two signs, and an action for each. After the sign come steps whose
  action must copy what they show, which is one of the two at random; a wrong
  copy costs 0.5. The last action is to name the first sign, for a reward of 1
  if it does and of -1 if not. Without a memory no policy has a positive mean
  return: agents also see their previous action, but that action is a copy and
  can carry nothing. After bsuite's memory length (Osband et al. 2020,
  "Behaviour Suite for Reinforcement Learning").
  """

  def __init__(self, length: int = 6, *, seed: int):
    """Makes the environment.

    Args:
      length: the number of steps to copy, between the sign and the question.
      seed: the seed of the signs.
    """
    self._length = length
    self._rng = np.random.default_rng(seed)
    self._wanted: Sequence[int] = ()
    self._step = length + 2  # The first step resets.

  def reset(self) -> dm_env.TimeStep:
    signs = self._rng.integers(2, size=1 + self._length).tolist()
    # No action is wrong at the sign itself.
    self._wanted = (*signs, signs[0])
    self._step = 0
    return dm_env.restart(self._observation())

  def step(self, action: int) -> dm_env.TimeStep:
    if self._step > self._length + 1:
      return self.reset()
    step, right = self._step, action == self._wanted[self._step]
    self._step += 1
    answered = step > self._length
    if answered:
      reward = 1.0 if right else -1.0
    else:
      reward = 0.0 if right or step == 0 else -0.5
    return base.time_step(
      self._observation(), reward, terminated=answered, truncated=False
    )

  def observation_spec(self) -> specs.BoundedArray:
    """Describes the sign to copy, uint8 [7, 7, 3]; zeros for the question."""
    return specs.BoundedArray((_SIDE, _SIDE, 3), np.uint8, 0, 255)

  def action_spec(self) -> specs.DiscreteArray:
    return specs.DiscreteArray(2)

  def state(self) -> saving.State:
    """Returns the generator, the episode's signs, and the place in it."""
    return {
      'generator': self._rng.bit_generator.state,
      'wanted': self._wanted,
      'step': self._step,
    }

  def restore(self, state: saving.State) -> None:
    """Goes on from a state."""
    self._rng.bit_generator.state = state['generator']
    self._wanted, self._step = state['wanted'], state['step']

  def _observation(self) -> np.ndarray:
    observation = _blank()
    if self._step > self._length:
      return observation  # The question, and after the answer.
    observation[:, :, self._wanted[self._step]] = 10
    if self._step == 0:
      observation[:, :, _BLUE] = 10
    return observation


def _blank() -> np.ndarray:
  return np.zeros([_SIDE, _SIDE, 3], np.uint8)
