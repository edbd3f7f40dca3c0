"""Tests the attribution of rewards to events in games with modified rewards."""

import collections
import itertools

import ale_py
import numpy as np
import pytest
from ale_py import roms

from bt_acme import environments
from bt_acme.environments import atari_tasks

_GAMES = (atari_tasks.MS_PACMAN, atari_tasks.HERO)


def _emulator(name, seed=0):
  ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
  ale = ale_py.ALEInterface()
  ale.setFloat('repeat_action_probability', 0.0)
  ale.setInt('random_seed', seed)
  ale.loadROM(str(roms.get_rom_path(name)))
  return ale


def _prolong_fright(ale, rng):
  """Ms Pacman: prolongs the effect of a pill."""
  frightened = atari_tasks.MS_PACMAN.memory['frightened']
  value = int(ale.getRAM()[frightened])
  if value & 63 and rng.random() < 0.02:
    ale.setRAM(frightened, value | 62)


def _move_ghost(ale, rng):
  """Ms Pacman: moves a frightened ghost onto the player."""
  ram = ale.getRAM()
  ghost = int(rng.integers(4))
  if ram[1 + ghost] & 0x80 and rng.random() < 0.05:
    for ghosts, player in ((6, 10), (12, 16)):  # Columns, then rows.
      ale.setRAM(ghosts + ghost, int(ram[player]))


def _change_fruit(ale, rng):
  """Ms Pacman: changes the current fruit to a random kind."""
  ram = ale.getRAM()
  if ram[atari_tasks.MS_PACMAN.memory['fruit_x']] and rng.random() < 0.1:
    fruit = atari_tasks.MS_PACMAN.memory['fruit_lives']
    ale.setRAM(fruit, int(rng.integers(7)) << 4 | int(ram[fruit]) & 15)


def _random_actions(ale, rng):
  """Yields random actions, each repeated for a random time."""
  actions = ale.getLegalActionSet()
  while True:
    action = actions[rng.integers(len(actions))]
    yield from itertools.repeat(action, rng.integers(1, 40))


def _play(ale, actions, *, before_frame=lambda: None):
  """Plays consecutive episodes and returns the frames with a reward."""
  rewarded = []
  for number, action in enumerate(actions):
    before_frame()
    ram_before = ale.getRAM()
    reward = ale.act(action)
    if reward:
      rewarded.append(
        atari_tasks.Frame(number, reward, ram_before, ale.getRAM())
      )
    if ale.game_over():
      ale.reset_game()
  return rewarded


def _random_play(game, frames, *, seed, interventions=()):
  """Plays random actions from a reset, with interventions before each frame."""
  ale = _emulator(game.name, seed)
  rng = np.random.default_rng(seed)
  ale.reset_game()

  def intervene():
    for intervention in interventions:
      intervention(ale, rng)

  actions = itertools.islice(_random_actions(ale, rng), frames)
  return _play(ale, actions, before_frame=intervene)


def _count(game, rewarded):
  return collections.Counter(
    event for frame in rewarded for event in atari_tasks.events(game, frame)
  )


@pytest.mark.parametrize('game', _GAMES, ids=lambda game: game.name)
def test_all_rewards_of_random_play_are_attributed(game):
  rewarded = _random_play(game, 12_000, seed=0)
  counts = _count(game, rewarded)
  expected = {
    'ms_pacman': {'dot', 'pill', 'ghost_1'},
    'hero': {'wall', 'rescue'},
  }
  assert expected[game.name] <= set(counts), counts


@pytest.mark.slow
@pytest.mark.parametrize('game', _GAMES, ids=lambda game: game.name)
def test_all_rewards_of_long_random_play_are_attributed(game):
  interventions = (
    (_prolong_fright, _move_ghost, _change_fruit)
    if game is atari_tasks.MS_PACMAN
    else ()
  )
  counts = collections.Counter()
  for seed in range(12):
    for chosen in {(), interventions}:
      rewarded = _random_play(game, 20_000, seed=seed, interventions=chosen)
      counts += _count(game, rewarded)
  expected = {
    'ms_pacman': {
      'dot',
      'pill',
      *atari_tasks.TASKS['ms_pacman:ghosts_easy'].rewards,
    },
    'hero': {'rescue', 'wall', 'creature', 'bonus'},
  }
  print(game.name, dict(counts))
  assert expected[game.name] <= set(counts), counts


def test_forced_ghosts_and_fruits_are_attributed():
  rewarded = _random_play(
    atari_tasks.MS_PACMAN,
    6_000,
    seed=4,
    interventions=(_prolong_fright, _move_ghost, _change_fruit),
  )
  counts = _count(atari_tasks.MS_PACMAN, rewarded)
  assert {'ghost_1', 'ghost_2', 'ghost_3', 'ghost_4'} <= set(counts), counts


def test_ms_pacmans_extra_life_is_distinguished_from_the_dot():
  ale = _emulator('ms_pacman')
  ale.reset_game()
  ale.setRAM(atari_tasks.MS_PACMAN.memory['score'], 0x90)
  ale.setRAM(atari_tasks.MS_PACMAN.memory['score'] + 1, 0x99)
  ale.act(ale_py.Action.NOOP)  # Its reward is the score just set.
  rewarded = _play(ale, [ale_py.Action.LEFT] * 300)
  first, second, *_ = [
    atari_tasks.events(atari_tasks.MS_PACMAN, f) for f in rewarded
  ]
  assert set(first) == {'dot', 'extra_life'} and second == ('dot',)


def test_attribution_matches_the_counter_of_dots():
  eaten = atari_tasks.MS_PACMAN.memory['eaten']
  rewarded = _random_play(atari_tasks.MS_PACMAN, 5_000, seed=2)
  assert len(rewarded) > 20
  for frame in rewarded:
    meals = {'dot', 'pill'} & set(
      atari_tasks.events(atari_tasks.MS_PACMAN, frame)
    )
    counted = int(frame.ram_after[eaten]) - int(frame.ram_before[eaten])
    assert counted == len(meals)


# Fruits on the screen.
_STRAWBERRY = {'fruit_x': 9, 'fruit_lives': 0x12}
_ORANGE = {'fruit_x': 9, 'fruit_lives': 0x22}


def _bonus(**signals):
  return {'bonus': 255, **signals}


def _frame(game, reward, before, after):
  """Returns a frame whose memory is zero except for the given signals."""
  rams = []
  for signals in (before, after):
    ram = np.zeros(128, np.uint8)
    for signal, value in signals.items():
      ram[game.memory[signal]] = value
    rams.append(ram)
  return atari_tasks.Frame(1, reward, *rams)


@pytest.mark.parametrize(
  'reward, before, after, expected',
  [
    (10, {}, {}, {'dot'}),
    (50, {}, {}, {'pill'}),
    (200, {'frightened': 30}, {}, {'ghost_1'}),
    (410, {'frightened': 64 | 30}, {}, {'dot', 'ghost_2'}),
    (800, {'frightened': 128 | 30}, {}, {'ghost_3'}),
    (1600, {'frightened': 192 | 1}, {}, {'ghost_4'}),
    (250, {'frightened': 64 | 30}, {}, {'pill', 'ghost_1'}),
    (100, {'fruit_x': 9, 'fruit_lives': 0x02}, {}, {'cherry'}),
    (200, _STRAWBERRY, {}, {'strawberry'}),
    (510, _ORANGE, {}, {'dot', 'orange'}),
    (700, {'fruit_x': 9, 'fruit_lives': 0x32}, {}, {'pretzel'}),
    (700, {**_ORANGE, 'frightened': 5}, {}, {'orange', 'ghost_1'}),
    (1000, {'fruit_x': 9, 'fruit_lives': 0x42}, {}, {'apple'}),
    (2000, {'fruit_x': 9, 'fruit_lives': 0x52}, {}, {'pear'}),
    (5000, {'fruit_x': 9, 'fruit_lives': 0x62}, {}, {'banana'}),
    (11, {'fruit_lives': 0x02}, {'fruit_lives': 0x03}, {'dot', 'extra_life'}),
  ],
)
def test_events_of_ms_pacman(reward, before, after, expected):
  frame = _frame(atari_tasks.MS_PACMAN, reward, before, after)
  assert set(atari_tasks.events(atari_tasks.MS_PACMAN, frame)) == expected


@pytest.mark.parametrize(
  'reward, before, after, expected',
  [
    (1000, {}, {'bonus': 255}, {'rescue'}),
    (1050, {}, {'bonus': 255}, {'rescue', 'creature'}),
    (1000, {'bonus': 255}, {'bonus': 255}, {'bonus'}),
    (50, _bonus(dynamite=3), _bonus(dynamite=2), {'bonus'}),
    (75, {'dynamite': 6}, {'dynamite': 5}, {'wall'}),
    (50, {'dynamite': 6}, {'dynamite': 6}, {'creature'}),
    (125, {'dynamite': 6}, {'dynamite': 5}, {'wall', 'creature'}),
  ],
)
def test_events_of_hero(reward, before, after, expected):
  frame = _frame(atari_tasks.HERO, reward, before, after)
  assert set(atari_tasks.events(atari_tasks.HERO, frame)) == expected


@pytest.mark.parametrize(
  'game, reward, before, after',
  [
    (atari_tasks.MS_PACMAN, 200, {}, {}),  # No frightened ghost, no fruit.
    (atari_tasks.MS_PACMAN, 100, {'fruit_x': 9}, {'fruit_x': 9}),  # Not eaten.
    # There is no eighth kind of fruit.
    (atari_tasks.MS_PACMAN, 100, {'fruit_x': 9, 'fruit_lives': 0x70}, {}),
    # The first ghost and a strawberry have equal rewards.
    (atari_tasks.MS_PACMAN, 200, {**_STRAWBERRY, 'frightened': 9}, {}),
    (atari_tasks.MS_PACMAN, 11, {'fruit_lives': 2}, {'fruit_lives': 2}),
    (atari_tasks.HERO, 75, {'dynamite': 6}, {'dynamite': 6}),
    (atari_tasks.HERO, 1000, {}, {}),
    (atari_tasks.HERO, 20, {}, {}),
  ],
)
def test_the_error_shows_a_frame_that_cannot_be_attributed(
  game, reward, before, after
):
  frame = _frame(game, reward, before, after)._replace(number=4711)
  with pytest.raises(RuntimeError) as error:
    atari_tasks.events(game, frame)
  message = str(error.value)
  assert game.name in message
  assert f'reward {reward} on frame 4711' in message
  for signal, index in game.memory.items():
    values = f'{frame.ram_before[index]} -> {frame.ram_after[index]}'
    assert f'{signal} [{index}] {values}' in message


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
  game = atari_tasks.TASKS[name].game._replace(
    candidates=lambda frame: [events]
  )
  task = atari_tasks.TASKS[name]._replace(game=game)
  frame = _frame(task.game, sum(events.values()), {}, {})
  assert task.reward(frame) == expected


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


@pytest.mark.parametrize('game', _GAMES, ids=lambda game: game.name)
@pytest.mark.parametrize('seed', [0, 7])
def test_memory_layout(game, seed):
  atari_tasks.GameTask(game, {}).check(_emulator(game.name, seed))


@pytest.mark.parametrize('game', _GAMES, ids=lambda game: game.name)
@pytest.mark.parametrize('rom', ['pong', 'pacman', 'kangaroo'])
def test_an_unexpected_memory_layout_is_refused(game, rom):
  with pytest.raises(ValueError, match=f'The ROM of {game.name!r}'):
    atari_tasks.GameTask(game, {}).check(_emulator(rom))
