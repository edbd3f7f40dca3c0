"""NGU acting: any actor core that also embeds what it sees.

The features of each observation (its embedding, its RND error) come out of the
same call as the action; the reward that they make is computed behind it, since
the episodic memory is work that only the next step needs.
"""

from typing import Any, Dict, NamedTuple, Tuple

import jax
import jax.numpy as jnp

from bt_acme.core import r2d2_actor, types
from bt_acme.core.behavior_transfer import behavior_core
from bt_acme.core.intrinsic import networks as intrinsic_lib


class NGUParams(NamedTuple):
  """Parameters of the agent, and of the networks behind its reward.

  Attributes:
    agent: of the Q-network.
    embedding: of f; frozen for the length of an episode, so that one memory
      holds one network's embeddings: every environment has its own copy.
    rnd: of the RND predictor and target.
  """

  agent: types.Params
  embedding: types.Params
  rnd: types.Params


class Features(NamedTuple):
  """What the intrinsic reward of one observation is made of."""

  embedding: jax.Array  # float32 [D]
  error: jax.Array  # float32 [], of RND


class NGUActorState(NamedTuple):
  agent: Any
  features: Features


def wrap(
  actor_core: types.ActorCore, networks: intrinsic_lib.IntrinsicNetworks
) -> types.ActorCore:
  """Adds `features` to an actor core's extras.

  Args:
    actor_core: the agent's; its previous reward is the intrinsic one.
    networks: behind the intrinsic reward.

  Returns:
    An actor core over `NGUParams`, whose `init` passes what follows the key on.
  """

  def init(key: types.PRNGKey, *settings: Any) -> NGUActorState:
    return NGUActorState(
      actor_core.init(key, *settings),
      Features(
        jnp.zeros([networks.embedding_size], jnp.float32),
        jnp.zeros([], jnp.float32),
      ),
    )

  def select_action(
    params: NGUParams, inputs: types.AgentInput, state: NGUActorState
  ) -> Tuple[jax.Array, NGUActorState]:
    action, agent = actor_core.select_action(params.agent, inputs, state.agent)
    features = Features(
      networks.embed(params.embedding, inputs.observation),
      networks.error(params.rnd, inputs.observation),
    )
    return action, NGUActorState(agent, features)

  def get_extras(state: NGUActorState) -> Dict[str, Any]:
    return {
      **actor_core.get_extras(state.agent),
      'features': state.features,
    }

  return types.ActorCore(init, select_action, get_extras)


def as_behavior(
  actor_core: types.ActorCore, epsilon: float
) -> behavior_core.Behavior:
  """A pre-trained policy as a behavior.

  Its previous intrinsic reward, an input that it was trained with, is the
  feed: float32 [].

  Args:
    actor_core: of R2D2, or that `wrap` made of it.
    epsilon: of its epsilon-greedy policy.

  Returns:
    A behavior whose features are those of the actor core.
  """

  def step(
    params: types.Params, inputs: behavior_core.BehaviorInput, state: Any
  ) -> Tuple[jax.Array, Any]:
    return actor_core.select_action(
      params,
      types.AgentInput(
        observation=inputs.observation,
        prev_action=inputs.prev_action,
        prev_reward=inputs.feed,
        is_first=inputs.is_first,
      ),
      state,
    )

  return behavior_core.Behavior(
    init=lambda key: actor_core.init(key, jnp.float32(epsilon)),
    step=step,
    features=lambda state: actor_core.get_extras(state).get('features', ()),
  )


def where_first(is_first: jax.Array, fresh: Any, current: Any) -> Any:
  """Refreshes the embedding of the environments whose episode starts.

  Args:
    is_first: bool [N].
    fresh: one network's parameters.
    current: the same with a leading axis [N].

  Returns:
    Parameters with a leading axis [N].
  """
  return jax.vmap(r2d2_actor.where_first, in_axes=(0, None, 0))(
    is_first, fresh, current
  )
