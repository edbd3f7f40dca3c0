"""Recordings of a random policy; needs neither Acme nor Reverb."""

from typing import NamedTuple

import dm_env
import numpy as np

from bt_acme import environments


class RandomPlay(NamedTuple):
  """A recording; `timesteps` has one more element than `actions`."""

  timesteps: list[dm_env.TimeStep]
  actions: np.ndarray

  def cut(self, steps: int) -> 'RandomPlay':
    """Returns the first steps and ends the last episode there."""
    timesteps = self.timesteps[: steps + 1]
    if timesteps[-1].first():
      timesteps.pop()
    timesteps[-1] = timesteps[-1]._replace(step_type=dm_env.StepType.LAST)
    return RandomPlay(timesteps, self.actions[: len(timesteps) - 1])

  def frames(self) -> np.ndarray:
    """Returns the newest frame of each time step, uint8 [N, 84, 84]."""
    return np.stack([step.observation[..., -1] for step in self.timesteps])


def record(game: str, steps: int) -> RandomPlay:
  """Plays a game with random actions."""
  environment = environments.make(game, seed=0)
  num_actions = environment.action_spec().num_values
  actions = np.random.default_rng(0).integers(
    num_actions, size=steps, dtype=np.int32
  )
  timesteps = [environment.reset()]
  timesteps += [environment.step(action) for action in actions]
  environment.close()
  return RandomPlay(timesteps, actions).cut(steps)
