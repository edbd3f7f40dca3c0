"""The loss of the Q-network, shared by R2D2, NGU and BT.

    L = mean_B w ½ Σ_t trained_t (δ_t² + duplicated_t δ'_t²)

δ is the TD error of a transition under its own label, δ' that of its duplicate
(`behavior_transfer.training_labels`), and w is an importance weight, by default
1. `behavior_transfer.kickstarting` can add a loss to each trained transition.
Both networks first unroll the sequences (`burn_in`). The TD errors are computed
from their Q-values (`targets`, `returns_on_device`). The sum excludes the
burn-in and padding. The factor ½ and the sum over time are those of SEED and
dm-acme; NGU prints no factor. A duplicate is a transition of its own, so it
counts as much as its original.

Sources: Kapturowski et al. 2019 (R2D2); Campos et al. 2021 (arXiv:2102.13515),
App.
"""

from typing import Any

import chex
import jax
import jax.numpy as jnp

from bt_acme import config as config_lib
from bt_acme.core import arrays, burn_in, networks, types
from bt_acme.core import priorities as priorities_lib
from bt_acme.core import returns_on_device as returns_on_device_lib
from bt_acme.core import td_errors as td_errors_lib
from bt_acme.core.behavior_transfer import kickstarting as kickstarting_lib

# The fields of a transition that the loss uses, with one value for each step.
_FIELDS = (
  *('choice', 'action', 'source', 'probability', 'reward', 'discount'),
  'valid',
)


def q_network_loss(
  params: types.Params,
  target_params: types.Params,
  batch: types.SequenceBatch,
  observations: jax.Array,
  probabilities: jax.Array,
  learner_steps: Any = 0,
  *,
  network: networks.QNetwork,
  config: config_lib.R2D2Config,
  transfer: config_lib.TransferConfig | None = None,
) -> tuple[jax.Array, tuple[jax.Array, types.Metrics]]:
  """Computes the loss of one batch and the new priorities of its sequences.

  Args:
    params: the parameters of the online network.
    target_params: the parameters of the target network.
    batch: B sequences of T transitions, burn-in and trace.
    observations: uint8 [T + 1, B, H, W, C * S], the batch's frames, stacked.
    probabilities: float32 [B], the probability with which replay sampled each
      sequence; used only with an `importance_sampling_exponent`.
    learner_steps: int32 [], the number of earlier steps; used only with
      kickstarting.
    network: the Q-network.
    config: the settings of the agent, of which those of the learner and the
      replay are used.
    transfer: the settings of behavior transfer; None without it.

  Returns:
    The loss, float32 [], and (priorities float32 [B], metrics).
  """
  learner, replay = config.learner, config.replay
  q_online, q_target = burn_in.unroll(
    network,
    (params, target_params),
    batch,
    observations,
    burn_in_length=replay.burn_in_length,
    hold_flights=bool(transfer and transfer.flight_recurrent_state == 'hold'),
  )  # [T + 1, B, A'] each
  fields = [getattr(batch, name) for name in _FIELDS]
  chex.assert_equal_shape([q_online, q_target])
  chex.assert_equal_shape([*fields, q_online[1:, :, 0]])
  errors = td_errors_lib.td_errors(
    q_online,
    q_target,
    batch,
    burn_in.trained_steps(batch, burn_in_length=replay.burn_in_length),
    returns_on_device_lib.returns_on_device,
    learner=learner,
    num_actions=network.num_actions,
  )
  extra_loss = None
  if transfer is not None and transfer.kickstarts:
    extra_loss = kickstarting_lib.weighted_loss(
      q_online[:-1, :, : network.num_actions],
      batch.proposal,
      learner_steps,
      transfer,
    )
  loss = _weighted_loss(
    errors, extra_loss, probabilities, learner.importance_sampling_exponent
  )
  priorities = priorities_lib.sequence_priorities(
    jax.lax.stop_gradient(errors), max_weight=replay.max_priority_weight
  )
  means = {  # Over trained transitions.
    'mean_abs_td_error': jnp.abs(errors.own),
    'mean_q': jnp.max(q_online[:-1], axis=-1),
    'mean_target': errors.target,
    'mean_reward': batch.reward,
    'duplicated_share': errors.duplicated,
  }
  if extra_loss is not None:
    means['kickstarting_loss'] = extra_loss
  metrics = {
    name: arrays.masked_mean(x, errors.trained) for name, x in means.items()
  }
  return loss, (priorities, {'loss': loss, **metrics})


def _weighted_loss(
  errors: td_errors_lib.TDErrors,
  extra_loss: jax.Array | None,
  probabilities: jax.Array,
  exponent: float,
) -> jax.Array:
  """Sums half the squared errors over time; averages over the batch.

  Args:
    errors: δ and δ', [T, B].
    extra_loss: float32 [T, B], a loss that is added to each trained transition;
      None for none.
    probabilities: float32 [B], the probability with which replay sampled each
      sequence.
    exponent: the exponent of the importance weights; 0 disables them.

  Returns:
    float32 [].
  """
  per_sequence = 0.5 * jnp.sum(
    jnp.where(errors.trained > 0, errors.own, 0.0) ** 2
    + jnp.where(errors.duplicated > 0, errors.duplicate, 0.0) ** 2,
    axis=0,
  )  # [B]
  if extra_loss is not None:
    extra_loss = jnp.where(errors.trained > 0, extra_loss, 0.0)
    per_sequence += jnp.sum(extra_loss, axis=0)
  if exponent:
    per_sequence *= priorities_lib.importance_weights(probabilities, exponent)
  return jnp.mean(per_sequence)
