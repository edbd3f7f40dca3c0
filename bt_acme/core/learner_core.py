"""One learner step: batch in, new state, priorities and metrics out.

R2D2, NGU and BT share it: they differ in the configuration's loss, in whether
intrinsic networks are trained beside, and in whether a batch holds transitions
of the extra action.
"""

from typing import Any, Callable, Dict, NamedTuple, Optional, Tuple

import jax
import jax.numpy as jnp
import optax

from bt_acme import config as config_lib
from bt_acme.core import networks as networks_lib
from bt_acme.core import priorities as priorities_lib
from bt_acme.core import targets as losses
from bt_acme.core import types
from bt_acme.core.behavior_transfer import relabelling
from bt_acme.core.intrinsic import networks as intrinsic_lib

Metrics = Dict[str, jax.Array]


class LearnerState(NamedTuple):
  """All that the learner carries from step to step.

  Attributes:
    params: of the online Q-network.
    target_params: of the target network.
    opt_state: of the Q-network's optimizer.
    intrinsic_params: of the networks behind the intrinsic reward; {} without.
    intrinsic_opt_state: of their optimizer; () without.
    learner_steps: int32 [].
  """

  params: types.Params
  target_params: types.Params
  opt_state: Any
  intrinsic_params: types.Params
  intrinsic_opt_state: Any
  learner_steps: jax.Array


class LearnerCore(NamedTuple):
  """The learner as two pure functions.

  Attributes:
    init: (key, initial params or None for fresh ones) -> LearnerState.
    step: (LearnerState, SequenceBatch, probabilities float32 [B]) ->
      (LearnerState, priorities float32 [B], metrics). Jit it and donate the
      first argument.
  """

  init: Callable[..., LearnerState]
  step: Callable[
    [LearnerState, types.SequenceBatch, jax.Array],
    Tuple[LearnerState, jax.Array, Metrics],
  ]


def _adam(
  learning_rate: float, config: config_lib.LearnerConfig
) -> optax.GradientTransformation:
  return optax.chain(
    optax.clip_by_global_norm(config.max_gradient_norm),
    optax.adam(learning_rate, eps=config.adam_epsilon),
  )


def make_loss(
  network: networks_lib.QNetwork,
  learner: config_lib.LearnerConfig,
  replay: config_lib.ReplayConfig,
  *,
  hold_flights: bool = False,
) -> Callable[..., Tuple[jax.Array, Tuple[jax.Array, Metrics]]]:
  """The loss of the Q-network.

    L = mean_B ½ Σ_t valid_t (δ_t² + duplicated_t δ'_t²)

  with δ the TD error of a transition under its own label and δ' of its
  duplicate (`relabelling`). Sources: Kapturowski et al. 2019; Campos et al.
  2021 (arXiv:2102.13515), App.

  Args:
    network: the Q-network.
    learner: its settings.
    replay: lengths of burn-in and trace; the priority's mix.
    hold_flights: whether steps of a flight leave the recurrent state as it was
      (`TransferConfig.flight_recurrent_state`).

  Returns:
    (params, target_params, batch, observations uint8 [T + 1, B, H, W, C * S],
    probabilities float32 [B]) -> (loss, (priorities float32 [B], metrics)).
  """
  epsilon = learner.value_rescaling_epsilon
  burn_in = replay.burn_in_length

  def unroll(
    params: types.Params, batch: types.SequenceBatch, observations: jax.Array
  ) -> jax.Array:
    state = batch.recurrent_state
    inputs = (observations, batch.prev_action, batch.prev_reward)
    hold: Tuple[jax.Array, ...] = ()
    if hold_flights:  # Nothing sees the state behind the last row.
      last = jnp.zeros_like(batch.source[:1], bool)
      hold = (jnp.concatenate([batch.source == types.FLIGHT, last]),)

    def part(rows: slice, state: types.LSTMState) -> Tuple[jax.Array, Any]:
      return network.unroll(
        params, *(x[rows] for x in inputs), state, *(x[rows] for x in hold)
      )

    if burn_in:
      _, state = part(slice(burn_in), state)
      state = jax.lax.stop_gradient(state)
    q_values, _ = part(slice(burn_in, None), state)
    return q_values  # [trace + 1, B, A']

  def loss_fn(
    params: types.Params,
    target_params: types.Params,
    batch: types.SequenceBatch,
    observations: jax.Array,
    probabilities: jax.Array,
  ) -> Tuple[jax.Array, Tuple[jax.Array, Metrics]]:
    q_online = unroll(params, batch, observations)
    q_target = unroll(target_params, batch, observations)
    trace = jax.tree.map(
      lambda x: x[burn_in:],
      (
        batch.action,
        batch.choice,
        batch.source,
        batch.probability,
        batch.reward,
        batch.discount,
        batch.valid,
      ),
    )
    action, choice, source, probability, reward, discount, valid = trace
    discount_t = learner.discount * discount
    if learner.loss == 'q_lambda':
      targets = losses.q_lambda_targets(
        q_online if learner.double_q else q_target,
        q_target,
        reward,
        discount_t,
        valid,
        trace_decay=learner.trace_decay,
        epsilon=epsilon,
      )
    else:
      targets = losses.retrace_targets(
        q_online,
        q_target,
        choice,
        probability,
        reward,
        discount_t,
        valid,
        trace_decay=learner.trace_decay,
        target_policy_epsilon=learner.target_policy_epsilon,
        epsilon=epsilon,
      )
    labels = relabelling.labels(
      choice,
      action,
      source,
      num_actions=network.num_actions,
      behavior_labels=learner.behavior_labels,
      duplicate_flights=learner.duplicate_flights,
    )

    def td_errors(label: jax.Array) -> jax.Array:
      q_values = jnp.take_along_axis(q_online[:-1], label[..., None], axis=-1)
      return targets - q_values[..., 0]

    errors = td_errors(labels.choice)  # [trace, B]
    duplicate_errors = td_errors(labels.duplicate)
    duplicated = valid * labels.duplicated
    per_sequence = 0.5 * jnp.sum(
      jnp.where(valid > 0, errors, 0.0) ** 2
      + jnp.where(duplicated > 0, duplicate_errors, 0.0) ** 2,
      axis=0,
    )  # [B]
    if learner.importance_sampling_exponent:
      weights = (1.0 / probabilities) ** learner.importance_sampling_exponent
      per_sequence = per_sequence * weights / jnp.max(weights)
    loss = jnp.mean(per_sequence)
    priorities = priorities_lib.sequence_priorities(
      jax.lax.stop_gradient(jnp.concatenate([errors, duplicate_errors])),
      jnp.concatenate([valid, duplicated]),
      max_weight=replay.max_priority_weight,
    )

    def mean(x: jax.Array) -> jax.Array:
      total = jnp.sum(jnp.where(valid > 0, x, 0.0))
      return total / jnp.maximum(jnp.sum(valid), 1.0)

    metrics = {
      'loss': loss,
      'mean_abs_td_error': mean(jnp.abs(errors)),
      'mean_q': mean(jnp.max(q_online[:-1], axis=-1)),
      'mean_target': mean(targets),
      'mean_reward': mean(reward),
      'duplicated_share': mean(duplicated),
    }
    return loss, (priorities, metrics)

  return loss_fn


def make_learner_core(
  network: networks_lib.QNetwork,
  config: config_lib.R2D2Config,
  *,
  num_stacked: int,
  intrinsic: Optional[intrinsic_lib.IntrinsicNetworks] = None,
) -> LearnerCore:
  """Builds the learner of R2D2, NGU or BT.

  Args:
    network: the Q-network.
    config: of the agent.
    num_stacked: S, frames stacked in an observation.
    intrinsic: the networks behind the intrinsic reward, in pre-training.

  Returns:
    The learner's functions.
  """
  learner, replay = config.learner, config.replay
  optimizer = _adam(learner.learning_rate, learner)
  hold_flights = (
    isinstance(config, config_lib.BTConfig)
    and config.transfer.flight_recurrent_state == 'hold'
  )
  loss_fn = make_loss(network, learner, replay, hold_flights=hold_flights)
  intrinsic_optimizer = None
  if intrinsic is not None and isinstance(config, config_lib.NGUConfig):
    intrinsic_optimizer = _adam(
      config.intrinsic.intrinsic_learning_rate, learner
    )

  def init(
    key: types.PRNGKey, params: Optional[types.Params] = None
  ) -> LearnerState:
    key, intrinsic_key = jax.random.split(key)
    # Copies: the step donates its state, which neither holds one buffer twice
    # nor takes the caller's, who may go on acting with it.
    params = jax.tree.map(
      jnp.array, network.init(key) if params is None else params
    )
    intrinsic_params: types.Params = {}
    intrinsic_opt_state: Any = ()
    if intrinsic is not None and intrinsic_optimizer is not None:
      intrinsic_params = intrinsic.init(intrinsic_key)
      intrinsic_opt_state = intrinsic_optimizer.init(intrinsic_params)
    return LearnerState(
      params=params,
      target_params=jax.tree.map(jnp.copy, params),
      opt_state=optimizer.init(params),
      intrinsic_params=intrinsic_params,
      intrinsic_opt_state=intrinsic_opt_state,
      learner_steps=jnp.zeros([], jnp.int32),
    )

  def step(
    state: LearnerState,
    batch: types.SequenceBatch,
    probabilities: jax.Array,
  ) -> Tuple[LearnerState, jax.Array, Metrics]:
    observations = networks_lib.stack_frames(batch.frames, num_stacked)
    grads, (priorities, metrics) = jax.grad(loss_fn, has_aux=True)(
      state.params, state.target_params, batch, observations, probabilities
    )
    updates, opt_state = optimizer.update(grads, state.opt_state, state.params)
    params = optax.apply_updates(state.params, updates)
    metrics['gradient_norm'] = optax.tree.norm(grads)

    intrinsic_params = state.intrinsic_params
    intrinsic_opt_state = state.intrinsic_opt_state
    if intrinsic is not None and intrinsic_optimizer is not None:
      (_, intrinsic_metrics), intrinsic_grads = jax.value_and_grad(
        intrinsic.sequence_loss, has_aux=True
      )(intrinsic_params, observations, batch.action, batch.valid)
      updates, intrinsic_opt_state = intrinsic_optimizer.update(
        intrinsic_grads, intrinsic_opt_state, intrinsic_params
      )
      intrinsic_params = optax.apply_updates(intrinsic_params, updates)
      metrics.update(intrinsic_metrics)

    learner_steps = state.learner_steps + 1
    target_params = optax.periodic_update(
      params, state.target_params, learner_steps, learner.target_update_period
    )
    return (
      LearnerState(
        params=params,
        target_params=target_params,
        opt_state=opt_state,
        intrinsic_params=intrinsic_params,
        intrinsic_opt_state=intrinsic_opt_state,
        learner_steps=learner_steps,
      ),
      priorities,
      metrics,
    )

  # Once is not worth optimizing for, which would take seconds.
  options = {'xla_backend_optimization_level': 0}
  return LearnerCore(jax.jit(init, compiler_options=options), step)
