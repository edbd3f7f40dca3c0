"""Atari games with another reward: Ms Pacman's ghosts, Hero's miners.

Each reward that a game pays on one frame is attributed to the events that
caused it, by its amount and by the console's memory. Each event then pays what
the task says. Source: Campos et al. 2021, App. C.

Where each signal lies in memory was measured frame by frame on ale-py's ROMs,
starting from AtariARI (Anand et al. 2019). A wall that falls to the laser pays
nothing in the game, and nothing here. The paper leaves open whether energy
pills count as pac-dots: here they do only in the task whose name says so.
"""

from typing import Callable, Dict, List, Mapping, NamedTuple, Tuple

import ale_py
import numpy as np

Points = Dict[str, int]  # Events on one frame, and what the game pays for each.


class Frame(NamedTuple):
  """One frame of the emulator.

  Attributes:
    number: the number of frames since the episode's first observation, this
      one included.
    reward: the game's own reward, a difference of scores.
    ram_before: uint8 [128], the console's memory before the frame.
    ram_after: uint8 [128], the console's memory after the frame.
  """

  number: int
  reward: int
  ram_before: np.ndarray
  ram_after: np.ndarray


class Game(NamedTuple):
  """How to tell the events of a game apart.

  Attributes:
    name: the game's name.
    memory: the memory index of each signal that tells events apart.
    candidates: maps a frame to every set of events that the signals allow.
    is_as_expected: takes an emulator that has just been reset, plays some
      frames, and tells whether the signals are where `memory` says.
  """

  name: str
  memory: Mapping[str, int]
  candidates: Callable[[Frame], List[Points]]
  is_as_expected: Callable[[ale_py.ALEInterface], bool]


class GameTask(NamedTuple):
  """A game and what its events pay; other events pay 0."""

  game: Game
  rewards: Mapping[str, float]

  def check(self, ale: ale_py.ALEInterface) -> None:
    """Raises ValueError if the game's memory is not laid out as expected.

    Args:
      ale: an emulator with the game loaded; it must be reset afterwards.
    """
    ale.reset_game()
    if not self.game.is_as_expected(ale):
      raise ValueError(
        f'the ROM of {self.game.name!r} does not lay out its memory as the '
        'modified rewards need: install the pinned version of ale-py.'
      )

  def reward(self, frame: Frame) -> float:
    """Computes what the task pays for one frame."""
    if not frame.reward:
      return 0.0
    return sum(
      self.rewards.get(event, 0.0) for event in events(self.game, frame)
    )


def events(game: Game, frame: Frame) -> Tuple[str, ...]:
  """Finds the events that caused the reward of one frame.

  Raises:
    RuntimeError: if no set of events explains the reward, or more than one.
  """
  fitting = [
    points
    for points in game.candidates(frame)
    if sum(points.values()) == frame.reward
  ]
  if len(fitting) != 1:
    memory = ', '.join(
      f'{signal} [{i}] {frame.ram_before[i]} -> {frame.ram_after[i]}'
      for signal, i in game.memory.items()
    )
    raise RuntimeError(
      f'{game.name}: {len(fitting)} explanations for the reward '
      f'{frame.reward} on frame {frame.number}; memory: {memory}.'
    )
  return tuple(fitting[0])


def _signals(memory: Mapping[str, int], ram: np.ndarray) -> Dict[str, int]:
  """Reads the value of each signal from a memory, uint8 [128]."""
  return {signal: int(ram[i]) for signal, i in memory.items()}


_MS_PACMAN_MEMORY = {
  'fruit_x': 11,  # 0 where no fruit is out.
  'frightened': 116,  # Low 6 bits: the time left; high 2: ghosts eaten in it.
  'eaten': 119,  # Number of dots and pills eaten.
  'score': 120,  # Its last two digits.
  'fruit_lives': 123,  # High nibble: which fruit; low: lives left.
}
_GHOSTS = {'ghost_1': 200, 'ghost_2': 400, 'ghost_3': 800, 'ghost_4': 1600}
_FRUITS = {
  'cherry': 100,
  'strawberry': 200,
  'orange': 500,
  'pretzel': 700,
  'apple': 1000,
  'pear': 2000,
  'banana': 5000,
}


def _ms_pacman_candidates(frame: Frame) -> List[Points]:
  """Combines a dot or a pill, a ghost and a fruit, each of which is optional.

  The extra life at 10,000 points also adds one point to the score.
  """
  before = _signals(_MS_PACMAN_MEMORY, frame.ram_before)
  after = _signals(_MS_PACMAN_MEMORY, frame.ram_after)
  fruits: List[Points] = [{}]
  if before['fruit_x'] and not after['fruit_x']:
    kind = before['fruit_lives'] >> 4
    fruits += [{name: _FRUITS[name]} for name in list(_FRUITS)[kind : kind + 1]]
  ghosts: List[Points] = [{}]
  if before['frightened'] & 63:
    name = list(_GHOSTS)[before['frightened'] >> 6]
    ghosts.append({name: _GHOSTS[name]})
  gains_life = after['fruit_lives'] & 15 == (before['fruit_lives'] & 15) + 1
  life: Points = {'extra_life': 1} if gains_life else {}
  # A pill restarts the count of eaten ghosts.
  first_ghosts = [{}, {'ghost_1': _GHOSTS['ghost_1']}]
  return [
    {**food, **ghost, **fruit, **life}
    for food, eatable in (
      ({}, ghosts),
      ({'dot': 10}, ghosts),
      ({'pill': 50}, first_ghosts),
    )
    for ghost in eatable
    for fruit in fruits
  ]


def _ms_pacman_is_as_expected(ale: ale_py.ALEInterface) -> bool:
  """Eats the first dot to the left, which must change its own signals only."""
  for _ in range(400):  # The opening tune alone takes 268 frames.
    ram_before = ale.getRAM()
    reward = ale.act(ale_py.Action.LEFT)
    if reward:
      before = _signals(_MS_PACMAN_MEMORY, ram_before)
      after = _signals(_MS_PACMAN_MEMORY, ale.getRAM())
      moved = {
        name: after[name] for name in after if after[name] != before[name]
      }
      return reward == 10 and moved == {'eaten': 1, 'score': 0x10}
  return False


MS_PACMAN = Game(
  'ms_pacman',
  _MS_PACMAN_MEMORY,
  _ms_pacman_candidates,
  _ms_pacman_is_as_expected,
)


_HERO_MEMORY = {
  'power': 43,
  'dynamite': 50,  # Sticks left.
  'lives': 51,
  'score': 57,  # Its last two digits.
  'bonus': 114,  # 255 from the rescue to the end of the count, else 0.
  'level': 117,
}


def _hero_candidates(frame: Frame) -> List[Points]:
  """Combines a rescue, a dynamited wall and a creature, or finds a bonus."""
  before = _signals(_HERO_MEMORY, frame.ram_before)
  after = _signals(_HERO_MEMORY, frame.ram_after)
  if before['bonus'] == 255:
    return [{'bonus': frame.reward}]
  # Amounts do not tell these apart, because the bonus pays 1000 and 50 as well.
  rescue = {'rescue': 1000} if after['bonus'] == 255 else {}
  walls: List[Points] = [{}]
  if after['dynamite'] == before['dynamite'] - 1:
    walls.append({'wall': 75})
  return [
    {**rescue, **wall, **creature}
    for wall in walls
    for creature in ({}, {'creature': 50})
  ]


def _hero_is_as_expected(ale: ale_py.ALEInterface) -> bool:
  """Checks the full power at the start, then lays one stick of dynamite."""
  for number in range(250):
    ale.act(ale_py.Action.DOWN if number >= 150 else ale_py.Action.NOOP)
  return _signals(_HERO_MEMORY, ale.getRAM()) == {
    'power': 80,
    'dynamite': 5,
    'lives': ale.lives(),
    'score': 0,
    'bonus': 0,
    'level': 0,
  }


HERO = Game('hero', _HERO_MEMORY, _hero_candidates, _hero_is_as_expected)

# Campos et al. 2021, App. C, by the environment's name.
TASKS = {
  'ms_pacman:ghosts_easy': GameTask(MS_PACMAN, _GHOSTS),
  'ms_pacman:ghosts_hard': GameTask(MS_PACMAN, {**_GHOSTS, 'dot': -10}),
  'ms_pacman:ghosts_hard:pills': GameTask(
    MS_PACMAN, {**_GHOSTS, 'dot': -10, 'pill': -10}
  ),
  'hero:miners_easy': GameTask(HERO, {'rescue': 1000}),
  'hero:miners_hard': GameTask(HERO, {'rescue': 1000, 'wall': -300}),
}
