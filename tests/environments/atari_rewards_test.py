"""Tests the attribution of rewards to events in games with modified rewards."""

import collections
import itertools

import ale_py
import numpy as np
import pytest

from benchmarks import limits
from bt_acme import environments
from bt_acme.environments import atari_rewards

_PACMAN, _HERO = atari_rewards.MS_PACMAN, atari_rewards.HERO


def _emulator(name, seed=0):
  ale = limits.emulator(name, seed)
  ale.reset_game()
  return ale


def _force_ghosts_and_fruits(ale, rng):
  """Prolongs the effect of pills, moves ghosts, and changes the fruit."""
  ram = ale.getRAM()
  frightened = _PACMAN.memory['frightened']
  if ram[frightened] & 63 and rng.random() < 0.02:
    ale.setRAM(frightened, int(ram[frightened]) | 62)
  ghost = int(rng.integers(4))
  if ram[1 + ghost] & 0x80 and rng.random() < 0.05:
    for ghosts, player in ((6, 10), (12, 16)):  # Columns, then rows.
      ale.setRAM(ghosts + ghost, int(ram[player]))
  if ram[_PACMAN.memory['fruit_x']] and rng.random() < 0.1:
    fruit = _PACMAN.memory['fruit_lives']
    ale.setRAM(fruit, int(rng.integers(7)) << 4 | int(ram[fruit]) & 15)


def _random_actions(ale, rng):
  """Yields random actions, each repeated for a random time."""
  actions = ale.getLegalActionSet()
  while True:
    action = actions[rng.integers(len(actions))]
    yield from itertools.repeat(action, rng.integers(1, 40))


def _play(task, ale, actions, forcing_rng=None):
  """Plays consecutive episodes; yields the events of each reward."""
  for action in actions:
    if forcing_rng:
      _force_ghosts_and_fruits(ale, forcing_rng)
    ram_before = ale.getRAM()
    reward = ale.act(action)
    if reward:
      yield task.events(reward, ram_before, ale.getRAM())
    if ale.game_over():
      ale.reset_game()


@pytest.mark.parametrize(
  'task, seeds, frames, is_forced, expected',
  [
    (_PACMAN, [1, 2], 3_000, False, {'dot', 'pill', 'ghost_1'}),
    (_PACMAN, [4], 3_000, True, set(atari_rewards._GHOSTS)),
    (_HERO, [2, 3], 2_000, False, {'wall', 'rescue'}),
    *(
      pytest.param(*parts, marks=pytest.mark.slow)
      for parts in (
        (_PACMAN, range(12), 20_000, False, {'dot', 'pill'}),
        (_PACMAN, range(12), 20_000, True, {'dot', 'pill', 'ghost_4'}),
        (_HERO, range(12), 20_000, False, {'creature', 'bonus', 'rescue'}),
      )
    ),
  ],
)
def test_all_rewards_of_random_play_are_attributed(
  task, seeds, frames, is_forced, expected
):
  counts = collections.Counter()
  for seed in seeds:
    ale, rng = _emulator(task.game, seed), np.random.default_rng(seed)
    actions = itertools.islice(_random_actions(ale, rng), frames)
    for events in _play(task, ale, actions, rng if is_forced else None):
      counts.update(events)
  assert expected <= set(counts), counts


def test_ms_pacmans_extra_life_is_distinguished_from_the_dot():
  ale = _emulator('ms_pacman')
  ale.setRAM(_PACMAN.memory['score'], 0x90)
  ale.setRAM(_PACMAN.memory['score'] + 1, 0x99)
  ale.act(ale_py.Action.NOOP)  # Its reward is the score just set.
  first, second, *_ = _play(_PACMAN, ale, [ale_py.Action.LEFT] * 300)
  assert set(first) == {'dot', 'extra_life'} and second == ('dot',)


def _ram(task, signals):
  """Returns a memory that is zero except for the given signals."""
  ram = np.zeros(128, np.uint8)
  for signal, value in signals.items():
    ram[task.memory[signal]] = value
  return ram


def _fruit(kind, **signals):
  return {'fruit_x': 9, 'fruit_lives': kind << 4 | 2, **signals}


@pytest.mark.parametrize(
  'task, reward, before, after, expected',
  [
    (_PACMAN, 10, {}, {}, {'dot'}),
    (_PACMAN, 50, {}, {}, {'pill'}),
    (_PACMAN, 200, {'frightened': 30}, {}, {'ghost_1'}),
    (_PACMAN, 410, {'frightened': 64 | 30}, {}, {'dot', 'ghost_2'}),
    (_PACMAN, 800, {'frightened': 128 | 30}, {}, {'ghost_3'}),
    (_PACMAN, 1600, {'frightened': 192 | 1}, {}, {'ghost_4'}),
    (_PACMAN, 250, {'frightened': 64 | 30}, {}, {'pill', 'ghost_1'}),
    (_PACMAN, 100, _fruit(0), {}, {'cherry'}),
    (_PACMAN, 200, _fruit(1), {}, {'strawberry'}),
    (_PACMAN, 510, _fruit(2), {}, {'dot', 'orange'}),
    (_PACMAN, 700, _fruit(3), {}, {'pretzel'}),
    (
      *(_PACMAN, 700, _fruit(2, frightened=5), {'frightened': 64 | 4}),
      {'orange', 'ghost_1'},
    ),
    # The first ghost and a strawberry have equal rewards.
    (_PACMAN, 200, _fruit(1, frightened=9), {'frightened': 8}, {'strawberry'}),
    (_PACMAN, 200, _fruit(1, frightened=9), {'frightened': 72}, {'ghost_1'}),
    (_PACMAN, 1000, _fruit(4), {}, {'apple'}),
    (_PACMAN, 2000, _fruit(5), {}, {'pear'}),
    (_PACMAN, 5000, _fruit(6), {}, {'banana'}),
    (_HERO, 1000, {}, {'bonus': 255}, {'rescue'}),
    (_HERO, 1050, {}, {'bonus': 255}, {'rescue', 'creature'}),
    (_HERO, 1000, {'bonus': 255}, {'bonus': 255}, {'bonus'}),
    (_HERO, 50, {'bonus': 255, 'dynamite': 3}, {'dynamite': 2}, {'bonus'}),
    (_HERO, 75, {'dynamite': 6}, {'dynamite': 5}, {'wall'}),
    (_HERO, 50, {'dynamite': 6}, {'dynamite': 6}, {'creature'}),
    (_HERO, 125, {'dynamite': 6}, {'dynamite': 5}, {'wall', 'creature'}),
    (_PACMAN, 200, {}, {}, None),  # No frightened ghost, no fruit.
    (_PACMAN, 100, {'fruit_x': 9}, {'fruit_x': 9}, None),  # Not eaten.
    (_PACMAN, 100, _fruit(7), {}, None),  # There is no eighth kind of fruit.
    (_PACMAN, 11, {'fruit_lives': 2}, {'fruit_lives': 2}, None),
    (_HERO, 75, {'dynamite': 6}, {'dynamite': 6}, None),
    (_HERO, 1000, {}, {}, None),
    (_HERO, 20, {}, {}, None),
  ],
)
def test_events(task, reward, before, after, expected):
  rams = _ram(task, before), _ram(task, after)
  if expected is None:
    with pytest.raises(RuntimeError, match=f'reward {reward}; memory before'):
      task.events(reward, *rams)
  else:
    assert set(task.events(reward, *rams)) == expected


@pytest.mark.parametrize(
  'name, events, expected',
  [
    ('ms_pacman:ghosts_easy', {'ghost_1': 200, 'dot': 10}, 200),
    ('ms_pacman:ghosts_hard', {'ghost_1': 200, 'dot': 10}, 190),
    ('ms_pacman:ghosts_hard', {'pill': 50}, 0),
    ('ms_pacman:ghosts_hard:pills', {'pill': 50}, -10),
    ('ms_pacman:ghosts_hard:pills', {'ghost_2': 400, 'dot': 10}, 390),
    ('hero:miners_easy', {'wall': 75}, 0),
    ('hero:miners_hard', {'wall': 75, 'creature': 50}, -300),
    ('hero:miners_hard', {'rescue': 1000}, 1000),
    ('hero:miners_hard', {'bonus': 1000}, 0),
  ],
)
def test_rewards_of_tasks(name, events, expected):
  task = atari_rewards.TASKS[name]._replace(candidates=lambda *_: [events])
  ram = _ram(task, {})
  assert task.reward(sum(events.values()), ram, ram) == expected


def test_rewards_are_computed_for_each_frame_of_a_repeated_action():
  games = [
    environments.make(f'ms_pacman{task}', seed=5)
    for task in ('', ':ghosts_easy', ':ghosts_hard')
  ]
  steps = [game.reset() for game in games]
  several = 0
  for _ in range(120):
    steps = [game.step(4) for game in games]  # Left.
    reward, easy_reward, hard_reward = (float(step.reward) for step in steps)
    assert reward in (0, 10, 20)
    assert (easy_reward, hard_reward) == (0, -reward)
    several += reward > 0
    for step in steps[1:]:
      np.testing.assert_array_equal(step.observation, steps[0].observation)
  assert several > 3


@pytest.mark.parametrize('task', [_PACMAN, _HERO], ids=lambda task: task.game)
def test_an_unexpected_memory_layout_is_refused(task):
  for seed in (0, 7):
    task.check(_emulator(task.game, seed))
  for rom in ('pong', 'pacman', 'kangaroo'):
    with pytest.raises(ValueError, match=f'The ROM of {task.game!r}'):
      task.check(_emulator(rom))
