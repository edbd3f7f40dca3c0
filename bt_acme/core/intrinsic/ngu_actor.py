"""NGU acting: adds the features of each observation to any actor core.

The same call returns the action and the features of the observation (its
embedding and RND error). The reward is computed from them afterwards, because
only the next step needs the reward.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from bt_acme.core import types
from bt_acme.core.behavior_transfer import behavior_core
from bt_acme.core.intrinsic import features as features_lib
from bt_acme.core.intrinsic import networks as intrinsic_lib


class NGUParams(NamedTuple):
  """Parameters of the agent and of the networks of its reward.

  Attributes:
    agent: the parameters of the Q-network.
    embedding: the parameters of f. Every environment has its own copy, which
      does not change during an episode, so that all embeddings in a memory come
      from the same network.
    rnd: the parameters of the RND predictor and target.
  """

  agent: types.Params
  embedding: types.Params
  rnd: types.Params


class NGUActorState(NamedTuple):
  """The actor state of one environment, with the features of the last step."""

  agent: Any
  features: features_lib.Features


def arrange_params(agent: types.Params, intrinsic: types.Params) -> NGUParams:
  """Converts a learner's parameters to the format of this actor core.

  Args:
    agent: the parameters of the Q-network.
    intrinsic: a dict of parts, as returned by `IntrinsicNetworks.init`.

  Returns:
    The parameters of the actor core.
  """
  return NGUParams(
    agent=agent,
    embedding=intrinsic.get('embedding', {}),
    rnd={
      name: part for name, part in intrinsic.items() if name.startswith('rnd')
    },
  )


def wrap(
  actor_core: types.ActorCore, networks: intrinsic_lib.IntrinsicNetworks
) -> types.ActorCore:
  """Adds `features`, a tuple of one `Features`, to an actor core's extras.

  Args:
    actor_core: the agent's core; its previous reward is the intrinsic reward.
    networks: the networks of the intrinsic reward.

  Returns:
    An actor core over `NGUParams`; its `init` passes all arguments after the
    key to the inner core.
  """

  def init(key: types.PRNGKey, *settings: Any) -> NGUActorState:
    return NGUActorState(
      actor_core.init(key, *settings),
      features_lib.Features(
        jnp.zeros([networks.embedding_size], jnp.float32),
        jnp.zeros([], jnp.float32),
      ),
    )

  def select_action(
    params: NGUParams, inputs: types.AgentInput, state: NGUActorState
  ) -> tuple[jax.Array, NGUActorState]:
    action, agent = actor_core.select_action(params.agent, inputs, state.agent)
    features = features_lib.Features(
      networks.embed(params.embedding, inputs.observation),
      networks.error(params.rnd, inputs.observation),
    )
    return action, NGUActorState(agent, features)

  def get_extras(state: NGUActorState) -> dict[str, Any]:
    return {
      **actor_core.get_extras(state.agent),
      'features': (state.features,),
    }

  return types.ActorCore(init, select_action, get_extras)


def as_behavior(
  actor_core: types.ActorCore, epsilon: float, *, is_intrinsic: bool
) -> behavior_core.BehaviorCore:
  """Converts a trained policy to a behavior.

  The policy was trained with its previous reward as an input. If that was an
  intrinsic reward, the behavior's host input, float32 [], provides it.

  Args:
    actor_core: the core of R2D2, or the result of `wrap` for it.
    epsilon: the epsilon of the policy, which acts epsilon-greedily.
    is_intrinsic: whether the policy maximized an intrinsic reward.

  Returns:
    A behavior with the features of the actor core, or () if there are none.
  """

  def step(
    params: types.Params, inputs: behavior_core.BehaviorInput, state: Any
  ) -> tuple[jax.Array, Any]:
    return actor_core.select_action(
      params,
      types.AgentInput(
        observation=inputs.observation,
        prev_action=inputs.prev_action,
        prev_reward=inputs.host_inputs if is_intrinsic else inputs.prev_reward,
        is_first=inputs.is_first,
      ),
      state,
    )

  def features(state: Any) -> Any:
    (only,) = actor_core.get_extras(state).get('features', ((),))
    return only

  return behavior_core.BehaviorCore(
    init=lambda key: actor_core.init(key, jnp.float32(epsilon)),
    step=step,
    features=features,
  )
