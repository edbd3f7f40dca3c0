"""Retrace(lambda) for an epsilon-greedy target policy, with rescaled values.

  c_t = λ min(1, π_t(a_t) / μ_t),   V_t = Σ_a π_t(a) h⁻¹(q_target_t[a])
  G_t = r_t + γ_t [V_{t+1} + c_{t+1} (G_{t+1} - h⁻¹(q_target_{t+1}[a_{t+1}]))]
  y_t = h(G_t)

Sources: Munos et al. 2016 (arXiv:1606.02647); Badia et al. 2020
(arXiv:2002.06038), App. E, for the target policy.
"""

import chex

from bt_acme import config as config_lib
from bt_acme.core import arrays, returns, value_rescaling


def targets(
  q_online: arrays.Array,
  q_target: arrays.Array,
  transitions: returns.Transitions,
  settings: config_lib.LearnerConfig,
  recursion: returns.Recursion,
) -> arrays.Array:
  """Computes y; a `core.targets.TargetFunction`.

  π prefers the online network's greedy choice. Of the settings, λ is
  `trace_decay`, `target_policy_epsilon` belongs to π, and
  `value_rescaling_epsilon` to h.
  """
  choice, probability, reward, discount_t, valid = transitions
  chex.assert_equal_shape([q_online, q_target])
  chex.assert_equal_shape(transitions)
  xp, epsilon = arrays.namespace(reward), settings.value_rescaling_epsilon
  policy = _epsilon_greedy(q_online, settings.target_policy_epsilon)
  values = value_rescaling.invert(q_target, epsilon)
  state_values = xp.sum(policy * values, axis=-1)[1:]  # [T, B]
  ratio = returns.take(policy[:-1], choice) / probability
  traces = settings.trace_decay * xp.minimum(1.0, ratio)  # [T, B]
  g = recursion(
    returns.real(reward, valid),
    returns.real(discount_t, valid),
    returns.real(state_values, valid),
    returns.real(traces, valid),
    returns.real(returns.take(values[:-1], choice), valid),
  )
  return value_rescaling.rescale(g, epsilon)


def _epsilon_greedy(q_values: arrays.Array, epsilon: float) -> arrays.Array:
  """Returns an epsilon-greedy policy's probabilities, [T + 1, B, A']."""
  xp, num_choices = arrays.namespace(q_values), q_values.shape[-1]
  best = q_values.argmax(axis=-1)[..., None]
  greedy = (xp.arange(num_choices) == best).astype(q_values.dtype)
  return (1 - epsilon) * greedy + epsilon / num_choices
