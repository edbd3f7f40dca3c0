"""Tests that a run learns from proposals alone."""

import gymnasium
import numpy as np
import pytest

import bt_acme
from bt_acme import behaviors

pytestmark = pytest.mark.slow
_STEPS = 12


def _right_action(observation):
  step = int(observation[0, :, -1].argmax())
  return step * step % 3


class _Lock(gymnasium.Env):
  """Steps that show their number; the first wrong action ends the episode."""

  observation_space = gymnasium.spaces.Box(0, 255, (7, _STEPS, 1), np.uint8)
  action_space = gymnasium.spaces.Discrete(3)

  def reset(self, *, seed=None, options=None):
    super().reset(seed=seed)
    self._step = 0
    return self._observation(), {}

  def step(self, action):
    is_wrong = action != _right_action(self._observation())
    self._step += 1
    is_solved = self._step == _STEPS and not is_wrong
    is_over = bool(is_solved or is_wrong)
    return self._observation(), float(is_solved), is_over, False, {}

  def _observation(self):
    image = np.zeros((7, _STEPS, 1), np.uint8)
    image[:, min(self._step, _STEPS - 1)] = 10
    return image


def test_kickstarting_opens_a_lock_that_exploration_does_not():
  bt_acme.register_environment('lock', lambda seed: _Lock())
  settings = {
    'max_actor_steps': 8_000,
    'num_environments': 4,
    'progress': 'off',
    **dict.fromkeys(('torso_size', 'lstm_size', 'head_size'), 32),
    'trace_length': 12,
    'sequence_period': 6,
    'min_replay_size': 20,
    'samples_per_insert': 8.0,
    'batch_size': 16,
    'learning_rate': 1e-3,
    'target_update_period': 100,
    'variable_update_period': 20,
    'evaluation_period': 4_000,
  }
  alone = bt_acme.train('lock', **settings)
  assert not alone.episodes['episode_return'].any()
  # The behavior never acts.
  run = bt_acme.transfer(
    'lock',
    behaviors.FromCallable(lambda seed: lambda image, *_: _right_action(image)),
    flights=False,
    extra_action=False,
    kickstarting=0.1,
    kickstarting_steps=200,
    **settings,
  )
  assert not run.episodes['behavior_share'].any()
  assert run.learner['learner_steps'][-1] > 400
  assert run.learner['kickstarting_loss'][0] > 0.01
  assert run.learner['kickstarting_loss'][-1] == 0
  assert run.evaluations['episode_return'][-1] == 1
