"""R2D2 acting: a recurrent, epsilon-greedy policy in one environment.

Source: Kapturowski et al. 2019 (R2D2). Replay stores the recurrent state from
before the step, so that the learner's unroll starts from the actor's state.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from bt_acme.core import arrays, networks, types
from bt_acme.core import epsilon as epsilon_lib


class R2D2ActorState(NamedTuple):
  """The actor state of one environment.

  The fields from `recurrent_state_tm1` on describe the last step.

  Attributes:
    key: the random key for future steps.
    epsilon: float32 [], the epsilon of this environment.
    recurrent_state: the recurrent state after the last step.
    recurrent_state_tm1: the recurrent state before the last step.
    choice: int32 [], the selected choice.
    greedy_choice: int32 [], the choice with the largest value, after
      `extra_action_margin`.
    probability: float32 [], the probability of selecting `choice`.
    q_values: float32 [A'], the values of all choices.
  """

  key: jax.Array
  epsilon: jax.Array
  recurrent_state: types.LSTMState
  recurrent_state_tm1: types.LSTMState
  choice: jax.Array
  greedy_choice: jax.Array
  probability: jax.Array
  q_values: jax.Array


def make_r2d2(
  network: networks.QNetwork,
  *,
  extra_action_margin: float = 0.0,
  choice_temperature: float = 0.0,
) -> types.ActorCore:
  """Builds the actor core of R2D2, whose `init` takes (key, epsilon).

  Args:
    network: the Q-network.
    extra_action_margin: how far the value of a primitive action must exceed the
      value of an extra action to be preferred (`prefer_extra_actions`).
    choice_temperature: the temperature of `expanded_policy`; 0 for the greedy
      choice.
  """

  def init(key: types.PRNGKey, epsilon: jax.Array) -> R2D2ActorState:
    zero = jnp.zeros([], jnp.int32)
    return R2D2ActorState(
      key=key,
      epsilon=jnp.asarray(epsilon, jnp.float32),
      recurrent_state=network.initial_state(),
      recurrent_state_tm1=network.initial_state(),
      choice=zero,
      greedy_choice=zero,
      probability=jnp.ones([], jnp.float32),
      q_values=jnp.zeros([network.num_choices], jnp.float32),
    )

  def select_action(
    params: types.Params, inputs: types.AgentInput, state: R2D2ActorState
  ) -> tuple[jax.Array, R2D2ActorState]:
    key, *keys = jax.random.split(state.key, 3)
    before = arrays.tree_where(
      inputs.is_first, network.initial_state(), state.recurrent_state
    )
    q_values, after = network.step(params, inputs, before)
    preferences, policy = q_values, None
    if extra_action_margin:
      preferences = prefer_extra_actions(
        q_values, extra_action_margin, network.num_actions
      )
    if choice_temperature:
      policy = expanded_policy(
        preferences, choice_temperature, network.num_actions
      )
    chosen = epsilon_lib.choose(
      preferences, state.epsilon, *keys, policy=policy
    )
    return chosen[0], R2D2ActorState(
      key, state.epsilon, after, before, *chosen, q_values
    )

  return types.ActorCore(init, select_action, _get_extras, _hold)


def prefer_extra_actions(
  q_values: jax.Array, margin: float, num_actions: int
) -> jax.Array:
  """Raises the values of the extra actions for the selection of an action.

    q'_a = q_a + margin max_b |q_b| 1[a >= A]

  Far from a reward, the values of all choices differ by less than the errors of
  a network: one wasted step costs a fraction 1 - γ of the value. With a margin,
  the agent then delegates to the behavior instead of following noise.

  Args:
    q_values: float32 [A + K], the values of A actions and K extra actions.
    margin: the margin, as a fraction of the largest absolute value.
    num_actions: A, the number of actions.

  Returns:
    float32 [A + K].
  """
  is_extra = jnp.arange(q_values.shape[-1]) >= num_actions
  lead = margin * jnp.max(jnp.abs(q_values))
  return jnp.where(is_extra, q_values + lead, q_values)


def expanded_policy(
  q_values: jax.Array, temperature: float, num_actions: int
) -> jax.Array:
  """Returns a Boltzmann policy over the agent's own choice and its behaviors.

    p(a) ∝ e^((q_a - max_b q_b) / (τ max_b |q_b|)), a in {a*, A, .., A + K - 1}

  a* is the primitive action with the largest value.

  Source: Zhang et al. 2023 (arXiv:2302.00935), Sec. 4.2, policy expansion.
  Differs from the paper: the agent's own policy is greedy, and the temperature
  is relative to the values.

  Args:
    q_values: float32 [A + K], the values of A actions and K extra actions.
    temperature: τ, positive.
    num_actions: A, the number of actions.

  Returns:
    float32 [A + K], the probability of each choice.
  """
  choices = jnp.arange(q_values.shape[-1])
  own = jnp.argmax(q_values[:num_actions])
  is_candidate = (choices == own) | (choices >= num_actions)
  largest = jnp.max(jnp.abs(q_values))
  scaled = q_values / jnp.where(largest > 0, largest, 1)  # In [-1, 1].
  logits = jnp.where(is_candidate, scaled / temperature, -jnp.inf)
  return jax.nn.softmax(logits)


def _get_extras(state: R2D2ActorState) -> dict[str, Any]:
  return {
    'recurrent_state': state.recurrent_state_tm1,
    'choice': state.choice,
    'source': jnp.full([], types.OWN, jnp.uint8),
    'probability': state.probability,
    'greedy_choice': state.greedy_choice,
    'q_values': state.q_values,
  }


def _hold(state: R2D2ActorState, held: jax.Array) -> R2D2ActorState:
  return state._replace(
    recurrent_state=arrays.tree_where(
      held, state.recurrent_state_tm1, state.recurrent_state
    )
  )
