"""Targets of the Q-values: Peng's Q(lambda) and Retrace, with rescaled values.

To add a loss, write a `TargetFunction` in a new file, register it in `TARGETS`
and add its name to the choices of `LearnerConfig.loss`. The learner's loss and
the actors' priorities of new sequences then both use it. This module does not
import rlax, so that acting does not need it.
"""

from collections.abc import Callable, Mapping

from bt_acme import config as config_lib
from bt_acme.core import arrays, return_recursion, types, value_rescaling

# (q_online float [T + 1, B, A'], q_target float [T + 1, B, A'], transitions,
# settings, recursion) -> y, float [T, B], undefined where `valid` is 0. The
# values of both networks and the targets are on the scale of rescaled returns.
# All arrays are JAX arrays, or all are NumPy arrays without the axis B.
TargetFunction = Callable[
  [
    arrays.Array,
    arrays.Array,
    types.SequenceBatch,
    config_lib.LearnerConfig,
    return_recursion.Recursion,
  ],
  arrays.Array,
]


def q_lambda(
  q_online: arrays.Array,
  q_target: arrays.Array,
  transitions: types.SequenceBatch,
  settings: config_lib.LearnerConfig,
  recursion: return_recursion.Recursion,
) -> arrays.Array:
  """Computes Peng's Q(lambda) with double Q-learning and value rescaling.

    v_t = h⁻¹(q_target_t[argmax_a q_online_t[a]])
    G_t = r_t + γ_t [(1 - λ) v_{t+1} + λ G_{t+1}],   y_t = h(G_t)

  Exploratory actions do not cut the traces, so the targets do not depend on
  which action was taken. After the last valid transition (the end of an episode
  or of the sequence), the recursion stops and bootstraps from v.

  Sources: Peng and Williams 1994; Kozuno et al. 2021 (arXiv:2103.00107);
  Kapturowski et al. 2019 for double Q-learning and h.

  The arguments and the result follow `TargetFunction`. In the settings, λ is
  `trace_decay`, and `value_rescaling_epsilon` is the epsilon of h. Without
  `double_q`, v_t is the target network's own maximum value.
  """
  chooser = q_online if settings.double_q else q_target
  best = chooser[1:].argmax(axis=-1)
  values = value_rescaling.invert(
    return_recursion.take(q_target[1:], best), settings.value_rescaling_epsilon
  )
  traces = arrays.namespace(values).full_like(values, settings.trace_decay)
  return _targets(transitions, settings, recursion, values, traces)


def retrace(
  q_online: arrays.Array,
  q_target: arrays.Array,
  transitions: types.SequenceBatch,
  settings: config_lib.LearnerConfig,
  recursion: return_recursion.Recursion,
) -> arrays.Array:
  """Computes Retrace(lambda) for an epsilon-greedy policy, on rescaled values.

    c_t = λ min(1, π_t(a_t) / μ_t),   V_t = Σ_a π_t(a) h⁻¹(q_target_t[a])
    G_t = r_t + γ_t [V_{t+1} + c_{t+1} (G_{t+1} - h⁻¹(q_target_{t+1}[a_{t+1}]))]
    y_t = h(G_t)

  Sources: Munos et al. 2016 (arXiv:1606.02647); Badia et al. 2020
  (arXiv:2002.06038), App. E, for the target policy.

  The arguments and the result follow `TargetFunction`. π is epsilon-greedy with
  respect to the online network. In the settings, λ is `trace_decay`,
  `target_policy_epsilon` is the epsilon of π, and `value_rescaling_epsilon` is
  the epsilon of h.
  """
  xp = arrays.namespace(q_online)
  policy = _epsilon_greedy(q_online, settings.target_policy_epsilon)
  values = value_rescaling.invert(q_target, settings.value_rescaling_epsilon)
  state_values = xp.sum(policy * values, axis=-1)[1:]  # [T, B]
  choice = transitions.choice
  ratio = return_recursion.take(policy[:-1], choice) / transitions.probability
  traces = settings.trace_decay * xp.minimum(1.0, ratio)  # [T, B]
  taken_values = return_recursion.take(values[:-1], choice)
  return _targets(
    transitions, settings, recursion, state_values, traces, taken_values
  )


def _targets(
  transitions: types.SequenceBatch,
  settings: config_lib.LearnerConfig,
  recursion: return_recursion.Recursion,
  *values_and_traces: arrays.Array,
) -> arrays.Array:
  """Returns y = h(G) from the last arguments of `returns_on_host`."""
  inputs = (
    transitions.reward,
    settings.discount * transitions.discount,
    *values_and_traces,
  )
  g = recursion(*(return_recursion.real(x, transitions.valid) for x in inputs))
  return value_rescaling.rescale(g, settings.value_rescaling_epsilon)


def _epsilon_greedy(q_values: arrays.Array, epsilon: float) -> arrays.Array:
  """Returns the probabilities of an epsilon-greedy policy, [T + 1, B, A']."""
  xp, num_choices = arrays.namespace(q_values), q_values.shape[-1]
  best = q_values.argmax(axis=-1)[..., None]
  greedy = (xp.arange(num_choices) == best).astype(q_values.dtype)
  return (1 - epsilon) * greedy + epsilon / num_choices


# Target functions by `LearnerConfig.loss`.
TARGETS: Mapping[str, TargetFunction] = {
  'q_lambda': q_lambda,
  'retrace': retrace,
}
