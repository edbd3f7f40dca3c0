"""Tests that a restored environment continues as if never stopped."""

import itertools

import numpy as np
import pytest

from bt_acme import environments
from bt_acme.environments import (
  atari,
  atari_vector,
  gymnasium,
  minigrid,
  saving,
  vector,
)
from tests.agents import fakes
from tests.runtime import round_trips

ATARI = ('pong', 'montezuma_revenge', 'ms_pacman', 'ms_pacman:ghosts_hard')
NAMES = (
  'Chain-49:random_actions',
  'Recall-6',
  'MiniGrid-FourRooms-v0:fixed=5:goal=3',
  'MiniGrid-FourRooms-v0:no_goal:new_cell=-0.1',
  'MiniGrid-DoorKey-5x5-v0:fixed=3:door=0.3',
  'MiniGrid-Dynamic-Obstacles-8x8-v0',
)


def assert_same(one, other):
  for x, y in zip(one, other, strict=True):
    np.testing.assert_array_equal(x, y)


def play(environment, actions):
  return [environment.step(action) for action in actions]


def check_continues(make, before, after):
  """Checks that an environment of another seed continues from its state."""
  environment, other = make(0), make(1)
  environment.reset()
  play(environment, before)
  other.restore(round_trips.round_trip(saving.state_of(environment)))
  expected = play(environment, after)
  for one, two in zip(expected, play(other, after), strict=True):
    assert_same(one, two)
  environment.close()
  other.close()
  return expected


def draw_actions(environment, *counts):
  rng = np.random.default_rng(0)
  num_actions = environment.action_spec().num_values
  return [rng.integers(num_actions, size=count) for count in counts]


@pytest.mark.parametrize(
  'name, num_before, num_after',
  [
    *itertools.product(ATARI[:3], [0, 37, 411], [60]),
    (ATARI[3], 37, 60),
    *itertools.product(NAMES, [0, 37, 411], [600]),
    *((name, 60, 25) for name in minigrid.names()),
  ],
)
def test_single_environments(name, num_before, num_after):
  def make(seed):
    return environments.make(name, seed=seed)

  actions = draw_actions(make(0), num_before, num_after)
  steps = check_continues(make, *actions)
  assert num_after < 600 or any(step.last() for step in steps)


def test_no_ops_after_the_end_of_an_episode():
  def make(seed):
    return atari.Atari('breakout', seed=seed, max_frames=200)

  for num_before in (49, 50, 51):  # Around the end of an episode.
    check_continues(make, *draw_actions(make(0), num_before, 60))


@pytest.mark.parametrize('name', ['CartPole-v1', 'Pendulum-v1', 'Acrobot-v1'])
def test_gymnasium(name):
  def make(seed):
    return gymnasium.Gymnasium(name, seed=seed)

  spec = make(0).action_spec()
  rng = np.random.default_rng(0)

  def actions(count):
    if hasattr(spec, 'num_values'):
      return rng.integers(spec.num_values, size=count)
    return rng.uniform(spec.minimum, spec.maximum, (count, *spec.shape))

  check_continues(make, actions(130), actions(90))


def test_before_the_first_reset():
  for name in ('Recall-6', 'MiniGrid-FourRooms-v0'):
    one, other = (environments.make(name, seed=seed) for seed in (0, 1))
    other.restore(one.state())
    assert_same(one.reset(), other.reset())


@pytest.mark.parametrize(
  'name, num_steps',
  [*itertools.product(ATARI, [30]), *itertools.product(NAMES, [75])],
)
def test_vectors(name, num_steps):
  def make(seed):
    return environments.make_vector(name, 3, seed=seed)

  num_actions = environments.make(name, seed=0).action_spec().num_values
  rng = np.random.default_rng(0)
  check_continues(make, *rng.integers(num_actions, size=(2, num_steps, 3)))


def test_atari_vector_after_several_episodes():
  original, other = (
    atari_vector.AtariVector('breakout', seeds, max_frames=240)
    for seeds in ([0, 1], [2, 3])
  )
  rng = np.random.default_rng(0)
  original.reset()
  ends = sum(
    original.step(rng.integers(18, size=2)).is_last.sum() for _ in range(150)
  )
  assert ends > 2
  original.reset()  # Continues the random streams of no-ops.
  original.step(rng.integers(18, size=2))
  other.restore(original.state())
  for _ in range(80):
    action = rng.integers(18, size=2)
    assert_same(original.step(action), other.step(action))
  with pytest.raises(RuntimeError, match='after the first reset'):
    other.restore(original.state())


def test_atari_vector_records_actions_since_the_latest_seed(monkeypatch):
  monkeypatch.setattr(atari_vector, '_STEPS_BETWEEN_SEEDS', 40)

  def make(seeds):
    return atari_vector.AtariVector('breakout', seeds)

  actions = np.random.default_rng(2).integers(18, size=(260, 3))
  games, alone = make([0, 1, 2]), make([2])
  games.reset()
  alone.reset()
  steps, states = [], {}
  for step, action in enumerate(actions):
    steps.append(games.step(action))
    assert_same(alone.step(action[2:]), [field[2:] for field in steps[-1]])
    if step % 90 == 49:
      states[step] = round_trips.round_trip(games.state())
    if step == 12:
      games.reset()
      alone.reset()
  num_rows = [len(state['actions']) for state in states.values()]
  assert num_rows[0] == 52 and max(num_rows) < 150
  assert (states[229]['seeds'] != [0, 1, 2]).all()
  assert (states[229]['actions'][0] < 255).any()  # Seeded at different steps.
  for step, state in states.items():
    other = make([3, 4, 5])
    other.restore(state)
    for later in range(step + 1, step + 31):
      assert_same(other.step(actions[later]), steps[later])


def test_atari_vector_state_of_version_0_1_0():
  rng = np.random.default_rng(0)
  actions = rng.integers(18, size=(100, 2), dtype=np.uint8)
  games, other = (environments.make_vector('pong', 2, seed=s) for s in (0, 1))
  games.reset()
  play(games, actions)
  # That version recorded everything, with one row per reset of all games.
  reset = np.full((1, 2), 255, np.uint8)
  seeds = games.state()['seeds']
  other.restore({'seeds': seeds, 'actions': np.concatenate([reset, actions])})
  for action in rng.integers(18, size=(30, 2)):
    assert_same(games.step(action), other.step(action))


def test_a_custom_environment_with_state():
  steps = check_continues(
    fakes.MarkedEnvironment, *np.random.default_rng(0).integers(3, size=(2, 40))
  )
  assert any(step.last() for step in steps)


class Stateless(fakes.MarkedEnvironment):
  """An environment without `restore`."""

  restore = None


class Misnamed(fakes.MarkedEnvironment):
  """An environment whose `state` is not a method."""

  state = np.zeros(4)


@pytest.mark.parametrize('kind', [Stateless, Misnamed])
def test_the_error_names_an_environment_that_cannot_be_saved(kind):
  original = vector.VectorEnvironment([kind()])
  original.reset()
  with pytest.raises(
    saving.SaveNotSupportedError,
    match=f'{kind.__name__} cannot.*new episodes.*restore',
  ):
    original.state()


def test_a_replay_that_leads_to_another_observation_is_refused():
  environment = gymnasium.Gymnasium('CartPole-v1', seed=0)
  environment.reset()
  state = environment.state()
  state['observation'] += 1
  with pytest.raises(ValueError, match='CartPole.*another observation'):
    environment.restore(state)
