"""Tests the behaviors defined in the core."""

import jax
import jax.numpy as jnp
import numpy as np

from bt_acme.core.behavior_transfer import behavior_core

_A = 5


def _run(behavior, starts_flight, is_first):
  """Returns the actions in one environment for the given flags."""
  state = behavior.init(jax.random.PRNGKey(0))
  actions = []
  for starts, first in zip(starts_flight, is_first, strict=True):
    action, state = behavior.step(
      {},
      behavior_core.BehaviorInput(
        observation=jnp.zeros([1, 1, 1], jnp.uint8),
        prev_action=jnp.zeros([], jnp.int32),
        is_first=jnp.asarray(first),
        starts_flight=jnp.asarray(starts),
        host_inputs=(),
      ),
      state,
    )
    assert action.dtype == jnp.int32
    assert action.shape == ()
    assert behavior.features(state) == ()
    actions.append(int(action))
  return np.array(actions)


def test_random_actions_are_drawn_at_each_step_or_for_a_flight_or_episode():
  rng = np.random.default_rng(0)
  starts = rng.uniform(size=300) < 0.2
  is_first = rng.uniform(size=300) < 0.1
  is_first[0] = True
  every = np.ones(300, bool)
  for core, draws in (
    (behavior_core.uniform(_A), every),
    (behavior_core.action_repeat(_A), starts | is_first),
  ):
    actions = _run(core, starts, is_first)
    same = actions[1:] == actions[:-1]
    assert np.all(same[~draws[1:]])
    assert np.mean(same[draws[1:]]) < 0.35
    counts = np.bincount(actions[draws], minlength=_A)
    assert len(counts) == _A
    assert counts.min() > 5
