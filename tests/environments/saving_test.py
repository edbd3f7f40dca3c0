"""Tests that a restored environment continues as if never stopped."""

import functools
import itertools

import dm_env
import jax
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


def _make(name):
  return functools.partial(environments.make, name)


def assert_same(one, other):
  jax.tree.map(np.testing.assert_array_equal, one, other)


def play(environment, actions):
  return [environment.step(action) for action in actions]


def draw_actions(environment, count):
  rng = np.random.default_rng(0)
  if isinstance(environment, vector.VectorEnvironment):
    return rng.integers(3, size=(count, len(environment)))
  spec = environment.action_spec()
  if hasattr(spec, 'num_values'):
    return rng.integers(spec.num_values, size=count)
  return rng.uniform(spec.minimum, spec.maximum, (count, *spec.shape))


@pytest.mark.parametrize(
  'make, num_before, num_after',
  [
    *((_make(ATARI[i]), n, 60) for i, n in enumerate((37, 0, 411, 37))),
    *((_make(x), n, 300) for x, n in itertools.product(NAMES, [0, 37, 411])),
    *((_make(name), 60, 25) for name in minigrid.names()),
    # Drawing the number of no-ops after the end of an episode.
    *(
      (functools.partial(atari.Atari, 'breakout', max_frames=200), n, 60)
      for n in (49, 50, 51)
    ),
    (functools.partial(gymnasium.Gymnasium, 'Pendulum-v1'), 130, 90),
    (functools.partial(environments.make_vector, 'Recall-6', 3), 75, 75),
  ],
)
def test_environments(make, num_before, num_after):
  """An environment of another seed continues from the state."""
  environment, other = make(seed=0), make(seed=1)
  actions = draw_actions(environment, num_before + num_after)
  environment.reset()
  play(environment, actions[:num_before])
  other.restore(round_trips.round_trip(saving.state_of(environment)))
  steps = play(environment, actions[num_before:])
  assert_same(steps, play(other, actions[num_before:]))
  assert num_after < 300 or any(step.last() for step in steps)


def test_before_the_first_reset():
  for name in ('Recall-6', 'MiniGrid-FourRooms-v0'):
    one, other = (environments.make(name, seed=seed) for seed in (0, 1))
    other.restore(one.state())
    assert_same(one.reset(), other.reset())


def test_atari_vector_records_actions_since_the_latest_seed(monkeypatch):
  monkeypatch.setattr(atari_vector, '_STEPS_BETWEEN_SEEDS', 40)
  make = functools.partial(atari_vector.AtariVector, 'breakout', max_frames=540)
  actions = np.random.default_rng(5).integers(18, size=(176, 3))
  games, alone = make([0, 1, 2]), make([2])
  games.reset()
  alone.reset()
  steps, states = [], {}
  for step, action in enumerate(actions):
    steps.append(games.step(action))
    third = jax.tree.map(lambda field: field[2:], steps[-1])
    assert_same(alone.step(action[2:]), third)
    if step in (49, 154):
      states[step] = round_trips.round_trip(games.state())
    if step == 12:
      games.reset()
      alone.reset()
  num_rows = [len(state['actions']) for state in states.values()]
  assert num_rows[0] == 52 > num_rows[1]
  # All games have ended an episode and got a new seed.
  assert (states[154]['seeds'] != [0, 1, 2]).all()
  assert (states[154]['actions'][0] < 255).any()  # Seeded at different steps.
  for step, state in states.items():
    other = make([3, 4, 5])
    other.restore(state)
    later = slice(step + 1, step + 21)
    assert_same(play(other, actions[later]), steps[later])


def test_atari_vector_state_of_version_0_1_0():
  rng = np.random.default_rng(0)
  actions = rng.integers(18, size=(50, 2), dtype=np.uint8)
  games, other = (environments.make_vector('pong', 2, seed=s) for s in (0, 1))
  games.reset()
  play(games, actions)
  # That version recorded everything, with one row per reset of all games.
  reset = np.full((1, 2), 255, np.uint8)
  seeds = games.state()['seeds']
  other.restore({'seeds': seeds, 'actions': np.concatenate([reset, actions])})
  actions = rng.integers(18, size=(30, 2))
  assert_same(play(games, actions), play(other, actions))


@pytest.mark.parametrize(
  'attributes', [{'restore': None}, {'state': np.zeros(4)}]
)
def test_the_error_names_an_environment_that_cannot_be_saved(attributes):
  kind = type('Other', (fakes.MarkedEnvironment,), attributes)
  with pytest.raises(
    saving.SaveNotSupportedError, match='Other cannot.*new episodes.*restore'
  ):
    vector.VectorEnvironment([kind()]).state()


def test_a_wrapper_does_not_save_itself_with_what_it_wraps():
  class Wrapper(dm_env.Environment):
    inner = fakes.MarkedEnvironment()
    reset, step = inner.reset, inner.step
    observation_spec, action_spec = inner.observation_spec, inner.action_spec

    def __getattr__(self, name):
      return getattr(self.inner, name)

  assert callable(Wrapper().state)
  with pytest.raises(saving.SaveNotSupportedError, match='Wrapper cannot'):
    vector.VectorEnvironment([Wrapper()]).state()


def test_a_replay_that_leads_to_another_observation_is_refused():
  environment = gymnasium.Gymnasium('CartPole-v1', seed=0)
  environment.reset()
  state = environment.state()
  state['observation'] += 1
  match = 'CartPole.*another observation.*to its outermost wrapper if'
  with pytest.raises(saving.SaveNotSupportedError, match=match):
    environment.restore(state)
