"""Tests behaviors that act with Python policies."""

import numpy as np
import pytest
from dm_env import specs

from bt_acme import behaviors
from bt_acme.acting import behavior as behavior_lib

OBSERVATION = np.zeros((2, 5, 5, 1), np.uint8)
NO = np.zeros(2, bool)


def inputs_of(host, *, is_first=NO, is_last=NO):
  return host.inputs(OBSERVATION, np.array([-1, 2]), is_first, is_last)


def test_a_policy_is_called_at_every_step():
  seen = []

  def make_policy(seed):
    def policy(observation, prev_action, is_first):
      assert observation.shape == (5, 5, 1)
      seen.append((seed, prev_action, is_first))
      return len(seen) % 3

    return policy

  host = behaviors.FromCallable(make_policy).make_host(3, [0, 1])
  actions = inputs_of(host, is_first=np.array([True, False]))
  np.testing.assert_array_equal(actions, [1, 2])
  assert actions.dtype == np.int32
  (first_seed, *first), (second_seed, *second) = seen
  assert (first, second) == ([-1, True], [2, False])
  assert first_seed != second_seed
  # No action follows the last observation of an episode.
  np.testing.assert_array_equal(inputs_of(host, is_last=~NO), [0, 0])
  assert len(seen) == 2


@pytest.mark.parametrize(
  'action, kind, message',
  [
    (3, ValueError, r'returned 3 .* must lie in \[0, 2\]'),
    (-1, ValueError, r'returned -1 .* must lie in \[0, 2\]'),
    (1.0, TypeError, 'returned 1.0 .* must be one integer'),
    (None, TypeError, 'returned None .* must be one integer'),
    ([1], TypeError, r'returned \[1\] .* must be one integer'),
    ([[1], []], TypeError, 'must be one integer'),
    (True, TypeError, 'returned True .* must be one integer'),
  ],
)
def test_a_wrong_action_names_behavior_and_step(action, kind, message):
  answers = iter([0, 0, 1, action])
  mine = behaviors.FromCallable(lambda seed: lambda *_: next(answers), 'mine')
  host = mine.make_host(3, [0, 1])
  inputs_of(host)
  with pytest.raises(kind, match=message) as info:
    inputs_of(host)
  assert "behavior 'mine'" in str(info.value)
  assert 'at actor step 1 of environment 1' in str(info.value)


@pytest.mark.parametrize(
  'make_policy, error, message',
  [
    (lambda *_: 1 / 0, RuntimeError, 'raised ZeroDivisionError: division by'),
    # A policy instead of a function that returns a policy.
    (lambda image, action, is_first: 0, RuntimeError, 'raised TypeError'),
    (lambda seed: 3, TypeError, 'returned 3, which is not callable'),
  ],
)
def test_an_error_in_make_policy_names_the_behavior(
  make_policy, error, message
):
  behavior = behaviors.FromCallable(make_policy, 'mine')
  with pytest.raises(error, match=message) as info:
    behavior.make_host(3, [0])
  assert str(info.value).startswith("behavior 'mine': make_policy ")
  assert 'that takes a seed and returns a policy' in str(info.value)
  with pytest.raises(TypeError, match='make_policy=3 is not callable. Pass a'):
    behaviors.FromCallable(3)


INT8S, FLOATS = (specs.Array((2,), dtype) for dtype in (np.int8, np.float32))


@pytest.mark.parametrize(
  'spec, action, message',
  [
    (INT8S, [1.0, 0], 'must be int8 of shape'),
    (INT8S, [128, 0], r'must lie in \[-128, 127\]'),
    (specs.BoundedArray((2,), np.int64, 0, 5), [6, 0], 'must lie in'),
    (FLOATS, [np.inf, 0], 'must lie in'),
    (FLOATS, [0, np.nan], 'nan.* must lie in'),
    (FLOATS, [[0], [0, 1]], r'must be .*float32.* of shape \(2,\)'),
    (FLOATS, ['a', 'b'], 'must be .*float32.* of shape'),
    (FLOATS, None, 'returned None at actor step 1 of environment 0'),
  ],
)
def test_vectors_of_any_number(spec, action, message):
  answers = iter([[1, 2], action])
  host = behaviors.FromCallable(lambda seed: lambda *_: next(answers))
  host = host.make_host(spec, [0])
  inputs = (OBSERVATION[:1], np.zeros([1, 2], spec.dtype), NO[:1], NO[:1])
  actions = host.inputs(*inputs)
  np.testing.assert_array_equal(actions, [[1, 2]])
  assert actions.dtype == spec.dtype
  with pytest.raises((TypeError, ValueError), match=message):
    host.inputs(*inputs)


def test_vectors_that_are_not_numbers():
  with pytest.raises(ValueError, match='returns numbers, but this environment'):
    behaviors.FromCallable(lambda seed: lambda *_: 0).validate(
      (), specs.Array((2,), bool)
    )


@pytest.mark.parametrize(
  'behavior_class', [behaviors.FromCallable, behaviors.Exported]
)
def test_shapes_of_a_host_of_a_subclass_are_unknown(behavior_class):
  def states(base, *methods):
    own = type('Own', (base,), dict.fromkeys(methods, lambda *_: None))
    return behavior_lib.states_host_inputs(own.__new__(own)), own

  assert states(behavior_class)[0]
  has_shapes, own = states(behavior_class, 'make_host')
  assert not has_shapes and not states(own)[0]
  assert states(behavior_class, 'make_host', 'host_input_shapes')[0]
  assert states(own, 'host_input_shapes')[0]
