"""Peng's Q(lambda) with double Q-learning and value rescaling.

  v_t = h⁻¹(q_target_t[argmax_a q_online_t[a]])
  G_t = r_t + γ_t [(1 - λ) v_{t+1} + λ G_{t+1}],   y_t = h(G_t)

Traces are not cut at exploratory actions, so the targets do not depend on which
action was taken. After the last real transition of a sequence (the end of an
episode or of the sequence) the recursion stops and v takes over.

Sources: Peng and Williams 1994; Kozuno et al. 2021 (arXiv:2103.00107);
Kapturowski et al. 2019 for double Q-learning and h.
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

  Of the settings, λ is `trace_decay`, and `value_rescaling_epsilon` belongs to
  h. Without `double_q`, v_t is the target network's own largest value.
  """
  reward, discount_t, valid = transitions[2:]
  chex.assert_equal_shape([q_online, q_target])
  chex.assert_equal_shape([reward, discount_t, valid])
  chex.assert_equal_shape_prefix([q_online[1:], reward], reward.ndim)
  epsilon = settings.value_rescaling_epsilon
  chooser = q_online if settings.double_q else q_target
  best = chooser[1:].argmax(axis=-1)
  values = value_rescaling.invert(returns.take(q_target[1:], best), epsilon)
  ones = arrays.namespace(reward).ones_like(reward)
  g = recursion(
    returns.real(reward, valid),
    returns.real(discount_t, valid),
    returns.real(values, valid),
    returns.real(settings.trace_decay * ones, valid),
  )
  return value_rescaling.rescale(g, epsilon)
