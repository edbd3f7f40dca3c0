"""Tests the behaviors defined in the core."""

import jax
import jax.numpy as jnp
import numpy as np

from bt_acme.core.behavior_transfer import behavior_core

_A = 5


def _run(behavior, starts_flight, is_first, host_inputs=None):
  """Returns the actions in one environment for the given flags."""
  state = behavior.init(jax.random.PRNGKey(0))
  actions = []
  for t, (starts, first) in enumerate(
    zip(starts_flight, is_first, strict=True)
  ):
    action, state = behavior.step(
      {},
      behavior_core.BehaviorInput(
        observation=jnp.zeros([1, 1, 1], jnp.uint8),
        prev_action=jnp.zeros([], jnp.int32),
        is_first=jnp.asarray(first),
        starts_flight=jnp.asarray(starts),
        host_inputs=() if host_inputs is None else host_inputs[t],
      ),
      state,
    )
    assert action.dtype == jnp.int32
    assert action.shape == ()
    assert behavior.features(state) == ()
    actions.append(int(action))
  return np.array(actions)


def test_uniform_draws_from_all_actions_at_every_step():
  no = np.zeros(300, bool)
  actions = _run(behavior_core.uniform(_A), no, no)
  counts = np.bincount(actions, minlength=_A)
  assert len(counts) == _A
  assert counts.min() > 30
  assert np.mean(actions[1:] == actions[:-1]) < 0.35


def test_action_repeat_draws_where_a_flight_or_an_episode_starts():
  rng = np.random.default_rng(0)
  starts = rng.uniform(size=300) < 0.2
  is_first = rng.uniform(size=300) < 0.1
  is_first[0] = True
  actions = _run(behavior_core.action_repeat(_A), starts, is_first)
  draws = starts | is_first
  assert np.all(actions[1:][~draws[1:]] == actions[:-1][~draws[1:]])
  counts = np.bincount(actions[draws], minlength=_A)
  assert len(counts) == _A
  assert counts.min() > 5


def test_external_proposes_its_host_input():
  host_inputs = [jnp.asarray(a, jnp.int32) for a in (3, 0, 4)]
  no = np.zeros(3, bool)
  actions = _run(behavior_core.external(), no, no, host_inputs)
  np.testing.assert_array_equal(actions, [3, 0, 4])
