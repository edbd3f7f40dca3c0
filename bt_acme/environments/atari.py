"""Atari 2600 games as `dm_env`, with the standard preprocessing.

The settings are those of Agent57: all 18 actions, each repeated for 4 frames;
grayscale frames of 84x84 pixels, the maximum of the last two, 4 of them
stacked; 1 to 30 no-op frames at the start; no sticky actions; raw rewards; and
episodes that continue when a life is lost. Sources: Kapturowski et al. 2019
(R2D2); Badia et al. 2020 (NGU), Table 8.

The only difference is downscaling: Agent57 interpolates bilinearly, and this
module averages areas. ale-py's `AtariVectorEnv` also averages areas, so both
return the same observations, except for the last observation of an episode, in
which the maximum of `AtariVectorEnv` still includes frames of the previous
step.

The name of a game or task may end with `:pixels=42`, for frames of 42x42 pixels
instead, which networks process faster.
"""

import collections
import functools

import ale_py
import cv2
import dm_env
import numpy as np
from ale_py import roms
from dm_env import specs

from bt_acme.config import checks
from bt_acme.environments import (
  atari_rewards,
  atari_vector,
  base,
  naming,
  saving,
)

_GAMES = """
  alien amidar assault asterix asteroids atlantis bank_heist battle_zone
  beam_rider berzerk bowling boxing breakout centipede chopper_command
  crazy_climber defender demon_attack double_dunk enduro fishing_derby freeway
  frostbite gopher gravitar hero ice_hockey jamesbond kangaroo krull
  kung_fu_master montezuma_revenge ms_pacman name_this_game phoenix pitfall
  pong private_eye qbert riverraid road_runner robotank seaquest skiing
  solaris space_invaders star_gunner surround tennis time_pilot tutankham
  up_n_down venture video_pinball wizard_of_wor yars_revenge zaxxon
"""
ATARI_57 = tuple(_GAMES.split())
# Below 36 pixels, torso=auto would select the torso for MiniGrid's indices.
_SIDES = range(36, 161)


def _side(text: str) -> int | None:
  """Parses the height and width of an observation; None for other texts."""
  side = naming.number(text)
  return side if side in _SIDES else None


_LIMITS = f' ({_SIDES[0]} to {_SIDES[-1]})'
_MODIFIERS = (naming.Modifier('pixels=42', _side, limits=_LIMITS),)


def names() -> tuple[str, ...]:
  """Returns the names of the 57 games and of the tasks with other rewards."""
  return (*ATARI_57, *atari_rewards.TASKS)


def find(name: str) -> naming.Maker | None:
  """Returns the maker of a game or task; None for an unknown name.

  Raises:
    ValueError: if a modifier of the name is invalid.
  """
  base = name.partition(':pixels')[0]
  if base not in names():
    return None
  options = naming.parse(name, _MODIFIERS, base=base)
  if (task := atari_rewards.TASKS.get(base)) is not None:
    make = functools.partial(Atari, task.game, task=task, **options)
    return naming.Maker(make, can_stack=True)
  make_vector = functools.partial(atari_vector.AtariVector, base, **options)
  return naming.Maker(
    functools.partial(Atari, base, **options),
    make_vector if base != 'skiing' else None,
    can_stack=True,
  )


class Atari(base.Environment):
  """One Atari game.

  The discount is 0 at game over. It stays 1 at `max_frames`, so the learner
  bootstraps from the last observation. Rewards of no-op frames are ignored.
  """

  def __init__(
    self,
    game: str,
    *,
    seed: int,
    task: atari_rewards.Task | None = None,
    pixels: int = 84,
    stack: int = 4,
    action_repeat: int = 4,
    max_noops: int = 30,
    max_frames: int = 108_000,
  ) -> None:
    """Initializes the emulator.

    Args:
      game: one of `ATARI_57`.
      seed: the seed of the number of no-ops and of the console.
      task: rewards that replace those of the game; None for the game's own.
      pixels: the height and width of an observation.
      stack: the number of frames in an observation, the newest last. Frames
        before the start of the episode are zeros.
      action_repeat: the number of frames for which an action is repeated.
      max_noops: the maximum number of no-op frames at the start of an episode;
        the minimum is 1. 0 disables no-op frames.
      max_frames: the number of frames after which an episode is truncated, not
        counting its no-op frames.

    Raises:
      ValueError: if a number is too small, or if the game's memory layout does
        not match `task`.
    """
    for name, value, minimum in (
      *(('pixels', pixels, 1), ('stack', stack, 1)),
      *(('action_repeat', action_repeat, 1), ('max_noops', max_noops, 0)),
      ('max_frames', max_frames, 1),
    ):
      checks.check_value(name, value, checks.setting(1, minimum=minimum))
    self._rng = np.random.default_rng(seed)
    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
    self._ale = ale_py.ALEInterface()
    self._ale.setFloat('repeat_action_probability', 0.0)
    self._ale.setInt('random_seed', seed % 2**31)
    self._ale.loadROM(str(roms.get_rom_path(game)))
    # In Skiing, ale-py takes no action instead of one with the fire button, and
    # `getLegalActionSet` lacks these.
    self._actions = [ale_py.Action(i) for i in range(18)]
    self._task = task
    self._side = pixels
    if task is not None:
      task.check(self._ale)
    self._action_repeat = action_repeat
    self._max_noops = max_noops
    self._max_frames = max_frames
    # The last two frames of a step, uint8 [2, rows, columns].
    self._screens = np.zeros((2, *self._ale.getScreenDims()), np.uint8)
    self._stack_size = stack
    self._stack: collections.deque[np.ndarray] = collections.deque(maxlen=stack)
    self._frames = 0
    self._reset_next = True

  @property
  def num_stacked(self) -> int:
    """Number of frames in an observation; the replay stores each frame once."""
    return self._stack_size

  def reset(self) -> dm_env.TimeStep:
    """Starts an episode."""
    self._ale.reset_game()
    if self._max_noops:
      for _ in range(self._rng.integers(1, self._max_noops + 1)):
        self._ale.act(ale_py.Action.NOOP)
        if self._ale.game_over():
          self._ale.reset_game()
    self._frames = 0
    self._reset_next = False
    blank = np.zeros((self._side, self._side), np.uint8)
    self._stack.extend(blank for _ in range(self._stack_size))
    self._ale.getScreenGrayscale(self._screens[0])
    return dm_env.restart(self._observe(self._screens[0]))

  def step(self, action: int) -> dm_env.TimeStep:
    """Takes an action; the step after the end of an episode starts the next.

    Raises:
      ValueError: if the action is out of range.
    """
    if self._reset_next:
      return self.reset()
    if not 0 <= action < len(self._actions):
      raise ValueError(
        f'action={action} is out of range. Choose an action from 0 to '
        f'{len(self._actions) - 1}.'
      )
    reward = 0.0
    seen = 0  # Number of frames whose screen has been read in this step.
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
    """Describes observations: uint8 [pixels, pixels, stack], newest last."""
    shape = (self._side, self._side, self._stack_size)
    return specs.BoundedArray(shape, np.uint8, 0, 255)

  def action_spec(self) -> specs.DiscreteArray:
    """Describes actions: the 18 actions of the console."""
    return specs.DiscreteArray(len(self._actions))

  def render_rgb(self) -> np.ndarray:
    """Returns the current screen for videos: uint8 RGB [rows, columns, 3]."""
    return self._ale.getScreenRGB()

  def state(self) -> saving.State:
    """Returns the states of console and generator, the frames and counters."""
    return {
      'console': self._ale.cloneState(include_rng=True).serialize(),
      'generator': self._rng.bit_generator.state,
      'stack': list(self._stack),
      'frames': self._frames,
      'reset_next': self._reset_next,
    }

  def restore(self, state: saving.State) -> None:
    """Restores a state returned by `state()`."""
    self._ale.restoreState(ale_py.ALEState(state['console']))
    self._rng.bit_generator.state = state['generator']
    self._stack.extend(state['stack'])
    self._frames = state['frames']
    self._reset_next = state['reset_next']

  def ram(self) -> np.ndarray:
    """Returns the console's memory, uint8 [128]; agents do not observe it."""
    return self._ale.getRAM()

  def _act(self, action: ale_py.Action) -> float:
    """Emulates one frame and returns its reward."""
    self._frames += 1
    if self._task is None:
      return self._ale.act(action)
    ram_before = self._ale.getRAM()
    reward = self._ale.act(action)
    return self._task.reward(reward, ram_before, self._ale.getRAM())

  def _observe(self, screen: np.ndarray) -> np.ndarray:
    """Adds a screen, uint8 [rows, columns], and returns the stacked frames."""
    size = (self._side, self._side)
    self._stack.append(cv2.resize(screen, size, interpolation=cv2.INTER_AREA))
    return cv2.merge(self._stack).reshape(*size, -1)
