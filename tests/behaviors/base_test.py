import numpy as np
import pytest

from bt_acme import behaviors

OBSERVATION = np.zeros((2, 5, 5, 1), np.uint8)
NO = np.zeros(2, bool)


def host_of(policy, name=None):
  made = behaviors.FromCallable(lambda seed: policy, name)
  return made.make_host(2, 3, seed=0)


def feed(host, *, is_first=NO, is_last=NO):
  return host.feed(OBSERVATION, np.array([-1, 2]), is_first, is_last)


def test_a_policy_is_asked_at_every_step():
  seen = []

  def make_policy(seed):
    def policy(observation, prev_action, is_first):
      assert observation.shape == (5, 5, 1)
      seen.append((seed, prev_action, is_first))
      return len(seen) % 3

    return policy

  host = behaviors.FromCallable(make_policy).make_host(2, 3, seed=0)
  actions = feed(host, is_first=np.array([True, False]))
  np.testing.assert_array_equal(actions, [1, 2])
  assert actions.dtype == np.int32
  (first_seed, *first), (second_seed, *second) = seen
  assert (first, second) == ([-1, True], [2, False])
  assert first_seed != second_seed
  # No action is taken on where an episode has ended.
  np.testing.assert_array_equal(feed(host, is_last=~NO), [0, 0])
  assert len(seen) == 2


def test_seeds_follow_the_environment_not_the_process():
  seeds = []
  behavior = behaviors.FromCallable(lambda seed: seeds.append(seed))
  behavior.make_host(4, 3, seed=7)
  behavior.make_host(1, 3, seed=9)
  assert seeds[4] == seeds[2] and len(set(seeds)) == 4


@pytest.mark.parametrize(
  'action, kind, message',
  [
    (3, ValueError, r'returned 3 .* must lie in \[0, 2\]'),
    (-1, ValueError, r'returned -1 .* must lie in \[0, 2\]'),
    (np.nan, TypeError, 'returned nan .* must be one integer'),
    (1.0, TypeError, 'returned 1.0 .* must be one integer'),
    ('left', TypeError, "returned 'left' .* must be one integer"),
    (None, TypeError, 'returned None .* must be one integer'),
    ([1], TypeError, r'returned \[1\] .* must be one integer'),
    (True, TypeError, 'returned True .* must be one integer'),
  ],
)
def test_a_wrong_action_names_behavior_and_step(action, kind, message):
  answers = iter([0, 0, 1, action])
  host = host_of(lambda *_: next(answers), name='mine')
  feed(host)
  with pytest.raises(kind, match=message) as info:
    feed(host)
  assert "behavior 'mine'" in str(info.value)
  assert 'at actor step 1 of environment 1' in str(info.value)


def test_a_policy_that_raises_is_named():
  def policy(*_):
    raise KeyError('of mine')

  with pytest.raises(RuntimeError, match="'mine' raised KeyError") as info:
    feed(host_of(policy, name='mine'))
  assert 'at actor step 0 of environment 0' in str(info.value)
  assert isinstance(info.value.__cause__, KeyError)
