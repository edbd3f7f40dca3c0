"""A pre-trained policy as a folder, and that folder as a behavior.

The folder holds `behavior.json` (configuration, environment, running
statistics, a checksum) and `params.npz`. It is moved into place when whole.
"""

# `agent` and this package import each other: annotations must not look yet.
from __future__ import annotations

import hashlib
import json
import os
import pathlib
import shutil
import tempfile
from typing import Any, Dict, Mapping, Optional, Sequence, Tuple, Union

import jax
import numpy as np

from bt_acme import assembly
from bt_acme import config as config_lib
from bt_acme.acting import behavior as base
from bt_acme.core import r2d2_actor, weight_transfer
from bt_acme.core.behavior_transfer import behavior_core
from bt_acme.core.intrinsic import ngu_actor
from bt_acme.core.intrinsic import reward as reward_lib

_FORMAT = 1
_CARD, _PARAMS = 'behavior.json', 'params.npz'
_SEPARATOR = '::'
_CONFIGS = {
  'R2D2Config': config_lib.R2D2Config,
  'NGUConfig': config_lib.NGUConfig,
}


def _flatten(tree: Mapping[str, Any], prefix: str = '') -> Dict[str, Any]:
  flat = {}
  for name, value in tree.items():
    if isinstance(value, Mapping):
      flat.update(_flatten(value, f'{prefix}{name}{_SEPARATOR}'))
    else:
      flat[prefix + name] = np.asarray(value)
  return flat


def _unflatten(flat: Mapping[str, np.ndarray]) -> Dict[str, Any]:
  tree: Dict[str, Any] = {}
  for path, value in flat.items():
    *parents, name = path.split(_SEPARATOR)
    node = tree
    for parent in parents:
      node = node.setdefault(parent, {})
    node[name] = value
  return tree


def _checksum(path: pathlib.Path) -> str:
  return hashlib.sha256(path.read_bytes()).hexdigest()


def export(
  folder: str,
  *,
  agent: assembly.Agent,
  variables: assembly.Variables,
  statistics: Optional[reward_lib.IntrinsicStatistics],
  actor_steps: int,
) -> None:
  """Writes a behavior, replacing one that is there.

  Args:
    folder: to write.
    agent: R2D2 or NGU.
    variables: its parameters.
    statistics: merged over its actors, in pre-training; None without.
    actor_steps: taken in training.
  """
  target = pathlib.Path(folder)
  target.parent.mkdir(parents=True, exist_ok=True)
  temporary = pathlib.Path(
    tempfile.mkdtemp(dir=target.parent, prefix=f'.{target.name}-')
  )
  params = {'agent': variables.agent, 'intrinsic': variables.intrinsic}
  np.savez(temporary / _PARAMS, **_flatten(params))
  card = {
    'format': _FORMAT,
    'agent': type(agent.config).__name__,
    'config': config_lib.to_dict(agent.config),
    'environment': agent.spec._asdict(),
    'statistics': None
    if statistics is None
    else {k: np.asarray(v).tolist() for k, v in statistics._asdict().items()},
    'actor_steps': int(actor_steps),
    'params_sha256': _checksum(temporary / _PARAMS),
  }
  (temporary / _CARD).write_text(json.dumps(card, indent=2) + '\n')
  os.chmod(temporary, 0o755)
  if target.exists():
    old = temporary.with_name(temporary.name + '-old')
    os.rename(target, old)
    os.rename(temporary, target)
    shutil.rmtree(old)
  else:
    os.rename(temporary, target)


class _RewardHost(base.Host):
  """Recomputes the intrinsic reward that the policy was trained to see."""

  def __init__(
    self,
    config: config_lib.IntrinsicConfig,
    statistics: reward_lib.IntrinsicStatistics,
    num_environments: int,
  ):
    self._reward = reward_lib.IntrinsicReward(config, num_environments)
    # As in training, where they were rewarded and remembered, or were not.
    self._takes_last = config.reward_observation == 'next'
    self._reward.restore(statistics)
    self._last = np.zeros(num_environments, np.float32)
    self._is_first = np.ones(num_environments, bool)
    self._active = np.ones(num_environments, bool)

  def feed(
    self,
    observation: np.ndarray,
    prev_action: np.ndarray,
    is_first: np.ndarray,
    is_last: np.ndarray,
  ) -> np.ndarray:
    self._is_first = is_first
    self._active = ~is_last | self._takes_last
    return np.where(is_first, 0, self._last).astype(np.float32)

  def digest(
    self, features: Union[ngu_actor.Features, reward_lib.Rewarded]
  ) -> None:
    if isinstance(features, reward_lib.Rewarded):
      self._last = self._reward.take(features)
      return
    self._last = self._reward.step(
      np.asarray(features.embedding),
      np.asarray(features.error),
      self._is_first,
      self._active,
    )


class _ZeroHost(base.Host):
  """Feeds zeros in place of the intrinsic reward."""

  def feed(
    self,
    observation: np.ndarray,
    prev_action: np.ndarray,
    is_first: np.ndarray,
    is_last: np.ndarray,
  ) -> np.ndarray:
    return np.zeros(len(is_first), np.float32)


class Exported(base.Behavior):
  """A behavior from a folder that `export` wrote.

  Attributes:
    folder: where it lies.
    agent: what it was in training.
    variables: its parameters, NumPy.
    statistics: of its intrinsic reward; None without.
    actor_steps: that it was trained for.
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
      folder: that `export` wrote.
      epsilon: of its epsilon-greedy policy.
      reward_input: `recompute` its intrinsic reward with frozen networks, as in
        training, or feed `zero`, which is cheaper.
      setting: what the user calls the folder.

    Raises:
      ValueError: if the folder is missing, incomplete or damaged.
    """
    path = pathlib.Path(folder)
    self.folder = str(folder)
    self.name = path.name
    self._setting = setting
    for name in (_CARD, _PARAMS):
      if not (path / name).is_file():
        raise ValueError(
          f'{setting}={folder!r} has no {name}: name a folder that run_ngu.py '
          'exported whole.'
        )
    try:
      card = json.loads((path / _CARD).read_text())
      file_format = card['format']
      if file_format == _FORMAT:
        self._read(card)
        checksum = card['params_sha256']
        # The parameters that such an agent has; nothing is computed.
        expected = jax.eval_shape(self._init)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
      raise ValueError(
        f'{setting}={folder!r}: {_CARD} is damaged ({type(error).__name__}: '
        f'{error}); export it again.'
      ) from error
    if file_format != _FORMAT:
      raise ValueError(
        f'{setting}={folder!r} has format {file_format!r}; this version reads '
        f'{_FORMAT}: export it again.'
      )
    if _checksum(path / _PARAMS) != checksum:
      raise ValueError(
        f'{setting}={folder!r}: {_PARAMS} is incomplete or damaged (its '
        'checksum differs); export it again.'
      )
    with np.load(path / _PARAMS) as params:
      tree = {'agent': {}, 'intrinsic': {}, **_unflatten(dict(params))}
    differences = weight_transfer.mismatches(tree, expected)
    if differences:
      raise ValueError(
        f'{setting}={folder!r}: {_PARAMS} does not fit {_CARD}: {differences}: '
        'export it again.'
      )
    if not all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(tree)):
      raise ValueError(
        f'{setting}={folder!r}: {_PARAMS} holds values that are not finite: '
        'train it anew.'
      )
    self.variables = assembly.Variables(tree['agent'], tree['intrinsic'])
    self._epsilon = epsilon
    self._recompute = (
      reward_input == 'recompute' and self.statistics is not None
    )

  def _read(self, card: Mapping[str, Any]) -> None:
    """Takes what the card says; raises whatever it is that is wrong with it."""
    config_class = _CONFIGS[card['agent']]
    shape = tuple(
      int(size) for size in card['environment']['observation_shape']
    )
    self.agent = assembly.Agent(
      config_lib.from_dict(config_class, card['config']),
      assembly.EnvironmentSpec(
        **{**card['environment'], 'observation_shape': shape}
      ),
    )
    self.statistics = None
    if card['statistics'] is not None:
      if self.agent.intrinsic is None:
        raise ValueError('statistics of an agent without intrinsic reward')
      self.statistics = reward_lib.IntrinsicStatistics(
        **{k: np.float64(v) for k, v in card['statistics'].items()}
      )
      for name, value in self.statistics._asdict().items():
        if not (np.ndim(value) == 0 and np.isfinite(value)):
          raise ValueError(f'{name} is {value}, and must be a finite number')
    self.actor_steps = int(card['actor_steps'])

  def _init(self) -> Dict[str, Any]:
    """Fresh parameters, arranged as those of the file are."""
    key, intrinsic = jax.random.key(0), self.agent.intrinsic
    return {
      'agent': self.agent.network.init(key),
      'intrinsic': {} if intrinsic is None else intrinsic.init(key),
    }

  def validate(
    self, observation_shape: Sequence[int], action_spec: base.ActionSpec
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

  def make_core(self, num_actions: int) -> behavior_core.Behavior:
    del num_actions
    core = (
      self.agent.actor_core()
      if self._recompute
      else r2d2_actor.make_r2d2(self.agent.network)
    )
    return ngu_actor.as_behavior(core, self._epsilon)

  def params(self) -> Any:
    if self._recompute:
      return assembly.ngu_params(self.variables)
    return self.variables.agent

  def intrinsic(
    self,
  ) -> Optional[
    Tuple[config_lib.IntrinsicConfig, reward_lib.IntrinsicStatistics]
  ]:
    if not self._recompute:
      return None
    assert isinstance(self.agent.config, config_lib.NGUConfig)
    assert self.statistics is not None
    return self.agent.config.intrinsic, self.statistics

  def make_host(
    self, action_spec: base.ActionSpec, seeds: Sequence[int]
  ) -> base.Host:
    del action_spec
    reward = self.intrinsic()
    return _RewardHost(*reward, len(seeds)) if reward else _ZeroHost()
