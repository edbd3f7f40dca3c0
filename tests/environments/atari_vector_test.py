"""Tests that `AtariVector` equals `Atari`, with independent games."""

import jax
import numpy as np
import pytest

from bt_acme import environments
from bt_acme.environments import atari, atari_vector, vector


def _equal_steps(games, expected, actions):
  """Plays both; yields each step of `games` after comparing it."""
  timestep, step = expected.reset(), games.reset()
  for action in actions:
    same = vector.batch([timestep])
    if timestep.last():  # Then AtariVector pools one more frame.
      same = same._replace(observation=step.observation)
    jax.tree.map(np.testing.assert_array_equal, step, same)
    yield step
    timestep, step = expected.step(action), games.step([action])


@pytest.mark.parametrize(
  'game, stack, pixels',
  [('breakout', 4, 84), ('breakout', 1, 42), ('ms_pacman', 4, 84)],
)
def test_episodes_equal_those_of_the_python_environment(game, stack, pixels):
  settings = {'max_noops': 0, 'max_frames': 300}
  settings.update(stack=stack, pixels=pixels)
  games = atari_vector.AtariVector(game, [0], **settings)
  expected = atari.Atari(game, seed=0, **settings)
  actions = np.random.default_rng(1).integers(18, size=180)
  steps = list(_equal_steps(games, expected, actions))
  assert steps[0].observation.shape == (1, pixels, pixels, stack)
  assert sum(step.is_last[0] for step in steps) > 1
  assert all(step.discount[0] for step in steps)  # Episodes are truncated.
  # Rewards are not clipped.
  assert game != 'ms_pacman' or max(step.reward[0] for step in steps) > 1


def test_discount_is_0_at_game_over_and_not_at_a_lost_life():
  settings = {'max_noops': 0}
  games = atari_vector.AtariVector('breakout', [0], **settings)
  expected = atari.Atari('breakout', seed=0, **settings)
  steps = list(_equal_steps(games, expected, [1, 0] * 150))
  lasts = [t for t, step in enumerate(steps) if step.is_last[0]]
  assert len(lasts) > 1
  assert (np.diff(lasts) > 60).all()  # Five lives, each longer than 12 steps.
  assert [t for t, step in enumerate(steps) if not step.discount[0]] == lasts


@pytest.mark.parametrize('max_noops', [30, 2])
def test_no_ops_vary_and_depend_on_the_seed(max_noops):
  def draws(seed, count):
    games = atari_vector.AtariVector('pong', [seed], max_noops=max_noops)
    games.reset()
    infos = [games._games.reset()[1] for _ in range(count)]
    return [int(info['episode_frame_number'][0]) for info in infos]

  drawn = draws(3, max_noops + 10)
  assert set(drawn) <= set(range(max_noops + 1))
  assert len(set(drawn)) > max_noops / 2
  assert drawn[:10] == draws(3, 10) != draws(4, 10)


def test_a_game_that_starts_an_episode_leaves_the_others_alone():
  seeds, coincides = [2, 3], False
  together, *alone = (
    atari_vector.AtariVector('asterix', each)
    for each in (seeds, seeds[:1], seeds[1:])
  )
  step, singles = together.reset(), [games.reset() for games in alone]
  for actions in np.random.default_rng(0).integers(18, size=(230, 2)):
    expected = jax.tree.map(lambda *each: np.concatenate(each), *singles)
    jax.tree.map(np.testing.assert_array_equal, step, expected)
    coincides |= bool(np.any(step.is_first & (step.reward[::-1] > 0)))
    step = together.step(actions)
    singles = [g.step([a]) for g, a in zip(alone, actions, strict=True)]
  assert coincides  # An episode starts where the other game pays.


@pytest.mark.parametrize('name', ['pong', 'skiing'])
def test_actions_out_of_range_are_refused(name):
  game = environments.make(name, seed=0)
  games = environments.make_vector(name, 2, seed=0)
  game.reset()
  games.reset()
  for action in (-1, 18):
    for step in (game.step, lambda action: games.step([0, action])):
      with pytest.raises(ValueError, match=rf'action.*{action}.* out of range'):
        step(action)
  games.step([0, 17])
  game.step(17)


def test_seeds_depend_on_the_index_of_the_environment():
  together = environments.make_vector('pong', 3, seed=5)
  alone = environments.make_vector('pong', 1, seed=5, first_environment=2)
  assert isinstance(together, atari_vector.AtariVector)
  # A task needs the rewards of single frames.
  task = environments.make_vector('hero:miners_easy', 1, seed=5)
  assert not isinstance(task, atari_vector.AtariVector)
  assert (len(together), len(alone)) == (3, 1)
  step, single = together.reset(), alone.reset()
  for action in (2, 1, 0, 2, 2):
    np.testing.assert_array_equal(step.observation[2], single.observation[0])
    step, single = together.step([action] * 3), alone.step([action])
  np.testing.assert_array_equal(step.observation[2], single.observation[0])
