"""Atari 2600 games as `dm_env`, with the standard pre-processing.

Every setting is that of Agent57: all 18 actions, each repeated for 4 frames;
grayscale frames of 84x84 pixels, the maximum of the last two, 4 of them
stacked; 1 to 30 no-op frames at the start; no sticky actions, raw rewards, and
no end of the episode when a life is lost. Sources: Kapturowski et al. 2019
(R2D2); Badia et al. 2020 (NGU), Table 8.

Agent57 scales frames down by bilinear interpolation. These are scaled down by
averaging areas, as ale-py's `AtariVectorEnv` does, so that both give the same
observations. Only the last observation of an episode differs, because
`AtariVectorEnv` then still has frames of the previous step in its maximum.
"""

import collections
import functools
from typing import Deque, Optional, Tuple

import ale_py
import cv2
import dm_env
import numpy as np
from ale_py import roms
from dm_env import specs

from bt_acme.environments import atari_vector, base, naming, saving, tasks

ATARI_57 = (
  'alien',
  'amidar',
  'assault',
  'asterix',
  'asteroids',
  'atlantis',
  'bank_heist',
  'battle_zone',
  'beam_rider',
  'berzerk',
  'bowling',
  'boxing',
  'breakout',
  'centipede',
  'chopper_command',
  'crazy_climber',
  'defender',
  'demon_attack',
  'double_dunk',
  'enduro',
  'fishing_derby',
  'freeway',
  'frostbite',
  'gopher',
  'gravitar',
  'hero',
  'ice_hockey',
  'jamesbond',
  'kangaroo',
  'krull',
  'kung_fu_master',
  'montezuma_revenge',
  'ms_pacman',
  'name_this_game',
  'phoenix',
  'pitfall',
  'pong',
  'private_eye',
  'qbert',
  'riverraid',
  'road_runner',
  'robotank',
  'seaquest',
  'skiing',
  'solaris',
  'space_invaders',
  'star_gunner',
  'surround',
  'tennis',
  'time_pilot',
  'tutankham',
  'up_n_down',
  'venture',
  'video_pinball',
  'wizard_of_wor',
  'yars_revenge',
  'zaxxon',
)

_SIDE = 84  # Pixels of an observation's height and width.


def names() -> Tuple[str, ...]:
  """Returns the 57 games, and the tasks that give some another reward."""
  return (*ATARI_57, *tasks.TASKS)


def find(name: str) -> Optional[naming.Maker]:
  """Finds a game or a task by its name."""
  if name in ATARI_57:
    return naming.Maker(
      functools.partial(Atari, name),
      functools.partial(atari_vector.AtariVector, name),
      can_stack=True,
    )
  if name in tasks.TASKS:
    task = tasks.TASKS[name]
    return naming.Maker(
      functools.partial(Atari, task.game.name, task=task), can_stack=True
    )
  return None


class Atari(base.Environment):
  """One Atari game.

  Game over has discount 0. At `max_frames` the discount stays 1, so that the
  last observation is bootstrapped from. Rewards of no-op frames are not paid.
  """

  def __init__(
    self,
    game: str,
    *,
    seed: int,
    task: Optional[tasks.GameTask] = None,
    stack: int = 4,
    action_repeat: int = 4,
    max_noops: int = 30,
    max_frames: int = 108_000,
  ) -> None:
    """Starts an emulator.

    Args:
      game: one of `ATARI_57`.
      seed: the seed of the number of no-ops and of the console.
      task: rewards that replace the game's own; None keeps the game's.
      stack: the number of frames in an observation, the newest last. Frames
        from before the episode are zeros.
      action_repeat: the number of frames that an action lasts.
      max_noops: the largest number of no-op frames that an episode draws, and 1
        is the smallest; 0 stands for no no-op frames.
      max_frames: the number of frames after which an episode is cut off, not
        counting its no-op frames.

    Raises:
      ValueError: if the game's memory is not laid out as `task` needs it.
    """
    self._rng = np.random.default_rng(seed)
    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
    self._ale = ale_py.ALEInterface()
    self._ale.setFloat('repeat_action_probability', 0.0)
    self._ale.setInt('random_seed', seed % 2**31)
    self._ale.loadROM(str(roms.get_rom_path(game)))
    self._actions = self._ale.getLegalActionSet()
    self._task = task
    if task is not None:
      task.check(self._ale)
    self._action_repeat = action_repeat
    self._max_noops = max_noops
    self._max_frames = max_frames
    # The last two frames of a step, uint8 [2, rows, columns].
    self._screens = np.zeros((2, *self._ale.getScreenDims()), np.uint8)
    self._stack_size = stack
    self._stack: Deque[np.ndarray] = collections.deque(maxlen=stack)
    self._frames = 0
    self._reset_next = True

  @property
  def frames(self) -> int:
    """Frames since the episode's first observation."""
    return self._frames

  @property
  def num_stacked(self) -> int:
    """Frames in an observation; the replay keeps each of them only once."""
    return self._stack_size

  def reset(self) -> dm_env.TimeStep:
    self._ale.reset_game()
    if self._max_noops:
      for _ in range(self._rng.integers(1, self._max_noops + 1)):
        self._ale.act(ale_py.Action.NOOP)
        if self._ale.game_over():
          self._ale.reset_game()
    self._frames = 0
    self._reset_next = False
    blank = np.zeros((_SIDE, _SIDE), np.uint8)
    self._stack.extend(blank for _ in range(self._stack_size))
    self._ale.getScreenGrayscale(self._screens[0])
    return dm_env.restart(self._observe(self._screens[0]))

  def step(self, action: int) -> dm_env.TimeStep:
    if self._reset_next:
      return self.reset()
    if not 0 <= action < len(self._actions):
      raise ValueError(
        f'action {action} is out of range: this game has '
        f'{len(self._actions)} actions, from 0.'
      )
    reward = 0.0
    seen = 0  # Frames of this step whose screen has been read.
    for repeat in range(self._action_repeat):
      reward += self._act(self._actions[action])
      game_over = self._ale.game_over()
      self._reset_next = game_over or self._frames >= self._max_frames
      if self._reset_next or repeat >= self._action_repeat - 2:
        self._ale.getScreenGrayscale(self._screens[seen])
        seen += 1
      if self._reset_next:
        break
    screen = np.maximum(self._screens[0], self._screens[seen - 1])
    return base.time_step(
      self._observe(screen),
      reward,
      terminated=game_over,
      truncated=self._reset_next,
    )

  def observation_spec(self) -> specs.BoundedArray:
    """Describes grayscale frames, uint8 [84, 84, stack], the newest last."""
    return specs.BoundedArray(
      (_SIDE, _SIDE, self._stack_size),
      np.uint8,
      minimum=0,
      maximum=255,
      name='observation',
    )

  def action_spec(self) -> specs.DiscreteArray:
    return specs.DiscreteArray(
      len(self._actions), dtype=np.int32, name='action'
    )

  def screen_rgb(self) -> np.ndarray:
    """Returns the screen as it is now, uint8 [rows, columns, 3], for videos."""
    return self._ale.getScreenRGB()

  def state(self) -> saving.State:
    """Returns the console, the generator, the stacked frames and the counts."""
    return {
      'console': self._ale.cloneState(include_rng=True).serialize(),
      'generator': self._rng.bit_generator.state,
      'stack': list(self._stack),
      'frames': self._frames,
      'reset_next': self._reset_next,
    }

  def restore(self, state: saving.State) -> None:
    """Goes on from a state."""
    self._ale.restoreState(ale_py.ALEState(state['console']))
    self._rng.bit_generator.state = state['generator']
    self._stack.extend(state['stack'])
    self._frames = state['frames']
    self._reset_next = state['reset_next']

  def ram(self) -> np.ndarray:
    """Returns the console's memory, uint8 [128]; agents never see it."""
    return self._ale.getRAM()

  def _act(self, action: ale_py.Action) -> float:
    """Plays one frame and returns its reward."""
    self._frames += 1
    if self._task is None:
      return self._ale.act(action)
    ram_before = self._ale.getRAM()
    reward = self._ale.act(action)
    ram_after = self._ale.getRAM()
    return self._task.reward(
      tasks.Frame(self._frames, reward, ram_before, ram_after)
    )

  def _observe(self, screen: np.ndarray) -> np.ndarray:
    """Stacks a screen, uint8 [rows, columns], and returns the whole stack."""
    self._stack.append(
      cv2.resize(screen, (_SIDE, _SIDE), interpolation=cv2.INTER_AREA)
    )
    return cv2.merge(self._stack).reshape(_SIDE, _SIDE, -1)
