"""A memory test that shows a sign and asks for it some steps later."""

import functools
import re
from collections.abc import Sequence

import dm_env
import numpy as np
from dm_env import specs

from bt_acme.environments import base, naming, saving

_SIDE = 7  # Observations have the size of MiniGrid's.
_BLUE = 2  # The channel that marks the first sign.
_LONGEST = 1_000


def names() -> tuple[str, ...]:
  """Returns an example name."""
  return ('Recall-6',)


def find(name: str) -> naming.Maker | None:
  """Returns the maker of 'Recall-N'; None for other names.

  N is the number of steps between the sign and the question.
  """
  match = re.fullmatch(r'Recall-([1-9][0-9]*)', name)
  if not match or int(match[1]) > _LONGEST:
    return None
  return naming.Maker(functools.partial(Recall, int(match[1])))


class Recall(base.Environment):
  """Shows a sign, then distractor signs to copy, then asks for the first sign.

  There are two signs, and an action for each. Each of the following steps shows
  a random sign, which the action must copy; a wrong copy has reward -0.5. The
  last action must name the first sign: reward 1 if correct, else -1. Without
  memory, no policy has a positive mean return. An agent also observes its
  previous action, but that action is a copy and carries no information about
  the first sign. Based on bsuite's memory length (Osband et al. 2020,
  "Behaviour Suite for Reinforcement Learning").
  """

  def __init__(self, length: int = 6, *, seed: int):
    """Initializes the environment.

    Args:
      length: the number of signs to copy, between first sign and question.
      seed: the seed of the signs.
    """
    self._length = length
    self._rng = np.random.default_rng(seed)
    self._wanted: Sequence[int] = ()
    self._step = length + 2  # The first `step` calls `reset`.

  def reset(self) -> dm_env.TimeStep:
    """Starts an episode with a random sign."""
    signs = self._rng.integers(2, size=1 + self._length).tolist()
    # At the first sign, any action is correct.
    self._wanted = (*signs, signs[0])
    self._step = 0
    return dm_env.restart(self._observation())

  def step(self, action: int) -> dm_env.TimeStep:
    """Takes an action; the step after the end of an episode starts the next."""
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
    """Describes observations: uint8 [7, 7, 3].

    An observation shows a sign. It is 0 at the question and after the answer.
    """
    return specs.BoundedArray((_SIDE, _SIDE, 3), np.uint8, 0, 255)

  def action_spec(self) -> specs.DiscreteArray:
    """Describes the two actions, one per sign."""
    return specs.DiscreteArray(2)

  def state(self) -> saving.State:
    """Returns the random generator, the signs and the step of the episode."""
    generator = self._rng.bit_generator.state
    return {'generator': generator, 'wanted': self._wanted, 'step': self._step}

  def restore(self, state: saving.State) -> None:
    """Restores a state returned by `state()`."""
    self._rng.bit_generator.state = state['generator']
    self._wanted, self._step = state['wanted'], state['step']

  def _observation(self) -> np.ndarray:
    observation = np.zeros([_SIDE, _SIDE, 3], np.uint8)
    if self._step > self._length:
      return observation  # The question, or the end.
    observation[:, :, self._wanted[self._step]] = 10
    if self._step == 0:
      observation[:, :, _BLUE] = 10
    return observation
