"""Atari environments with dm-acme's own wrappers."""

from collections.abc import Callable

import ale_py
import dm_env
import numpy as np
from acme import specs, wrappers
from ale_py import roms

# Untrained policies may stand still, and dm-acme's loop runs whole episodes.
_MAX_FRAMES = 1_200


class RawAtari(dm_env.Environment):
  """A game without frame skipping, like `wrappers.GymAtariAdapter` for Gym."""

  def __init__(self, game: str, seed: int):
    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
    self._ale = ale_py.ALEInterface()
    self._ale.setFloat('repeat_action_probability', 0.0)
    self._ale.setInt('random_seed', seed)
    self._ale.loadROM(str(roms.get_rom_path(game)))
    self._actions = self._ale.getLegalActionSet()

  def _observation(self) -> tuple[np.ndarray, int]:
    return self._ale.getScreenRGB(), self._ale.lives()

  def reset(self) -> dm_env.TimeStep:
    self._ale.reset_game()
    return dm_env.restart(self._observation())

  def step(self, action: list[np.ndarray]) -> dm_env.TimeStep:
    reward = self._ale.act(self._actions[action[0].item()])
    if self._ale.game_over():
      return dm_env.termination(reward, self._observation())
    return dm_env.transition(reward, self._observation())

  def observation_spec(self) -> tuple[specs.Array, specs.Array]:
    shape = (*self._ale.getScreenDims(), 3)
    return (
      specs.BoundedArray(shape, np.uint8, 0, 255, name='rgb'),
      specs.Array((), np.float64, name='lives'),
    )

  def action_spec(self) -> list[specs.BoundedArray]:
    return [specs.DiscreteArray(len(self._actions))]


class _AtariWrapper(wrappers.AtariWrapper):
  def reward_spec(self) -> specs.Array:
    return specs.Array((), np.float64)  # dm-acme uses the removed `np.float`.


def make(game: str, seed: int = 0) -> dm_env.Environment:
  """Makes a game with dm-acme's pre-processing: 4 stacked 84x84 gray frames."""
  environment = _AtariWrapper(
    RawAtari(game, seed), max_episode_len=_MAX_FRAMES, num_stacked_frames=4
  )
  return wrappers.ObservationActionRewardWrapper(
    wrappers.SinglePrecisionWrapper(environment)
  )


def random_turns(game: str) -> Callable[[], int]:
  """Returns a function that takes random steps and returns their number."""
  environment = make(game)
  num_actions = environment.action_spec().num_values
  rng = np.random.default_rng(0)

  def turn() -> int:
    actions = rng.integers(num_actions, size=16, dtype=np.int32)
    return sum(not environment.step(action).first() for action in actions)

  return turn
