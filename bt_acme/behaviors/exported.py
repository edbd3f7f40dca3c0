"""A pre-trained policy as a behavior."""

import copy
import pathlib
from typing import Optional, Sequence

import numpy as np

from bt_acme.acting import behavior
from bt_acme.behaviors import exported_folder
from bt_acme.core import r2d2_actor, types
from bt_acme.core.behavior_transfer import behavior_core
from bt_acme.core.intrinsic import host as host_reward
from bt_acme.core.intrinsic import ngu_actor
from bt_acme.core.intrinsic import reward as reward_lib


class Exported(behavior.Behavior):
  """A behavior from a folder that `export` wrote.

  Attributes:
    folder: the folder that it was read from.
    name: the folder's name.
    agent: the agent that the policy was in training.
    variables: the agent's parameters, NumPy arrays.
    statistics: the statistics of its intrinsic reward; None without one.
    actor_steps: the number of actor steps that it was trained for.
    params_sha256: the checksum of the file of its parameters.
  """

  def __init__(
    self,
    folder: str,
    *,
    epsilon: float = 0.01,
    reward_input: str = 'recompute',
    setting: str = 'behavior',
  ):
    """Loads and checks the folder.

    Args:
      folder: a folder that `export` wrote.
      epsilon: the policy's epsilon, with which it acts epsilon-greedily.
      reward_input: `recompute` computes its intrinsic reward with frozen
        networks, as in training; `zero` supplies zeros, which is cheaper.
      setting: the name of the user's setting for the folder, for errors.

    Raises:
      ValueError: if the folder is missing, incomplete or damaged.
    """
    self.folder = str(folder)
    self.name = pathlib.Path(folder).name
    policy = exported_folder.read(self.folder, setting=setting)
    self.agent = policy.agent
    self.variables = policy.variables
    self.statistics = policy.statistics
    self.actor_steps = policy.actor_steps
    self.params_sha256 = policy.params_sha256
    self._setting = setting
    self._act_as(epsilon, reward_input)

  def acting(self, *, epsilon: float, reward_input: str) -> 'Exported':
    """Returns this behavior with other settings; both share the parameters."""
    copied = copy.copy(self)
    copied._setting = 'behavior'
    copied._act_as(epsilon, reward_input)
    return copied

  def _act_as(self, epsilon: float, reward_input: str) -> None:
    self._epsilon = epsilon
    self._recompute = (
      reward_input == 'recompute' and self.statistics is not None
    )

  def validate(
    self, observation_shape: Sequence[int], action_spec: behavior.ActionSpec
  ) -> None:
    spec = self.agent.spec
    for what, own, other in (
      ('observations', spec.observation_shape, tuple(observation_shape)),
      ('actions', spec.num_actions, action_spec),
    ):
      if own != other:
        raise ValueError(
          f'{self._setting}={self.folder!r} was made for {what} {own} '
          f'(in {spec.name}) and this environment has {other}: use one of the '
          'same observation shape and action set.'
        )

  def make_core(self, num_actions: int) -> behavior_core.BehaviorCore:
    del num_actions
    core = (
      self.agent.actor_core()
      if self._recompute
      else r2d2_actor.make_r2d2(self.agent.network)
    )
    return ngu_actor.as_behavior(core, self._epsilon)

  def params(self) -> types.Params:
    if self._recompute:
      return self.agent.actor_params(self.variables)
    return self.variables.agent

  def intrinsic(self) -> Optional[reward_lib.RewardSpec]:
    if self.agent.intrinsic is None or not self._recompute:
      return None
    return reward_lib.RewardSpec(self.agent.intrinsic.config, self.statistics)

  def make_host(
    self, action_spec: behavior.ActionSpec, seeds: Sequence[int]
  ) -> behavior.Host:
    del action_spec
    spec = self.intrinsic()
    return _ZeroHost() if spec is None else _RewardHost(spec, len(seeds))


class _RewardHost(behavior.Host):
  """Recomputes the intrinsic reward that the policy was trained to see.

  Observations are rewarded and remembered as they were in training.
  """

  def __init__(self, spec: reward_lib.RewardSpec, num_environments: int):
    self._reward = host_reward.HostReward(
      spec.config, num_environments, spec.statistics
    )
    self._last = np.zeros(num_environments, np.float32)
    self._is_first = np.ones(num_environments, bool)
    self._is_last = np.zeros(num_environments, bool)

  def inputs(
    self,
    observation: np.ndarray,
    prev_action: np.ndarray,
    is_first: np.ndarray,
    is_last: np.ndarray,
  ) -> np.ndarray:
    self._is_first, self._is_last = is_first, is_last
    return np.where(is_first, 0, self._last).astype(np.float32)

  def update(self, features: behavior.Features) -> None:
    self._last = self._reward.take(features, self._is_first, self._is_last)

  def state(self) -> behavior.HostState:
    return {'reward': self._reward.state(), 'last': self._last}

  def restore(self, state: behavior.HostState) -> None:
    self._reward.restore(state['reward'])
    self._last = state['last']


class _ZeroHost(behavior.Host):
  """Supplies zeros in place of the intrinsic reward."""

  def inputs(
    self,
    observation: np.ndarray,
    prev_action: np.ndarray,
    is_first: np.ndarray,
    is_last: np.ndarray,
  ) -> np.ndarray:
    return np.zeros(len(is_first), np.float32)
