"""Tests behavior transfer with scripted actors."""

import chex
import dm_env
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from acme import specs, wrappers

from bt_acme import behaviors
from bt_acme.core import types
from bt_acme.core.behavior_transfer import behavior_core
from tests.agents import fakes
from tests.agents.external import scripted
from tests.agents.external.scripted import (
  ALWAYS_FLY,
  NUM_ACTIONS,
  Recorder,
  int32s,
  make_actor,
)

_VECTORS = {'spec': scripted.vector_spec(), 'extra_action': False}


def play(actor, num_steps):
  """Returns the executed actions; the observation of step t is (t, t)."""
  executed = []
  observation = np.zeros(2, np.float32)
  actor.observe_first(dm_env.restart(observation))
  for t in range(num_steps):
    executed.append(actor.select_action(observation))
    observation = np.full(2, t + 1, np.float32)
    actor.observe(executed[-1], dm_env.transition(0.0, observation))
    actor.update()
  return np.array(executed)


def test_extra_action_is_executed_by_its_behavior_and_observed_as_a_choice():
  choices = int32s(3, 0, 4, 4, 3)  # Behaviors 0, -, 1, 1, 0.
  policies = [Recorder([0, 1, 2]), Recorder([2, 2, 1])]
  actor, inner = make_actor(choices, policies, flights=False)
  executed = play(actor, 5)
  np.testing.assert_array_equal(executed, [0, 0, 1, 2, 1])
  np.testing.assert_array_equal(inner.observed[1:], choices)
  assert all(label.dtype == np.int32 for label in inner.observed[1:])
  assert executed.dtype == np.int32 and inner.updates == 5
  assert actor.metrics()['behavior_share'] == pytest.approx(4 / 5)
  # Both policies see every step and every executed action.
  for policy in policies:
    observations, actions, is_first = zip(*policy.seen, strict=True)
    np.testing.assert_array_equal(observations, [[t, t] for t in range(5)])
    np.testing.assert_array_equal(actions, [types.NO_ACTION, 0, 0, 1, 2])
    assert is_first == (True, False, False, False, False)


@pytest.mark.parametrize('extra_action', (True, False))
def test_flights_execute_behaviors_by_their_weights(extra_action):
  actor, inner = make_actor(
    int32s(*[0] * 20),
    [Recorder([0]), Recorder([2, 1])],
    weights=(0, 1),
    extra_action=extra_action,
    **ALWAYS_FLY,
  )
  np.testing.assert_array_equal(play(actor, 20), [2, 1] * 10)
  expected = [NUM_ACTIONS + 1] * 20 if extra_action else [2, 1] * 10
  np.testing.assert_array_equal(inner.observed[1:], expected)
  assert actor.metrics()['flight_share'] == 1
  assert actor.metrics()['flights'] >= 1


def test_hosts_learn_that_their_behavior_skips_the_episodes_of_others():
  settings = {'extra_action': False, 'behavior_draws': 'episode'}
  policies = [Recorder([1]), Recorder([2])]
  actor, _ = make_actor(int32s(0, 0, 0), policies, weights=(0, 1), **settings)
  told = [[], []]
  for host, skipped in zip(actor._hosts, told, strict=True):
    host.skip = lambda mask, skipped=skipped: skipped.append(mask.tolist())
  play(actor, 3)
  assert told == [[[True]] * 3, [[False]] * 3]


def test_evaluation_disables_flights_but_not_the_extra_action():
  settings = {'evaluation': True, **ALWAYS_FLY}
  actor, _ = make_actor(int32s(0, 3, 1), [Recorder([2])], **settings)
  np.testing.assert_array_equal(play(actor, 3), [0, 2, 1])
  policy, settings['extra_action'] = Recorder([2]), False
  actor, _ = make_actor(int32s(0, 2, 1), [policy], **settings)
  np.testing.assert_array_equal(play(actor, 3), [0, 2, 1])
  assert not policy.seen


def test_each_episode_resets_the_state():
  policy = Recorder([1])
  actor, inner = make_actor(int32s(0, 0, 0, 3), [policy], flights=False)
  play(actor, 3)
  play(actor, 1)
  assert [bool(is_first) for *_, is_first in policy.seen] == [1, 0, 0, 1]
  assert policy.seen[3][1] == types.NO_ACTION
  starts = [label is None for label in inner.observed]
  assert starts == [True, False, False, False, True, False]
  assert actor.metrics()['behavior_share'] == 1  # Of the second episode.


def test_a_flight_of_vectors():
  chosen = np.zeros((4, 2), np.float32)
  actions = [[1.0, 2.0], [-1, 0]]  # Lists and integers are accepted.
  policy = Recorder(actions)
  actor, inner = make_actor(chosen, [policy], **_VECTORS, **ALWAYS_FLY)
  executed = play(actor, 4)
  assert executed.dtype == np.float32
  np.testing.assert_array_equal(executed, actions * 2)
  np.testing.assert_array_equal(inner.observed[1:], actions * 2)
  np.testing.assert_array_equal(
    [prev_action for _, prev_action, _ in policy.seen], [[0, 0], *executed[:3]]
  )


def test_an_agent_may_reuse_the_array_of_its_action():
  policy = Recorder([[0, 0]])
  actor, inner = make_actor((), [policy], **_VECTORS)
  action = np.zeros(2, np.float32)
  inner.select_action = lambda observation: np.add(action, 1, out=action)
  np.testing.assert_array_equal(play(actor, 3)[:, 0], [1, 2, 3])
  prev_actions = [prev_action[0] for _, prev_action, _ in policy.seen]
  np.testing.assert_array_equal(prev_actions, [0, 1, 2])


def test_behaviors_do_not_see_the_additions_of_the_oar_wrapper():
  policy = Recorder([1])
  actor, _ = make_actor(int32s(0), [policy])
  observation = wrappers.observation_action_reward.OAR(
    np.ones(2, np.float32), np.int32(0), np.float32(0)
  )
  actor.observe_first(dm_env.restart(observation))
  actor.select_action(observation)
  assert policy.seen[0][0] == [1, 1]


@pytest.mark.parametrize('structured', (True, False))
def test_a_policy_cannot_change_its_inputs(structured):
  def policy(observation, action, is_first):
    del is_first
    (array,) = observation.values() if structured else [action]
    array += 5
    return 0

  spec = scripted.structured_spec() if structured else scripted.vector_spec()
  choices = int32s(0) if structured else np.zeros((1, 2), np.float32)
  actor, _ = make_actor(
    choices, [lambda seed: policy], spec, extra_action=structured
  )
  observation = np.zeros(2, np.float32)
  if structured:
    observation = {'image': observation}
  actor.observe_first(dm_env.restart(observation))
  with pytest.raises(RuntimeError, match='raised ValueError: .*read-only') as e:
    actor.select_action(observation)
  assert "behavior 'policy'" in str(e.value)
  assert 'at actor step 0 of environment 0' in str(e.value)


def test_an_exported_policy_with_a_scripted_agent(exported):
  exported = behaviors.Exported(exported)
  before = jax.tree.map(np.copy, exported.params())
  shape = fakes.SPEC.observation_shape
  spec = scripted.discrete_spec(shape, np.uint8)
  actor, inner = make_actor(int32s(*[0] * 12), [exported], spec, **ALWAYS_FLY)
  images = np.random.default_rng(0).integers(
    0, 256, (12, *shape), dtype=np.uint8
  )
  actor.observe_first(dm_env.restart(images[0]))
  for image in images:
    assert actor.select_action(image) in range(NUM_ACTIONS)
    actor.observe(None, dm_env.transition(0.0, image))
  np.testing.assert_array_equal(inner.observed[1:], [NUM_ACTIONS] * 12)
  chex.assert_trees_all_equal(exported.params(), before)


class FollowsTheReward(behaviors.Behavior):
  """A jitted behavior whose action is the previous reward."""

  def make_core(self, num_actions):
    def step(params, inputs, state):
      return inputs.prev_reward.astype(jnp.int32), state

    return behavior_core.BehaviorCore(lambda key: (), step)


def test_a_jitted_behavior_receives_the_previous_reward():
  choices = int32s(*[0] * 6)
  actor, _ = make_actor(choices, [FollowsTheReward()], **ALWAYS_FLY)
  observation, actions = np.zeros(2, np.float32), []
  for _ in range(2):
    actor.observe_first(dm_env.restart(observation))
    for reward in (2.0, np.ones(2), 1.0):
      actions.append(actor.select_action(observation))
      actor.observe(None, dm_env.transition(reward, observation))
  assert actions == [0, 2, 0] * 2


def test_the_action_has_the_environments_dtype_and_the_label_the_agents():
  spec = scripted.discrete_spec()._replace(
    actions=specs.DiscreteArray(NUM_ACTIONS, dtype=np.int64)
  )
  actor, inner = make_actor(int32s(0), [Recorder([1])], spec, **ALWAYS_FLY)
  assert play(actor, 1).dtype == np.int64
  assert inner.observed[1].dtype == np.int32


@pytest.mark.parametrize(
  'choice',
  (int32s(4), int32s(-1), [int32s(1)], [np.float32(1)], [np.array(1.0)]),
)
def test_an_invalid_choice_is_an_error(choice):
  actor, _ = make_actor(choice, [Recorder([0])])
  with pytest.raises(ValueError, match='instead of a single integer below 4'):
    play(actor, 1)


def test_a_jitted_behavior_must_act_in_range():
  actor, _ = make_actor(int32s(0), [behaviors.Uniform(), fakes.Proposing(9)])
  with pytest.raises(ValueError, match="'mine' returned 9 at actor step 0 of"):
    play(actor, 1)
