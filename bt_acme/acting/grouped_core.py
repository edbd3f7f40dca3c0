"""Acting in selected groups of environments, in one call on the device.

An inference server stores the state of all environments of a run. A call acts
in the groups with pending requests, and can also compute their intrinsic
rewards.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from bt_acme import assembly
from bt_acme.acting import batched_core
from bt_acme.core import types
from bt_acme.core.intrinsic import device_reward

# For each entry of the extras' features, the reward state of all environments,
# or () if no reward is computed from the entry. The tuple is empty if no
# rewards are computed on the server.
RewardStates = tuple[Any, ...]


class GroupedCore:
  """Acts in groups of G environments each; all methods are pure functions."""

  states = ('state', 'rewards')  # As in `BatchedCore`.

  def __init__(self, agent: assembly.Agent, *, group_size: int, rewards: bool):
    """Initializes the actor core.

    Args:
      agent: the agent that acts.
      group_size: G, the number of environments in a group.
      rewards: whether to compute intrinsic rewards.
    """
    self.batched = batched_core.BatchedCore(agent)
    self.matmul_precision = self.batched.matmul_precision
    self._group_size = group_size
    self._specs = agent.reward_specs if rewards else ()

  def init(
    self, epsilons: npt.ArrayLike, seed: int
  ) -> tuple[batched_core.ActingState, RewardStates]:
    """Creates the states of all environments.

    Args:
      epsilons: epsilon of every environment of the run, [M].
      seed: the run's seed.

    Returns:
      The acting state and the reward states, [M, ...].
    """
    states = tuple(
      ()
      if spec is None
      else batched_core.repeat(device_reward.init(*spec), np.size(epsilons))
      for spec in self._specs
    )
    return self.batched.init(epsilons, seed, 0), states

  def shapes(
    self, num: int
  ) -> tuple[types.Params, batched_core.ActingState, RewardStates]:
    """Returns shapes and dtypes of the parameters and of all states.

    Args:
      num: M, the number of environments.
    """
    _, rewards = jax.eval_shape(lambda: self.init(np.zeros(num), 0))
    return (*self.batched.shapes(num), rewards)

  def start(
    self,
    params: types.Params,
    group: jax.Array,
    is_first: jax.Array,
    stack: jax.Array,
    state: batched_core.ActingState,
  ) -> batched_core.ActingState:
    """Starts episodes in one group.

    Args:
      params: the parameters, as returned by `BatchedCore.arrange`.
      group: int32 [], index of the group.
      is_first: bool [G], where an episode starts.
      stack: uint8 [G, H, W, C * S], whole observations.
      state: the state of all environments.

    Returns:
      The new state of all environments.
    """
    rows = self._rows(group[None])
    part = self.batched.start(
      params, is_first, stack, jax.tree.map(lambda x: x[rows], state)
    )
    return jax.tree.map(lambda x, y: x.at[rows].set(y), state, part)

  def step(
    self,
    params: types.Params,
    groups: jax.Array,
    inputs: batched_core.PolicyInput,
    state: batched_core.ActingState,
    rewards: RewardStates,
  ) -> tuple[
    jax.Array, batched_core.Extras, batched_core.ActingState, RewardStates
  ]:
    """Selects actions in some groups.

    Args:
      params: the parameters, as returned by `BatchedCore.arrange`.
      groups: int32 [J], indices of the groups.
      inputs: the inputs of `BatchedCore.step`, [J * G, ...].
      state: the state of all environments.
      rewards: the reward states of all environments.

    Returns:
      Actions int32 [J * G], extras [J * G, ...], and the new states.
    """
    rows = self._rows(groups)
    action, extras, part = self.batched.step(
      params, inputs, jax.tree.map(lambda x: x[rows], state)
    )
    if rewards:
      extras, rewards = self._reward(extras, inputs, rewards, rows)
    core, stack = jax.tree.map(
      lambda x, y: x.at[rows].set(y),
      (state.core, state.stack),
      (part.core, part.stack),
    )
    # Only `start` changes the embedding.
    state = batched_core.ActingState(core, stack, state.embedding)
    return action, extras, state, rewards

  def _rows(self, groups: jax.Array) -> jax.Array:
    """Returns the indices of the groups' environments, int32 [J * G]."""
    starts = groups[:, None] * self._group_size
    return (starts + jnp.arange(self._group_size)).reshape(-1)

  def _reward(
    self,
    extras: batched_core.Extras,
    inputs: batched_core.PolicyInput,
    states: RewardStates,
    rows: jax.Array,
  ) -> tuple[batched_core.Extras, RewardStates]:
    """Replaces features with the rewards computed from them."""
    given, after = [], []
    skipped = extras.get('skipped', np.zeros([1, len(states)], bool))
    for k, (spec, state) in enumerate(zip(self._specs, states, strict=True)):
      features = extras['features'][k]
      if spec is not None:
        features, state = device_reward.step(
          spec.config,
          state,
          rows,
          features,
          jnp.asarray(inputs.is_first),
          jnp.asarray(inputs.is_last),
          skipped[:, k],
        )
      given.append(features)
      after.append(state)
    return {**extras, 'features': tuple(given)}, tuple(after)
