"""The learner step of R2D2, NGU and BT.

A step takes a batch and returns the new state, priorities and metrics. The
three agents differ in the configured loss, in whether the networks of an
intrinsic reward are trained too, and in whether a batch contains transitions of
the extra action.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from bt_acme import config as config_lib
from bt_acme.core import frame_stacking, networks, types
from bt_acme.core import loss as loss_lib
from bt_acme.core.intrinsic import networks as intrinsic_lib


class LearnerState(NamedTuple):
  """The state that the learner carries from step to step.

  Attributes:
    params: the parameters of the online Q-network.
    target_params: the parameters of the target network.
    opt_state: the state of the Q-network's optimizer.
    intrinsic_params: the parameters of the intrinsic reward's networks; {}
      without them.
    intrinsic_opt_state: the state of their optimizer; () without them.
    learner_steps: int32 [], the number of steps so far.
    key: the base random key, derived from the seed and never changed. Each step
      derives its own key from this key and the step number.
  """

  params: types.Params
  target_params: types.Params
  opt_state: optax.OptState
  intrinsic_params: types.Params
  intrinsic_opt_state: optax.OptState
  learner_steps: jax.Array
  key: types.PRNGKey


class LearnerCore(NamedTuple):
  """The learner as two pure functions.

  Attributes:
    init: (key, initial params or None for fresh ones) -> LearnerState.
    step: (LearnerState, SequenceBatch, probabilities float32 [B]) ->
      (LearnerState, priorities float32 [B], metrics). Callers jit this function
      and donate the first argument. Besides the metrics of the losses, there
      are `gradient_norm`, the norm before clipping, and `target_copies`, the
      number of times the online network has been copied to the target network.
  """

  init: Callable[..., LearnerState]
  step: Callable[
    [LearnerState, types.SequenceBatch, jax.Array],
    tuple[LearnerState, jax.Array, types.Metrics],
  ]


def make_learner_core(
  network: networks.QNetwork,
  config: config_lib.R2D2Config,
  *,
  num_stacked: int,
  transfer: config_lib.TransferConfig | None = None,
  intrinsic: intrinsic_lib.IntrinsicNetworks | None = None,
) -> LearnerCore:
  """Builds the learner of R2D2, NGU or BT.

  Args:
    network: the Q-network.
    config: the settings of the agent.
    num_stacked: S, the number of frames in an observation.
    transfer: the settings of behavior transfer; None without it.
    intrinsic: the networks of the intrinsic reward; None without one.

  Returns:
    The learner's functions.
  """
  loss = functools.partial(
    loss_lib.q_network_loss, network=network, config=config, transfer=transfer
  )
  init = functools.partial(_init, network, intrinsic, config.learner)
  step = functools.partial(_step, loss, intrinsic, config.learner, num_stacked)
  # Initialization runs only once: optimizing it costs more time than it saves.
  options = {'xla_backend_optimization_level': 0}
  return LearnerCore(
    jax.jit(init, compiler_options=options),
    networks.at_precision(step, config.network.matmul_precision),
  )


def without_key(state: LearnerState) -> LearnerState:
  """Returns the state without its key, which checkpoints store separately.

  Checkpoints written before the state had a key contain the same arrays.
  """
  no_leaves: Any = ()
  return state._replace(key=no_leaves)


def _optimizer(
  learner: config_lib.LearnerConfig,
  intrinsic: intrinsic_lib.IntrinsicNetworks | None = None,
) -> optax.GradientTransformation:
  """Returns the optimizer of the Q-network, or of the intrinsic networks."""
  learning_rate = learner.learning_rate
  if intrinsic is not None:
    learning_rate = intrinsic.config.intrinsic_learning_rate
  return optax.chain(
    optax.clip_by_global_norm(learner.max_gradient_norm),
    optax.adam(learning_rate, eps=learner.adam_epsilon),
  )


def _init(
  network: networks.QNetwork,
  intrinsic: intrinsic_lib.IntrinsicNetworks | None,
  learner: config_lib.LearnerConfig,
  key: types.PRNGKey,
  params: types.Params | None = None,
) -> LearnerState:
  key, intrinsic_key, step_key = jax.random.split(key, 3)
  # The step donates its state, so it needs copies: one buffer cannot be donated
  # twice, and the caller may still use the parameters for acting.
  params = network.init(key) if params is None else params
  params = jax.tree.map(jnp.array, params)
  intrinsic_params: types.Params = {}
  intrinsic_opt_state: optax.OptState = ()
  if intrinsic is not None:
    intrinsic_params = intrinsic.init(intrinsic_key)
    optimizer = _optimizer(learner, intrinsic)
    intrinsic_opt_state = optimizer.init(intrinsic_params)
  return LearnerState(
    params=params,
    target_params=jax.tree.map(jnp.copy, params),
    opt_state=_optimizer(learner).init(params),
    intrinsic_params=intrinsic_params,
    intrinsic_opt_state=intrinsic_opt_state,
    learner_steps=jnp.zeros([], jnp.int32),
    key=step_key,
  )


def _step(
  loss: Callable[..., Any],
  intrinsic: intrinsic_lib.IntrinsicNetworks | None,
  learner: config_lib.LearnerConfig,
  num_stacked: int,
  state: LearnerState,
  batch: types.SequenceBatch,
  probabilities: jax.Array,
) -> tuple[LearnerState, jax.Array, types.Metrics]:
  observations = frame_stacking.stack_frames(batch.frames, num_stacked)
  params, opt_state, gradients, (priorities, metrics) = _descend(
    loss,
    _optimizer(learner),
    state.params,
    state.opt_state,
    state.target_params,
    batch,
    observations,
    probabilities,
    state.learner_steps,
  )
  metrics['gradient_norm'] = optax.tree.norm(gradients)
  state = state._replace(
    params=params,
    opt_state=opt_state,
    learner_steps=state.learner_steps + 1,
  )
  if intrinsic is not None:
    # The key depends only on the step number, so that runs are reproducible.
    key = jax.random.fold_in(state.key, state.learner_steps)
    params, opt_state, _, intrinsic_metrics = _descend(
      intrinsic.sequence_loss,
      _optimizer(learner, intrinsic),
      state.intrinsic_params,
      state.intrinsic_opt_state,
      observations,
      batch.action,
      batch.valid,
      key,
    )
    state = state._replace(
      intrinsic_params=params, intrinsic_opt_state=opt_state
    )
    metrics.update(intrinsic_metrics)
  metrics['target_copies'] = state.learner_steps // learner.target_update_period
  target_params = optax.periodic_update(
    state.params,
    state.target_params,
    state.learner_steps,
    learner.target_update_period,
  )
  return state._replace(target_params=target_params), priorities, metrics


def _descend(
  loss: Callable[..., Any],
  optimizer: optax.GradientTransformation,
  params: types.Params,
  opt_state: optax.OptState,
  *inputs: Any,
) -> tuple[types.Params, optax.OptState, types.Params, Any]:
  """Takes one optimizer step.

  Returns:
    The new parameters, the optimizer's new state, the gradients, and the
    auxiliary outputs of the loss.
  """
  gradients, auxiliary = jax.grad(loss, has_aux=True)(params, *inputs)
  updates, opt_state = optimizer.update(gradients, opt_state, params)
  return optax.apply_updates(params, updates), opt_state, gradients, auxiliary
