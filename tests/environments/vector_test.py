"""Tests that each environment of a vector steps as it would alone."""

import types

import dm_env
import numpy as np
import pytest

from bt_acme import environments
from bt_acme.environments import vector

_NAME = 'MiniGrid-LavaGapS5-v0'


def _make(count):
  return [environments.make(_NAME, seed=seed) for seed in range(count)]


def test_environments_step_independently():
  batched, alone = vector.VectorEnvironment(_make(3)), _make(3)
  assert len(batched) == 3
  rng = np.random.default_rng(0)
  steps = batched.reset()
  expected = [environment.reset() for environment in alone]
  lasts = 0
  for _ in range(200):
    assert steps.observation.shape == (3, 7, 7, 3)
    for i, timestep in enumerate(expected):
      np.testing.assert_array_equal(steps.observation[i], timestep.observation)
      assert steps.is_first[i] == timestep.first()
      assert steps.is_last[i] == timestep.last()
      assert steps.reward[i] == (timestep.reward or 0)
      discount = 1 if timestep.first() else timestep.discount
      assert steps.discount[i] == discount
    lasts += steps.is_last.sum()
    actions = rng.integers(7, size=3)
    batched.send(actions)
    steps = batched.recv()
    expected = [alone[i].step(actions[i]) for i in range(3)]
  assert lasts > 3


@pytest.mark.parametrize('name', [_NAME, 'pong', 'hero:miners_easy'])
def test_arrays_are_not_modified_later(name):
  batched = environments.make_vector(name, 2, seed=0)
  steps = [batched.reset(), *(batched.step([2, 3]) for _ in range(5))]
  copies = [[array.copy() for array in step] for step in steps]
  for _ in range(5):
    batched.step([2, 3])
  for array, copy in zip(sum(steps, ()), sum(copies, []), strict=True):
    np.testing.assert_array_equal(array, copy)
  dtypes = [array.dtype.name for array in steps[0]]
  assert dtypes == ['uint8', 'float32', 'float32', 'bool', 'bool']
  assert [array.shape for array in steps[0][1:]] == [(2,)] * 4


def test_one_action_for_each_environment():
  batched = vector.VectorEnvironment(_make(2))
  batched.reset()
  with pytest.raises(ValueError):
    batched.step([0])


def test_environments_must_have_equal_spaces():
  obstacles = environments.make('MiniGrid-Dynamic-Obstacles-5x5-v0', seed=0)
  one, stacked = _make(2)
  stacked.num_stacked = 3
  for other, end in ((obstacles, '1, 3'), (stacked, '3, 7')):
    with pytest.raises(ValueError, match=rf'1, 7\) and \(\(7, 7, 3\), {end}\)'):
      vector.VectorEnvironment([one, other])


def test_environments_must_be_different_objects():
  (one,) = _make(1)
  shared = types.SimpleNamespace(_env=one)
  for pair in ([one, one], [shared, types.SimpleNamespace(_env=one)]):
    with pytest.raises(ValueError, match='the same object twice. Create a new'):
      vector.VectorEnvironment(pair)


def test_an_environment_that_breaks_the_rules_is_named():
  (environment,) = _make(1)
  batched = vector.VectorEnvironment([environment])
  step = batched.reset()
  environment.step = lambda _: dm_env.transition(np.nan, step.observation[0])
  with pytest.raises(ValueError, match='MiniGrid.*reward nan. Return a finite'):
    batched.step([0])
  environment.step = lambda action: dm_env.termination(0.0, step.observation[0])
  assert batched.step([0]).is_last.all()
  with pytest.raises(ValueError, match='must start the next episode'):
    batched.step([0])
  batched.reset()
  environment.step = lambda action: dm_env.restart(step.observation[0])
  with pytest.raises(ValueError, match='and at no other step'):
    batched.step([0])
  for wrong, found in (
    (np.zeros([7, 7, 1], np.uint8), r'MiniGrid .*shape \(7, 7, 1\) and'),
    (np.zeros([7, 7, 3]), r'MiniGrid .* type float64, but its observation_s'),
  ):
    environment.step = lambda _, wrong=wrong: dm_env.transition(0.0, wrong)
    environment.reset = lambda wrong=wrong: dm_env.restart(wrong)
    for act in (batched.reset, lambda: batched.step([0])):
      with pytest.raises(ValueError, match=found):
        act()


@pytest.mark.parametrize(
  'step, found',
  [
    (lambda x: dm_env.transition(0.0, x, discount=2.0), 'discount 2.0. Return'),
    (lambda x: dm_env.transition(0.0, x, discount=-0.1), 'discount -0.1'),
    (lambda x: dm_env.transition(0.0, x, discount=None), 'discount None. Re'),
    (lambda x: dm_env.transition(0.0, x, discount=np.nan), 'discount nan. Ret'),
    (lambda x: dm_env.transition(np.ones(2), x), r'reward \[1. 1.\] and'),
    (lambda x: x, 'returned a ndarray. Return a dm_env'),
  ],
)
def test_wrong_steps_are_refused(step, found):
  (environment,) = _make(1)
  batched = vector.VectorEnvironment([environment])
  observation = batched.reset().observation[0]
  environment.step = lambda action: step(observation)
  with pytest.raises(ValueError, match=f'^MiniGrid.*{found}'):
    batched.step([0])
  environment.reset = lambda: dm_env.termination(0.0, observation)
  with pytest.raises(ValueError, match='MiniGrid: reset.. must return the fir'):
    batched.reset()


def test_rewards_may_be_arrays_of_one_number():
  step = dm_env.transition(np.ones(1), np.zeros(1))
  first = dm_env.restart(np.zeros(1))
  assert vector.batch([step, first]).reward.tolist() == [1, 0]
