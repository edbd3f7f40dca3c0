"""Adds the cost of NGU's reward, which dm-acme lacks, to its R2D2 actor.

The networks of the reward run in the same jitted call as the policy. The query
of the episodic memory is a straightforward NumPy implementation: difference,
square, sum and partial sort over all memories.
"""

from typing import Any

import jax
import numpy as np
from acme import adders
from acme.agents.jax import actors, r2d2
from acme.agents.jax.r2d2 import actor as r2d2_actor
from acme.jax import variable_utils

from bt_acme import assembly

_EMBEDDING_SIZE, _NEIGHBORS = 32, 10


class _NGUActor(actors.GenericActor):
  """Rewards each step with the novelty of the preceding observation."""

  memories: np.ndarray  # float32 [M, D]; all slots are in use.
  _inserted = 0

  def observe(self, action: Any, next_timestep: Any) -> None:
    agent_state, embedding, error = self._state
    embedding = np.asarray(embedding)
    distances = np.sum((self.memories - embedding) ** 2, axis=-1)
    nearest = np.partition(distances, _NEIGHBORS)[:_NEIGHBORS]
    kernel = 1e-4 / (nearest / max(nearest.mean(), 1e-8) + 1e-4)
    self.memories[self._inserted % len(self.memories)] = embedding
    self._inserted += 1
    reward = np.float32(float(error) / (np.sqrt(kernel.sum()) + 1e-3))
    self._adder.add(
      action,
      next_timestep._replace(reward=reward),
      extras={'core_state': agent_state.recurrent_state},
    )


def _with_novelty(core: Any, agent: assembly.Agent) -> Any:
  """Extends R2D2's actor core by the features of the intrinsic reward."""
  assert agent.intrinsic is not None
  networks: Any = agent.intrinsic
  params = networks.init(jax.random.key(0))

  def select_action(
    agent_params: Any, inputs: Any, state: Any
  ) -> tuple[Any, Any]:
    action, agent_state = core.select_action(agent_params, inputs, state[0])
    embedding = networks.embed(params['embedding'], inputs.observation)
    error = networks.error(params, inputs.observation)
    return action, (agent_state, embedding, error)

  return core.__class__(
    init=lambda key: (
      core.init(key),
      np.zeros(_EMBEDDING_SIZE, np.float32),
      np.float32(0),
    ),
    select_action=select_action,
    get_extras=lambda state: core.get_extras(state[0]),
  )


def initial_state(networks: r2d2.R2D2Networks) -> Any:
  """Returns the recurrent state at the start of an episode."""
  key, state = jax.random.PRNGKey(0), networks.initial_state
  return state.apply(state.init(key, 1), key, 1)


def make_actor(
  networks: r2d2.R2D2Networks,
  agent: assembly.Agent,
  num_memories: int,
  key: jax.Array,
  policy: Any,
  adder: adders.Adder | None,
  source: Any,
) -> actors.GenericActor:
  """Returns R2D2's actor with NGU's reward.

  Args:
    networks: the networks of dm-acme's R2D2.
    agent: the NGU agent whose networks are also computed.
    num_memories: M, the number of slots, all of which are filled.
    key: the key that seeds the actor.
    policy: the policy of dm-acme's R2D2.
    adder: the adder of dm-acme's builder.
    source: the source of parameters.
  """
  core = r2d2_actor.get_actor_core(
    policy, initial_state(networks), num_epsilons=256
  )
  client = variable_utils.VariableClient(source, '', 400)
  client.update_and_wait()
  actor = _NGUActor(
    _with_novelty(core, agent), key, client, adder, backend='cpu'
  )
  rng = np.random.default_rng(0)
  actor.memories = rng.normal(size=(num_memories, _EMBEDDING_SIZE)).astype(
    np.float32
  )
  return actor
