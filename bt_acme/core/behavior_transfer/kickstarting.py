"""Kickstarting: a loss that moves the agent's values towards a behavior.

    L_t = λ_n (log Σ_a e^(Q(s_t, a) / τ) - Q(s_t, b_t) / τ)

This is the cross-entropy of the policy softmax(Q / τ), with the rescaled values
that the network returns for the A primitive actions, given the action b_t that
the behavior proposed. It is added to the loss of each trained transition, no
matter who selected its action. The weight λ falls linearly from its initial
value to 0 over the first learner steps n.

Sources: Schmitt et al. 2018 (arXiv:1803.03835); Agarwal et al. 2022
(arXiv:2206.01626), QDagger. Unlike there, the behavior is a black box, which
shows one action and no distribution: the cross-entropy of the proposed action
replaces the KL divergence from the behavior's policy to the agent's. QDagger
lowers λ as the agent's returns approach the behavior's.
"""

import jax
import jax.numpy as jnp

from bt_acme import config as config_lib


def weighted_loss(
  q_values: jax.Array,
  proposal: jax.Array,
  learner_steps: jax.Array,
  config: config_lib.TransferConfig,
) -> jax.Array:
  """Returns the weighted cross-entropy of each transition, float32 [T, B].

  Args:
    q_values: float32 [T, B, A], the online values of the primitive actions.
    proposal: int32 [T, B], the actions that the behavior proposed.
    learner_steps: int32 [], the number of earlier learner steps.
    config: the settings of kickstarting.
  """
  steps = jnp.asarray(learner_steps, jnp.float32)
  left = jnp.maximum(1 - steps / config.kickstarting_steps, 0.0)
  loss = cross_entropy(
    q_values, proposal, temperature=config.kickstarting_temperature
  )
  return loss * (config.kickstarting * left)


def cross_entropy(
  q_values: jax.Array, proposal: jax.Array, *, temperature: float
) -> jax.Array:
  """Computes the cross-entropy of softmax(Q / τ), given proposed actions.

  Args:
    q_values: float32 [..., A].
    proposal: int32 [...], one of A.
    temperature: τ, positive.

  Returns:
    float32 [...], at least 0.
  """
  best = jax.lax.stop_gradient(jnp.max(q_values, axis=-1, keepdims=True))
  # At most 0, so that no temperature overflows.
  log_policy = jax.nn.log_softmax((q_values - best) / temperature)
  taken = jnp.take_along_axis(log_policy, proposal[..., None], axis=-1)
  return -jnp.squeeze(taken, -1)
