"""Targets of R2D2: Peng's Q(lambda) and Retrace, with rescaled values.

Time comes first. Values at row t belong to what the agent saw at step t; the
reward and discount at row t belong to the transition from row t to t + 1.
"""

from typing import Any

import chex
import jax
import jax.numpy as jnp
import rlax

from bt_acme.core import value_rescaling


def _take(q_values: jax.Array, index: jax.Array) -> jax.Array:
  return jnp.take_along_axis(q_values, index[..., None], axis=-1)[..., 0]


def _real(x: jax.Array, valid: jax.Array) -> jax.Array:
  """x where it means something, else 0: a product would let NaN through."""
  return jnp.where(valid > 0, x, 0.0)


def _trace_continues(valid: jax.Array) -> jax.Array:
  """1 at [t] where transition t + 1 is real, for t = 0 .. T - 1; [T, B]."""
  return jnp.concatenate([valid[1:], jnp.zeros_like(valid[:1])])


def q_lambda_targets(
  q_online: jax.Array,
  q_target: jax.Array,
  reward: jax.Array,
  discount_t: jax.Array,
  valid: jax.Array,
  *,
  trace_decay: float,
  epsilon: float,
) -> jax.Array:
  """Peng's Q(lambda) with double Q-learning and value rescaling.

    v_t = h⁻¹(q_target_t[argmax_a q_online_t[a]])
    G_t = r_t + γ_t [(1 - λ) v_{t+1} + λ G_{t+1}],   y_t = h(G_t)

  Traces are not cut at exploratory actions, so the targets do not depend on
  which action was taken. Behind the last real transition of a sequence (an
  episode's end or the sequence's own) the recursion stops and v takes over.

  Sources: Peng and Williams 1994; Kozuno et al. 2021 (arXiv:2103.00107);
  Kapturowski et al. 2019 for double Q-learning and h.

  Args:
    q_online: float32 [T + 1, B, A'], whose greedy action is taken: of the
      online network, rescaled by h. With the target network's instead, this is
      Q(lambda) without double Q-learning.
    q_target: float32 [T + 1, B, A'], of the target network.
    reward: float32 [T, B].
    discount_t: float32 [T, B], γ times the environment's discount.
    valid: float32 [T, B], 1 for a real transition.
    trace_decay: λ.
    epsilon: of h; 0 for no rescaling.

  Returns:
    y, float32 [T, B], without gradient; means nothing where valid is 0.
  """
  chex.assert_equal_shape([q_online, q_target])
  chex.assert_equal_shape([reward, discount_t, valid])
  chex.assert_equal_shape_prefix([q_online[1:], reward], 2)
  best = jnp.argmax(q_online[1:], axis=-1)
  values = value_rescaling.invert(_take(q_target[1:], best), epsilon)
  lambda_t = trace_decay * _trace_continues(valid)
  returns: Any = jax.vmap(rlax.lambda_returns, in_axes=1, out_axes=1)(
    _real(reward, valid),
    _real(discount_t, valid),
    _real(values, valid),
    lambda_t,
  )
  return jax.lax.stop_gradient(value_rescaling.rescale(returns, epsilon))


def retrace_targets(
  q_online: jax.Array,
  q_target: jax.Array,
  action: jax.Array,
  probability: jax.Array,
  reward: jax.Array,
  discount_t: jax.Array,
  valid: jax.Array,
  *,
  trace_decay: float,
  target_policy_epsilon: float,
  epsilon: float,
) -> jax.Array:
  """Retrace(lambda) for an epsilon-greedy target policy, values rescaled.

    c_t = λ min(1, π_t(a_t) / μ_t),   V_t = Σ_a π_t(a) h⁻¹(q_target_t[a])
    G_t = r_t + γ_t [V_{t+1} + c_{t+1} (G_{t+1} - h⁻¹(q_target_{t+1}[a_{t+1}]))]

  Sources: Munos et al. 2016 (arXiv:1606.02647); Badia et al. 2020
  (arXiv:2002.06038), App. E, for the target policy.

  Args:
    q_online: float32 [T + 1, B, A], whose greedy action π prefers.
    q_target: float32 [T + 1, B, A].
    action: int32 [T, B].
    probability: float32 [T, B], μ_t: of the action when it was taken.
    reward: float32 [T, B].
    discount_t: float32 [T, B], γ times the environment's discount.
    valid: float32 [T, B], 1 for a real transition.
    trace_decay: λ.
    target_policy_epsilon: of π.
    epsilon: of h; 0 for no rescaling.

  Returns:
    y = h(G), float32 [T, B], without gradient; means nothing where valid is 0.
  """
  chex.assert_equal_shape([q_online, q_target])
  chex.assert_equal_shape([action, probability, reward, discount_t, valid])
  num_actions = q_online.shape[-1]
  greedy = jax.nn.one_hot(
    jnp.argmax(q_online, axis=-1), num_actions, dtype=jnp.float32
  )
  policy = (
    1 - target_policy_epsilon
  ) * greedy + target_policy_epsilon / num_actions  # [T + 1, B, A]
  values = value_rescaling.invert(q_target, epsilon)
  state_values = jnp.sum(policy * values, axis=-1)[1:]  # [T, B]
  ratio = _take(policy[:-1], action) / probability
  traces = trace_decay * jnp.minimum(1.0, ratio)  # [T, B]
  returns: Any = jax.vmap(
    rlax.general_off_policy_returns_from_q_and_v, in_axes=1, out_axes=1
  )(
    _real(_take(values[:-1], action), valid)[1:],
    _real(state_values, valid),
    _real(reward, valid),
    _real(discount_t, valid),
    _real(traces, valid)[1:],
  )
  return jax.lax.stop_gradient(value_rescaling.rescale(returns, epsilon))
