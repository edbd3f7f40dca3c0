"""Tests the margin by which extra actions are preferred."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bt_acme import config as config_lib
from bt_acme.core import networks, r2d2_actor, types
from tests.core import toys
from tests.reference import acting

_SHAPE = (7, 7, 3)
_NETWORK = networks.make_q_network(
  config_lib.NetworkConfig(torso_size=8, lstm_size=8, head_size=8), _SHAPE, 3, 2
)


@pytest.mark.parametrize('margin', [0.0, 0.1, 2.0])
@pytest.mark.parametrize('scale', [0.0, 1e-20, 1.0, -1.0, 1e20])
def test_preferences_are_those_of_the_reference(margin, scale):
  q_values = scale * np.array([0.3, 1.0, -2.0, 0.9, -1.1])
  preferred = r2d2_actor.prefer_extra_actions(jnp.array(q_values), margin, 3)
  expected = acting.preferences(q_values, margin, 3)
  np.testing.assert_allclose(preferred, expected, rtol=1e-6, atol=0)


def test_actor_delegates_unless_an_action_leads_by_the_margin():
  params = toys.random_params(_NETWORK.init)
  inputs = types.AgentInput(
    np.full(_SHAPE, 5, np.uint8), jnp.int32(-1), jnp.float32(0), jnp.bool_(True)
  )

  @functools.cache
  def act(margin):
    core = r2d2_actor.make_r2d2(_NETWORK, extra_action_margin=margin)
    state = core.init(jax.random.key(1), 0.0)
    choice, state = jax.jit(core.select_action)(params, inputs, state)
    return int(choice), core.get_extras(state)

  _, extras = act(0.0)
  q_values = np.asarray(extras['q_values'], np.float64)
  for margin in (0.0, 0.5, 3.0):
    choice, extras = act(margin)
    assert choice == np.argmax(acting.preferences(q_values, margin, 3))
    assert choice == extras['greedy_choice'] and extras['probability'] == 1
    # What is learned stays the same: only the selection changes.
    np.testing.assert_array_equal(extras['q_values'], q_values.astype('f4'))
  assert act(3.0)[0] >= 3
