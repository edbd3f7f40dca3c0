"""Behavior that acts with an exported, pre-trained policy."""

import copy
import os
import pathlib
from collections.abc import Sequence

import jax
import numpy as np
from absl import logging

from bt_acme import config as config_lib
from bt_acme.acting import behavior
from bt_acme.behaviors import exported_folder, lookup
from bt_acme.config import checks
from bt_acme.core import epsilon as epsilon_lib
from bt_acme.core import r2d2_actor, types
from bt_acme.core.behavior_transfer import behavior_core
from bt_acme.core.intrinsic import host_reward, ngu_actor
from bt_acme.core.intrinsic import reward_statistics as reward_lib


class Exported(behavior.Behavior):
  """A behavior from a directory written by `export`.

  Attributes:
    folder: the directory of the behavior.
    source: the directory, name or address from which it was loaded.
    name: the name of the directory.
    agent: the agent that was trained.
    learned: its policy, which consists of the next three attributes.
    variables: the parameters of the agent, NumPy arrays.
    statistics: the statistics of the agent's intrinsic reward; None if the
      agent has no intrinsic reward.
    actor_steps: the number of actor steps of training.
    params_sha256: the checksum of the parameter file.

  Example:
    ```python
    behavior = bt_acme.behaviors.Exported('minigrid-explorer', epsilon=0.1)
    print(behavior.actor_steps)
    ```
  """

  def __init__(
    self,
    folder: str,
    *,
    epsilon: float = 0.01,
    reward_input: str = 'recompute',
    setting: str = 'behavior',
  ):
    """Loads and checks a behavior.

    Args:
      folder: a directory written by `export`, the workdir of a pre-training
        run, the name of a behavior that comes with the package
        (`bt_acme.behaviors.list`), or the address of an archive with its
        checksum (see `bt_acme.load_behavior`).
      epsilon: the epsilon of the epsilon-greedy policy. A run of
        `bt_acme.transfer` replaces it by its setting `behavior_epsilon`, and
        `reward_input` by `behavior_reward_input`. `bt_acme.evaluate` and videos
        use neither: they have their own epsilon, and recompute the reward.
      reward_input: `recompute` computes the intrinsic reward with frozen
        networks, as in training; `zero` supplies zeros, which is cheaper.
      setting: the name of the user's setting for the directory, for errors.

    Raises:
      ValueError: if the directory is missing, incomplete or damaged, if the
        archive cannot be downloaded or has another checksum, or if a setting is
        invalid.
    """
    self.source = str(folder)
    folder = lookup.resolve(self.source, setting=setting)
    # The caller may change directory.
    self.folder = str(pathlib.Path(folder).absolute())
    self.name = os.path.basename(os.path.abspath(folder))
    self.agent, self.learned, self.params_sha256 = exported_folder.read(
      folder, setting=setting
    )
    self.actor_steps, self.variables, self.statistics = self.learned
    self._setting = setting
    self._act_as(epsilon, reward_input)

  def acting(self, *, epsilon: float, reward_input: str) -> 'Exported':
    """Returns a copy with other settings and shared parameters."""
    copied = copy.copy(self)
    copied._setting = 'behavior'
    copied._act_as(epsilon, reward_input)
    return copied

  def _act_as(self, epsilon: float, reward_input: str) -> None:
    epsilon_lib.check(epsilon)
    settings = config_lib.TransferConfig.__dataclass_fields__
    checks.check_value(
      'reward_input', reward_input, settings['behavior_reward_input']
    )
    self._epsilon = epsilon
    has_rewards = self.statistics is not None
    self._recompute = has_rewards and reward_input == 'recompute'
    if self.agent.intrinsic is not None and not has_rewards:
      logging.warning(
        '%s=%r has no statistics of its intrinsic reward. Its policy observes '
        'zeros instead of rewards.',
        self._setting,
        self.folder,
      )

  def validate(
    self, observation_shape: Sequence[int], action_spec: behavior.ActionSpec
  ) -> None:
    """Raises ValueError unless the environment matches the trained agent."""
    spec = self.agent.spec
    for what, own, other in (
      ('observations', spec.observation_shape, tuple(observation_shape)),
      ('actions', spec.num_actions, action_spec),
    ):
      if own != other:
        raise ValueError(
          f'{self._setting}={self.folder!r} expects {what} {own} '
          f'(in {spec.name}), but this environment has {other}. Use an '
          'environment with the same observation shape and actions.'
        )

  def make_core(self, num_actions: int) -> behavior_core.BehaviorCore:
    """Returns the core of the policy."""
    del num_actions
    core = r2d2_actor.make_r2d2(self.agent.network)
    if self._recompute:
      core = self.agent.actor_core()
    is_intrinsic = self.agent.intrinsic is not None
    return ngu_actor.as_behavior(core, self._epsilon, is_intrinsic=is_intrinsic)

  def params(self) -> types.Params:
    """Returns the parameters of the core."""
    if self._recompute:
      return self.agent.actor_params(self.variables)
    return self.variables.agent

  def intrinsic(self) -> reward_lib.RewardSpec | None:
    """Returns the spec of the intrinsic reward; None if not recomputed."""
    if self.agent.intrinsic is None or not self._recompute:
      return None
    return reward_lib.RewardSpec(self.agent.intrinsic.config, self.statistics)

  def make_host(
    self, action_spec: behavior.ActionSpec, seeds: Sequence[int]
  ) -> behavior.Host:
    """Returns the host that supplies the intrinsic reward."""
    del action_spec
    spec = self.intrinsic()
    return _ZeroHost() if spec is None else _RewardHost(spec, len(seeds))

  def host_input_shapes(self) -> jax.ShapeDtypeStruct:
    """Returns the shape of the intrinsic reward."""
    return jax.ShapeDtypeStruct((), np.float32)


class _RewardHost(behavior.Host):
  """Recomputes the intrinsic reward that the policy received in training.

  The rewards and the episodic memories are the same as in training.
  """

  def __init__(self, spec: reward_lib.RewardSpec, num_environments: int):
    self._reward = host_reward.HostReward(
      spec.config, num_environments, spec.statistics
    )
    self._last = np.zeros(num_environments, np.float32)
    self._is_first = np.ones(num_environments, bool)
    self._is_last = np.zeros(num_environments, bool)
    self._skipped = np.zeros(num_environments, bool)

  def inputs(self, *shown: np.ndarray) -> np.ndarray:
    *_, self._is_first, self._is_last = shown
    return np.where(self._is_first, 0, self._last).astype(np.float32)

  def skip(self, environments: np.ndarray) -> None:
    self._skipped = environments

  def update(self, features: behavior.Features) -> None:
    self._last = self._reward.take(
      features, self._is_first, self._is_last, self._skipped
    )

  def state(self) -> behavior.HostState:
    return {'reward': self._reward.state(), 'last': self._last}

  def restore(self, state: behavior.HostState) -> None:
    self._reward.restore(state['reward'])
    self._last = state['last']


class _ZeroHost(behavior.Host):
  """Supplies zeros instead of the intrinsic reward."""

  def inputs(self, *shown: np.ndarray) -> np.ndarray:
    return np.zeros(len(shown[-1]), np.float32)
