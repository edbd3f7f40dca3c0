"""R2D2 acting: a recurrent, epsilon-greedy policy of one environment.

Source: Kapturowski et al. 2019 (R2D2). The state stored for replay is the one
before the step, so that the learner's unroll starts where the actor stood.
"""

from typing import Any, Dict, NamedTuple, Tuple

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from bt_acme.core import networks, types


class R2D2ActorState(NamedTuple):
  """One environment's actor; the last four describe the step just taken."""

  key: jax.Array
  epsilon: jax.Array  # float32 []
  recurrent_state: types.LSTMState  # behind the step
  recurrent_state_tm1: types.LSTMState  # before it
  choice: jax.Array  # int32 []
  greedy_choice: jax.Array  # int32 []
  probability: jax.Array  # float32 [], of the choice


def epsilon_ladder(
  num_environments: int, *, base: float, alpha: float
) -> npt.NDArray[np.float32]:
  """epsilon_i = base^(1 + alpha i / (N - 1)) (Horgan et al. 2018).

  Args:
    num_environments: N, over all actors.
    base: epsilon of the most exploring one.
    alpha: how steeply the others fall.

  Returns:
    float32 [N], one fixed epsilon an environment; base alone for N = 1.
  """
  steps = np.arange(num_environments) / max(num_environments - 1, 1)
  return (base ** (1 + alpha * steps)).astype(np.float32)


def where_first(is_first: jax.Array, fresh: Any, state: Any) -> Any:
  """`fresh` where an episode starts, else `state`, leaf by leaf."""
  return jax.tree.map(lambda x, y: jnp.where(is_first, x, y), fresh, state)


def make_r2d2(network: networks.QNetwork) -> types.ActorCore:
  """The actor core of R2D2; `init` takes (key, epsilon)."""

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
    )

  def select_action(
    params: types.Params, inputs: types.AgentInput, state: R2D2ActorState
  ) -> Tuple[jax.Array, R2D2ActorState]:
    key, explore_key, choice_key = jax.random.split(state.key, 3)
    before = where_first(
      inputs.is_first, network.initial_state(), state.recurrent_state
    )
    q_values, after = network.step(params, inputs, before)
    greedy = jnp.argmax(q_values).astype(jnp.int32)
    explore = jax.random.uniform(explore_key) < state.epsilon
    random = jax.random.randint(choice_key, [], 0, network.num_choices)
    choice = jnp.where(explore, random, greedy)
    on_greedy = jnp.where(choice == greedy, 1 - state.epsilon, 0.0)
    return choice, R2D2ActorState(
      key=key,
      epsilon=state.epsilon,
      recurrent_state=after,
      recurrent_state_tm1=before,
      choice=choice,
      greedy_choice=greedy,
      probability=on_greedy + state.epsilon / network.num_choices,
    )

  def get_extras(state: R2D2ActorState) -> Dict[str, Any]:
    return {
      'recurrent_state': state.recurrent_state_tm1,
      'choice': state.choice,
      'source': jnp.full([], types.OWN, jnp.uint8),
      'probability': state.probability,
      'greedy_choice': state.greedy_choice,
    }

  def hold(state: R2D2ActorState, held: jax.Array) -> R2D2ActorState:
    return state._replace(
      recurrent_state=jax.tree.map(
        lambda before, after: jnp.where(held, before, after),
        state.recurrent_state_tm1,
        state.recurrent_state,
      )
    )

  return types.ActorCore(init, select_action, get_extras, hold)
