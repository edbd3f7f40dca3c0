"""Targets of the Q-values: Peng's Q(lambda) and Retrace, with rescaled values.

A target is a function of `TargetFunction`'s signature; `core.loss.TARGETS`
names those that a configuration can choose.

Time comes first. Values at row t belong to what the agent saw at step t; the
reward and discount at row t belong to the transition from row t to t + 1.

There is one reward and no β: NGU's papers mix extrinsic and intrinsic reward as
r^e + β r^i, but here pre-training maximizes the intrinsic reward alone, because
it has no task, and transfer maximizes the task's reward alone.
"""

from typing import Any, Callable, NamedTuple

import chex
import jax
import jax.numpy as jnp
import rlax

from bt_acme import config as config_lib
from bt_acme.core import value_rescaling


class Transitions(NamedTuple):
  """The T transitions of each of B sequences, including the burn-in.

  Attributes:
    choice: int32 [T, B], what was chosen, one of A'.
    probability: float32 [T, B], μ_t, the choice's probability when it was made.
    reward: float32 [T, B], the transition's reward.
    discount_t: float32 [T, B], γ times the environment's discount.
    valid: float32 [T, B], 1 for a real transition.
  """

  choice: jax.Array
  probability: jax.Array
  reward: jax.Array
  discount_t: jax.Array
  valid: jax.Array


# (q_online float32 [T + 1, B, A'], q_target float32 [T + 1, B, A'],
# transitions, settings) -> y, float32 [T, B], without gradient; a target means
# nothing where `valid` is 0. Values of the online and of the target network are
# those of the rescaled returns, and so are the targets.
TargetFunction = Callable[
  [jax.Array, jax.Array, Transitions, config_lib.LearnerConfig], jax.Array
]


def q_lambda(
  q_online: jax.Array,
  q_target: jax.Array,
  transitions: Transitions,
  settings: config_lib.LearnerConfig,
) -> jax.Array:
  """Peng's Q(lambda) with double Q-learning and value rescaling.

    v_t = h⁻¹(q_target_t[argmax_a q_online_t[a]])
    G_t = r_t + γ_t [(1 - λ) v_{t+1} + λ G_{t+1}],   y_t = h(G_t)

  Traces are not cut at exploratory actions, so the targets do not depend on
  which action was taken. After the last real transition of a sequence (the end
  of an episode or of the sequence) the recursion stops and v takes over.

  Sources: Peng and Williams 1994; Kozuno et al. 2021 (arXiv:2103.00107);
  Kapturowski et al. 2019 for double Q-learning and h.

  Args and result are those of `TargetFunction`. Of the settings, λ is
  `trace_decay`, and `value_rescaling_epsilon` belongs to h. Without `double_q`,
  v_t is the target network's own largest value.
  """
  reward, discount_t, valid = transitions[2:]
  chex.assert_equal_shape([q_online, q_target])
  chex.assert_equal_shape([reward, discount_t, valid])
  chex.assert_equal_shape_prefix([q_online[1:], reward], 2)
  epsilon = settings.value_rescaling_epsilon
  chooser = q_online if settings.double_q else q_target
  best = jnp.argmax(chooser[1:], axis=-1)
  values = value_rescaling.invert(_take(q_target[1:], best), epsilon)
  lambda_t = settings.trace_decay * _trace_continues(valid)
  returns: Any = jax.vmap(rlax.lambda_returns, in_axes=1, out_axes=1)(
    _real(reward, valid),
    _real(discount_t, valid),
    _real(values, valid),
    lambda_t,
  )
  y: jax.Array = value_rescaling.rescale(returns, epsilon)
  return jax.lax.stop_gradient(y)


def retrace(
  q_online: jax.Array,
  q_target: jax.Array,
  transitions: Transitions,
  settings: config_lib.LearnerConfig,
) -> jax.Array:
  """Retrace(lambda) for an epsilon-greedy target policy, with rescaled values.

    c_t = λ min(1, π_t(a_t) / μ_t),   V_t = Σ_a π_t(a) h⁻¹(q_target_t[a])
    G_t = r_t + γ_t [V_{t+1} + c_{t+1} (G_{t+1} - h⁻¹(q_target_{t+1}[a_{t+1}]))]
    y_t = h(G_t)

  Sources: Munos et al. 2016 (arXiv:1606.02647); Badia et al. 2020
  (arXiv:2002.06038), App. E, for the target policy.

  Args and result are those of `TargetFunction`. π prefers the online network's
  greedy choice. Of the settings, λ is `trace_decay`, `target_policy_epsilon`
  belongs to π, and `value_rescaling_epsilon` to h.
  """
  choice, probability, reward, discount_t, valid = transitions
  chex.assert_equal_shape([q_online, q_target])
  chex.assert_equal_shape(transitions)
  policy = _epsilon_greedy(q_online, settings.target_policy_epsilon)
  epsilon = settings.value_rescaling_epsilon
  values = value_rescaling.invert(q_target, epsilon)
  state_values = jnp.sum(policy * values, axis=-1)[1:]  # [T, B]
  ratio = _take(policy[:-1], choice) / probability
  traces = settings.trace_decay * jnp.minimum(1.0, ratio)  # [T, B]
  returns: Any = jax.vmap(
    rlax.general_off_policy_returns_from_q_and_v, in_axes=1, out_axes=1
  )(
    _real(_take(values[:-1], choice), valid)[1:],
    _real(state_values, valid),
    _real(reward, valid),
    _real(discount_t, valid),
    _real(traces, valid)[1:],
  )
  y: jax.Array = value_rescaling.rescale(returns, epsilon)
  return jax.lax.stop_gradient(y)


def _take(q_values: jax.Array, index: jax.Array) -> jax.Array:
  """Returns the values [T, B] of the choices `index` out of [T, B, A']."""
  return jnp.take_along_axis(q_values, index[..., None], axis=-1)[..., 0]


def _real(x: jax.Array, valid: jax.Array) -> jax.Array:
  """Returns x where it is valid, else 0; a product would let NaN through."""
  return jnp.where(valid > 0, x, 0.0)


def _trace_continues(valid: jax.Array) -> jax.Array:
  """Returns 1 at row t where transition t + 1 is real, else 0; [T, B]."""
  return jnp.concatenate([valid[1:], jnp.zeros_like(valid[:1])])


def _epsilon_greedy(q_values: jax.Array, epsilon: float) -> jax.Array:
  """Returns an epsilon-greedy policy's probabilities, [T + 1, B, A']."""
  num_choices = q_values.shape[-1]
  greedy = jax.nn.one_hot(
    jnp.argmax(q_values, axis=-1), num_choices, dtype=jnp.float32
  )
  return (1 - epsilon) * greedy + epsilon / num_choices
