"""Tests `Atari`: preprocessing, seeds, ends of episodes."""

import numpy as np
import pytest
from ale_py import roms

from bt_acme.environments import atari

_NOOP, _FIRE = 0, 1


def _play(environment, actions):
  return [environment.reset(), *(environment.step(a) for a in actions)]


def _is_same(one, other):
  return (
    one.step_type == other.step_type
    and one.reward == other.reward
    and one.discount == other.discount
    and np.array_equal(one.observation, other.observation)
  )


def test_all_57_games_have_a_rom():
  assert len(set(atari.ATARI_57)) == 57
  for game in atari.ATARI_57:
    assert roms.get_rom_path(game).is_file(), game


def test_the_stack_starts_with_zeros_and_shifts():
  environment = atari.Atari('pong', seed=0)
  timesteps = _play(environment, [_FIRE, 2, 3, 4, 5, 2])
  first = timesteps[0].observation
  assert not first[..., :3].any() and first[..., 3].any()
  for before, after in zip(timesteps, timesteps[1:], strict=False):
    np.testing.assert_array_equal(
      before.observation[..., 1:], after.observation[..., :-1]
    )
  environment.reset()
  assert not environment.reset().observation[..., :3].any()


@pytest.mark.parametrize('stack', [1, 2])
def test_a_stack_holds_the_newest_frames(stack):
  actions = [2, 3, 4, 5]
  expected = _play(atari.Atari('pong', seed=0), actions)
  actual = _play(atari.Atari('pong', seed=0, stack=stack), actions)
  for one, other in zip(actual, expected, strict=True):
    assert one.observation.shape == (84, 84, stack)
    np.testing.assert_array_equal(
      one.observation, other.observation[..., -stack:]
    )


def test_the_last_two_frames_are_pooled():
  environment = atari.Atari('space_invaders', seed=0, max_noops=0)
  single = atari.Atari(
    'space_invaders', seed=0, max_noops=0, action_repeat=1, stack=1
  )
  environment.reset()
  single.reset()
  blinks = 0
  for _ in range(120):
    timestep = environment.step(_FIRE)
    *_, third, fourth = [single.step(_FIRE).observation for _ in range(4)]
    pooled = timestep.observation[..., -1:].astype(int)
    # Downscaling after pooling may exceed both, or round to 1 less.
    assert (pooled + 1 >= np.maximum(third, fourth)).all()
    blinks += (third != fourth).any()
  assert blinks > 10


@pytest.mark.parametrize(
  'options, low, high', [({}, 1, 30), ({'max_noops': 2}, 1, 2)]
)
def test_number_of_no_ops_varies_from_1_to_max_noops(options, low, high):
  environment = atari.Atari('pong', seed=0, **options)
  counts = set()
  for _ in range(40):
    environment.reset()
    counts.add(environment._ale.getEpisodeFrameNumber())
  assert counts <= set(range(low, high + 1))
  assert len(counts) > high / 2


@pytest.mark.parametrize('game', ['montezuma_revenge', 'space_invaders'])
def test_seed_and_actions_determine_the_episodes(game):
  rng = np.random.default_rng(0)
  actions = rng.integers(18, size=150)
  one, same, other = (
    _play(atari.Atari(game, seed=seed, max_frames=200), actions)
    for seed in (3, 3, 4)
  )
  assert sum(timestep.first() for timestep in one) > 2
  assert all(map(_is_same, one, same))
  assert not all(map(_is_same, one, other))


def test_truncation_at_the_frame_limit_has_discount_1():
  environment = atari.Atari('pong', seed=0, max_frames=42)
  timesteps = _play(environment, [_NOOP] * 11)
  assert all(timestep.mid() for timestep in timesteps[1:-1])
  assert timesteps[-1].last() and timesteps[-1].discount == 1
  assert environment.frames == 42  # The last action lasted two frames.
  assert environment.step(_NOOP).first()
  assert environment.frames == 0


def test_ram_is_a_copy():
  environment = atari.Atari('pong', seed=0)
  environment.reset()
  memory = environment.ram()
  assert memory.shape == (128,) and memory.dtype == np.uint8
  before = memory.copy()
  environment.step(_FIRE)
  np.testing.assert_array_equal(memory, before)
  assert (environment.ram() != before).any()


def test_discount_is_0_at_game_over_and_not_at_a_lost_life():
  environment = atari.Atari('breakout', seed=0)
  timesteps = _play(environment, [_FIRE, _NOOP] * 400)
  lasts = [timestep for timestep in timesteps if timestep.last()]
  assert len(lasts) > 1
  assert all(timestep.discount == 0 for timestep in lasts)
  lengths = np.diff([i for i, t in enumerate(timesteps) if t.last()])
  assert (lengths > 60).all()  # Five lives, each longer than 12 steps.
  assert all(timestep.discount == 1 for timestep in timesteps if timestep.mid())


def test_rewards_are_raw_scores():
  environment = atari.Atari('space_invaders', seed=0)
  rng = np.random.default_rng(0)
  timesteps = _play(environment, rng.choice([1, 3, 4, 11, 12], size=400))
  rewards = {float(t.reward) for t in timesteps if not t.first()}
  assert max(rewards) > 1 and rewards & {5.0, 10.0, 15.0, 20.0}


@pytest.mark.parametrize('action', [-1, 18])
def test_actions_out_of_range_are_refused(action):
  environment = atari.Atari('pong', seed=0)
  environment.reset()
  with pytest.raises(ValueError, match=f'action={action} is out of range'):
    environment.step(action)


def test_screen_rgb():
  environment = atari.Atari('pong', seed=0)
  environment.reset()
  screen = environment.screen_rgb()
  assert screen.shape == (210, 160, 3) and screen.dtype == np.uint8
  assert len(np.unique(screen.reshape(-1, 3), axis=0)) > 1
