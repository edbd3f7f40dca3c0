"""Who acts, and with what: decisions alone, without an actor."""

import jax
import numpy as np
import pytest
from acme import specs

from bt_acme import behaviors
from bt_acme import config as config_lib
from bt_acme.agents.foreign import outer_core, resolvers
from bt_acme.core import types
from tests.agents import fakes
from tests.agents.foreign import scripted
from tests.agents.foreign.scripted import NUM_ACTIONS, int32s


def make(given, spec=None, weights=(), evaluation=False, **config):
  transfer = outer_core.Transfer(
    tuple(given),
    config_lib.TransferConfig(**config),
    spec or scripted.discrete_spec(),
    weights,
  )
  return resolvers.make(transfer, key=jax.random.key(0), evaluation=evaluation)


def policies(number):
  """Behaviors that run outside of JAX, so that their feed is their proposal."""
  return [behaviors.FromCallable(lambda seed: None) for _ in range(number)]


def decide(resolver, choices, feeds):
  """Decisions of one episode; feeds are the same at every step."""
  decisions = []
  for t, choice in enumerate(choices):
    shown = resolvers.Shown(
      observation=np.full((1, 2), t, np.float32),
      prev_action=decisions[-1].action[None] if t else resolver.no_action,
      is_first=np.array([t == 0]),
      is_last=np.array([False]),
    )
    decisions.append(resolver.resolve(np.asarray(choice), shown, feeds))
  return decisions


def fields_of(decisions, *names):
  return [tuple(getattr(d, name) for name in names) for d in decisions]


def test_a_choice_beyond_the_actions_is_its_behaviors():
  resolver = make(policies(2), flights=False)
  decisions = decide(resolver, int32s(0, 4, 3), (int32s(1), int32s(2)))
  assert fields_of(decisions, 'action', 'label', 'source') == [
    (0, 0, types.OWN),
    (2, 4, types.EXTRA),
    (1, 3, types.EXTRA),
  ]
  assert not any(decision.flight_length for decision in decisions)
  assert all(decision.features == ((), ()) for decision in decisions)


def test_the_action_has_the_environments_dtype_and_the_label_the_agents():
  spec = scripted.discrete_spec()._replace(
    actions=specs.DiscreteArray(NUM_ACTIONS, dtype=np.int64)
  )
  resolver = make(policies(1), spec, **scripted.ALWAYS_FLY)
  (decision,) = decide(resolver, int32s(0), (int32s(1),))
  assert decision.action.dtype == np.int64
  assert decision.label.dtype == np.int32


def test_flights_draw_behaviors_by_their_weights():
  resolver = make(policies(2), weights=(0, 1), **scripted.ALWAYS_FLY)
  decisions = decide(resolver, int32s(*[0] * 20), (int32s(1), int32s(2)))
  assert (
    fields_of(decisions, 'action', 'label', 'source')
    == [(2, NUM_ACTIONS + 1, types.FLIGHT)] * 20
  )
  assert decisions[0].flight_length >= 1


def test_a_flying_behavior_gives_its_vector():
  feeds = (np.ones((1, 2), np.float32), np.full((1, 2), 0.5, np.float32))
  spec = scripted.vector_spec()
  settings = {'extra_action': False, **scripted.ALWAYS_FLY}
  chosen = np.zeros((3, 2), np.float32)
  resolver = make(policies(2), spec, weights=(0, 1), **settings)
  for decision in decide(resolver, chosen, feeds):
    np.testing.assert_array_equal(decision.action, [0.5, 0.5])
    assert decision.label is decision.action
    assert decision.source == types.FLIGHT
  grounded = make(policies(2), spec, evaluation=True, **settings)
  for decision in decide(grounded, chosen, feeds):
    np.testing.assert_array_equal(decision.action, [0, 0])
    assert decision.source == types.OWN
    assert decision.flight_length == 0


def test_a_choice_beyond_the_behaviors_is_an_error():
  resolver = make(policies(1))
  with pytest.raises(ValueError, match='chose 5, of 4 choices'):
    decide(resolver, int32s(5), (int32s(0),))


@pytest.mark.parametrize('choice', (int32s(1), np.float32(1), np.array(1.0)))
def test_a_choice_that_is_no_integer_is_an_error(choice):
  resolver = make(policies(1))
  with pytest.raises(TypeError, match='chose .* takes one integer: give a pol'):
    decide(resolver, [choice], (int32s(0),))


def test_a_jitted_behavior_acts_in_range():
  resolver = make([behaviors.Uniform(), fakes.Proposing(9)])
  with pytest.raises(ValueError, match="'mine' returned 9 at actor step 0 of"):
    decide(resolver, int32s(0), ((), ()))
