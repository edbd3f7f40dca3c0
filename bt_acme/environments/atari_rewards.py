"""Atari games with modified rewards: Ms Pacman's ghosts, Hero's miners.

The game's reward on each frame is attributed to the events that caused it, by
its amount and by the console's memory. The task then defines the reward of each
event. Source: Campos et al. 2021, App. C.

The memory address of each signal was measured frame by frame on ale-py's ROMs,
starting from AtariARI (Anand et al. 2019). A wall destroyed by the laser earns
no reward, as in the game. The paper does not specify whether energy pills
count as pac-dots; here they do only in the task whose name contains `pills`.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import ale_py
import numpy as np

Points = dict[str, int]  # The game's reward for each event on one frame.
Signals = dict[str, int]  # The values in the console's memory, by name.


class Task(NamedTuple):
  """A game with rewards for some of its events, and the rules to find events.

  Attributes:
    game: the name of the game.
    memory: the memory address of each signal that distinguishes events.
    candidates: maps the reward of a frame, and the signals before and after it,
      to all sets of events consistent with the signals.
    is_as_expected: takes an emulator that has just been reset, plays some
      frames, and returns whether the signals are at the addresses in `memory`.
    rewards: the reward of each event; other events have reward 0.
  """

  game: str
  memory: Mapping[str, int]
  candidates: Callable[[int, Signals, Signals], list[Points]]
  is_as_expected: Callable[[ale_py.ALEInterface], bool]
  rewards: Mapping[str, float] = {}

  def check(self, ale: ale_py.ALEInterface) -> None:
    """Checks the memory layout of the game.

    Args:
      ale: an emulator with the game loaded. Reset the emulator afterwards.

    Raises:
      ValueError: if the layout is not as expected.
    """
    ale.reset_game()
    if not self.is_as_expected(ale):
      raise ValueError(
        f'The ROM of {self.game!r} has an unexpected memory layout, so '
        'rewards cannot be modified. Install the pinned version of ale-py.'
      )

  def reward(
    self, reward: int, ram_before: np.ndarray, ram_after: np.ndarray
  ) -> float:
    """Computes the task's reward for one frame; see `events`."""
    if not reward:
      return 0.0
    found = self.events(reward, ram_before, ram_after)
    return sum(self.rewards.get(event, 0.0) for event in found)

  def events(
    self, reward: int, ram_before: np.ndarray, ram_after: np.ndarray
  ) -> tuple[str, ...]:
    """Finds the events that caused the reward of one frame.

    Args:
      reward: the game's reward, a difference of scores.
      ram_before: the console's memory before the frame, uint8 [128].
      ram_after: the console's memory after the frame, uint8 [128].

    Raises:
      RuntimeError: unless exactly one set of events explains the reward.
    """
    before = _signals(self.memory, ram_before)
    after = _signals(self.memory, ram_after)
    fitting = [
      points
      for points in self.candidates(reward, before, after)
      if sum(points.values()) == reward
    ]
    if len(fitting) != 1:
      raise RuntimeError(
        f'{self.game}: {len(fitting)} explanations for the reward {reward}; '
        f'memory before the frame: {before}, after: {after}.'
      )
    return tuple(fitting[0])


def _signals(memory: Mapping[str, int], ram: np.ndarray) -> Signals:
  """Reads the value of each signal from memory, uint8 [128]."""
  return {signal: int(ram[i]) for signal, i in memory.items()}


_MS_PACMAN_MEMORY = {
  'fruit_x': 11,  # 0 if there is no fruit.
  'frightened': 116,  # Low 6 bits: time left; high 2 bits: ghosts eaten.
  'eaten': 119,  # Number of dots and pills eaten.
  'score': 120,  # The last two digits.
  'fruit_lives': 123,  # High nibble: kind of fruit; low nibble: lives left.
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


def _ms_pacman_candidates(
  reward: int, before: Signals, after: Signals
) -> list[Points]:
  """Combines at most one dot or pill, one ghost and one fruit.

  The extra life at 10,000 points also adds one point to the score.
  """
  fruits: list[Points] = [{}]
  if before['fruit_x'] and not after['fruit_x']:
    kind = before['fruit_lives'] >> 4
    fruits += [{name: _FRUITS[name]} for name in list(_FRUITS)[kind : kind + 1]]
  ghosts: list[Points] = [{}]
  if before['frightened'] & 63:
    name = list(_GHOSTS)[before['frightened'] >> 6]
    ghosts.append({name: _GHOSTS[name]})
    if fruits[1:]:  # The first ghost and a strawberry have equal rewards.
      eaten = before['frightened'] >> 6 != after['frightened'] >> 6
      ghosts = ghosts[1:] if eaten else ghosts[:1]
  gains_life = after['fruit_lives'] & 15 == (before['fruit_lives'] & 15) + 1
  life: Points = {'extra_life': 1} if gains_life else {}
  # A pill resets the count of eaten ghosts.
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
  """Eats the first dot to the left and checks that only its signals change."""
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


MS_PACMAN = Task(
  'ms_pacman',
  _MS_PACMAN_MEMORY,
  _ms_pacman_candidates,
  _ms_pacman_is_as_expected,
)


_HERO_MEMORY = {
  'power': 43,
  'dynamite': 50,  # Number of sticks left.
  'lives': 51,
  'score': 57,  # The last two digits.
  'bonus': 114,  # 255 from the rescue until the bonus is counted, else 0.
  'level': 117,
}


def _hero_candidates(
  reward: int, before: Signals, after: Signals
) -> list[Points]:
  """Combines a rescue, a dynamited wall and a creature, or detects a bonus."""
  if before['bonus'] == 255:
    return [{'bonus': reward}]
  # The amount alone is ambiguous, because bonuses, too, can be 1000 or 50.
  rescue = {'rescue': 1000} if after['bonus'] == 255 else {}
  walls: list[Points] = [{}]
  if after['dynamite'] == before['dynamite'] - 1:
    walls.append({'wall': 75})
  return [
    {**rescue, **wall, **creature}
    for wall in walls
    for creature in ({}, {'creature': 50})
  ]


def _hero_is_as_expected(ale: ale_py.ALEInterface) -> bool:
  """Lays one stick of dynamite and checks that all signals are as expected."""
  for number in range(250):
    ale.act(ale_py.Action.DOWN if number >= 150 else ale_py.Action.NOOP)
  zeros = dict.fromkeys(('score', 'bonus', 'level'), 0)
  expected = {'power': 80, 'dynamite': 5, 'lives': ale.lives(), **zeros}
  return _signals(_HERO_MEMORY, ale.getRAM()) == expected


HERO = Task('hero', _HERO_MEMORY, _hero_candidates, _hero_is_as_expected)

# The tasks of Campos et al. 2021, App. C, by environment name.
TASKS = {
  'ms_pacman:ghosts_easy': MS_PACMAN._replace(rewards=_GHOSTS),
  'ms_pacman:ghosts_hard': MS_PACMAN._replace(rewards={**_GHOSTS, 'dot': -10}),
  'ms_pacman:ghosts_hard:pills': MS_PACMAN._replace(
    rewards={**_GHOSTS, 'dot': -10, 'pill': -10}
  ),
  'hero:miners_easy': HERO._replace(rewards={'rescue': 1000}),
  'hero:miners_hard': HERO._replace(rewards={'rescue': 1000, 'wall': -300}),
}
