"""Records which run a workdir belongs to, and whether the run is completed.

`config.json` contains the settings of the run. The same command on the same
directory resumes the run; a command with other settings is refused.
`completed.json` is written when the run has used up its budget.
"""

import dataclasses
import json
import os
import pathlib
from collections.abc import Mapping
from typing import Any

from bt_acme import config as config_lib
from bt_acme import files, untrusted
from bt_acme.config import run as run_config
from bt_acme.config import transfer
from bt_acme.runtime import workdir_lock

_FILE = 'config.json'
_COMPLETED_FILE = 'completed.json'
# The key for the checksums of the parameters that were passed to a run. The
# checksums are compared instead of the directories of these parameters, which
# the other two keys contain.
PARAMS = 'params_sha256'
_BEHAVIORS, _WEIGHTS = 'behaviors', 'weights'
# Settings that may differ when a run is resumed. The values of the first group
# at the start of the run are recorded.
_RECORDED = (
  'num_evaluators',
  'evaluation_period',
  'evaluation_episodes',
  'checkpoint_period',
)
_MAY_CHANGE = (
  *_RECORDED,
  'lp_launch_type',  # Runs in one process are told apart by `engine`.
  *('ray_address', 'ray_python', 'placement'),
  'max_actor_steps',
  *('snapshot_steps', 'max_episode_rows'),
  *('open_ports', 'replay_port'),
  'inference',
  'max_restarts',
  'watchdog_seconds',
  'num_devices',
  'checkpoint_replay',
  'codec',  # A saved replay records its own codec.
)


def claim(
  run: run_config.RunConfig,
  config: config_lib.R2D2Config,
  extra: Mapping[str, Any] | None = None,
) -> bool:
  """Claims the workdir for a run, or recognizes it as the run's own.

  Args:
    run: the run.
    config: the agent's configuration.
    extra: additional identity of the run, such as its behaviors and initial
      weights.

  Returns:
    Whether the run was started before and is now resumed.

  Raises:
    ValueError: if the workdir was created with other settings, which the
      message names. Nothing is written in that case.
  """
  identity = _identity(run, config, extra or {})
  folder = pathlib.Path(run.workdir)
  path = folder / _FILE
  # Unlike pathlib, os.path does not raise if the name is too long.
  if os.path.isfile(path):
    recorded = read_identity(run.workdir)
    _check_same(run.workdir, _with_defaults(recorded, type(config)), identity)
    # The parameters may have been moved to other directories.
    folders = {
      name: identity[name]
      for name in (_BEHAVIORS, _WEIGHTS)
      if PARAMS in recorded and name in identity
    }
    if {**recorded, **folders} != recorded:
      files.write_json(path, {**recorded, **folders})
    return True
  if os.path.isdir(folder):
    # An attempt to claim the directory may have been interrupted.
    others = [
      path
      for path in folder.iterdir()
      if path.name != workdir_lock.FILE and not files.is_leftover(path)
    ]
    if others:
      raise ValueError(
        f'workdir={run.workdir!r} is not empty and does not contain a run. '
        'Choose an empty or new directory.'
      )
  recorded = {name: getattr(run, name) for name in _RECORDED}
  try:
    files.write_json(path, {**identity, 'began_with': recorded})
  except OSError as error:
    raise ValueError(
      f'workdir={run.workdir!r} is not writable: {error}. Choose another '
      'workdir.'
    ) from error
  return False


def read_identity(workdir: str) -> dict[str, Any]:
  """Reads the settings that `claim` wrote.

  Raises:
    ValueError: if the workdir does not contain a run, or its record is damaged.
  """
  path = pathlib.Path(workdir) / _FILE
  try:
    identity: dict[str, Any] = untrusted.read_json(path)
    parts = [identity['run'], identity['config'], identity.get(_WEIGHTS, {})]
    parts.append(identity['config'].get('transfer', {}))
    if not all(isinstance(x, dict) for x in parts):
      raise ValueError('it is incomplete')
    _convert(identity)
    names = [identity['agent'], *identity.get(_BEHAVIORS, ())]
    if not all(isinstance(x, str) for x in names):
      raise ValueError('it is incomplete')
  except OSError as error:
    raise ValueError(
      f'workdir={workdir!r} does not contain a run. Pass the workdir of a run.'
    ) from error
  except (AttributeError, ValueError, KeyError, TypeError) as error:
    raise ValueError(
      f'workdir={workdir!r}: {_FILE} is damaged '
      f'({untrusted.one_line(error)}). Choose another workdir.'
    ) from error
  return identity


def _convert(identity: dict[str, Any]) -> None:
  """Converts a record of an earlier version.

  It may contain behaviors as flags, and settings without any effect.
  """
  settings = identity['config'].get('transfer', {})
  for name in transfer.unused(settings):
    settings.pop(name, None)
  flags = identity.get(_BEHAVIORS)
  if isinstance(flags, dict):
    names = str(flags['behavior']).split(',')
    weights = str(flags.get('behavior_weights', ''))
    identity[_BEHAVIORS] = [name.strip() for name in names]
    identity['behavior_weights'] = [float(x) for x in weights.split(',') if x]


def run_of(workdir: str, identity: Mapping[str, Any]) -> run_config.RunConfig:
  """Returns the configuration of a recorded run.

  Settings that are not recorded have their defaults.

  Args:
    workdir: the directory of the run.
    identity: the result of `read_identity`.
  """
  return run_config.RunConfig(
    **{
      **identity['run'],
      **identity.get('began_with', {}),
      'workdir': workdir,
    }
  )


def extra(identity: Mapping[str, Any]) -> dict[str, Any]:
  """Returns the additional identity that was passed to `claim`."""
  own = ('agent', 'run', 'config', 'began_with')
  return {name: value for name, value in identity.items() if name not in own}


def mark_completed(run: run_config.RunConfig) -> None:
  """Records that the run has used up its budget."""
  path = pathlib.Path(run.workdir) / _COMPLETED_FILE
  files.write_json(path, {'max_actor_steps': run.max_actor_steps})


def is_completed(run: run_config.RunConfig) -> bool:
  """Returns whether the run has used up this budget, or a larger one."""
  return completed_steps(run.workdir) >= run.max_actor_steps


def completed_steps(workdir: str) -> int:
  """Returns the largest budget that a run has used up; 0 if none."""
  try:
    path = pathlib.Path(workdir) / _COMPLETED_FILE
    return int(untrusted.read_json(path)['max_actor_steps'])
  except (OSError, ValueError, KeyError, TypeError):
    return 0


def _identity(
  run: run_config.RunConfig,
  config: config_lib.R2D2Config,
  extra: Mapping[str, Any],
) -> dict[str, Any]:
  """Returns the settings that identify this run, as JSON restores them."""
  identity = {
    'agent': type(config).__name__,
    'run': lasting(dataclasses.asdict(run)),
    'config': {
      group: lasting(settings)
      for group, settings in config_lib.to_dict(config).items()
    },
    **extra,
  }
  return json.loads(json.dumps(identity))


def lasting(settings: Mapping[str, Any]) -> dict[str, Any]:
  """Returns the settings of a group that are fixed for the whole run.

  Excludes settings that may change on resume, and the paths of the run.
  """
  return {
    name: value
    for name, value in settings.items()
    if name not in _MAY_CHANGE and name != 'workdir'
  }


def _with_defaults(
  identity: Mapping[str, Any], config_class: type[config_lib.R2D2Config]
) -> dict[str, Any]:
  """Adds the settings that did not exist yet when the run was started.

  The default of such a setting is always the behavior of earlier versions.
  """
  settings = dict(identity['config'])
  for group, defaults in config_lib.to_dict(config_class()).items():
    if isinstance(settings.get(group), dict):
      settings[group] = {**lasting(defaults), **settings[group]}
  return {**identity, 'config': settings}


def _check_same(
  workdir: str, old: Mapping[str, Any], new: Mapping[str, Any]
) -> None:
  """Raises ValueError if two identities differ."""
  by_checksum = PARAMS in old and PARAMS in new
  differences = _differences(
    _comparable(old, by_checksum), _comparable(new, by_checksum)
  )
  if 'agent' in differences:  # Another agent has other settings.
    differences = {'agent': differences['agent']}
  if differences:
    # Names and directories say more than checksums, unless they are the same.
    differences.update(
      (name, names)
      for name, names in _differences(_names(old), _names(new)).items()
      if name in differences
    )
    found = ', '.join(
      f'{name}={before!r} then, {now!r} now'
      for name, (before, now) in differences.items()
    )
    raise ValueError(
      f'workdir={workdir!r} was created with other settings: {found}. Use the '
      'same settings to resume, or choose another workdir.'
    )


def _comparable(
  identity: Mapping[str, Any], by_checksum: bool
) -> dict[str, Any]:
  """Returns an identity without the directories of parameters or checksums.

  Args:
    identity: the settings of a run.
    by_checksum: whether to compare parameters by checksum. Their directories,
      and the behavior names derived from them, may then differ.
  """
  found = {k: v for k, v in identity.items() if k != 'began_with'}
  if not _init_from(identity):  # Earlier versions recorded the defaults.
    found.pop(_WEIGHTS, None)
  if not by_checksum:
    found.pop(PARAMS, None)
    names = map(pathlib.PurePath, found.get(_BEHAVIORS, ()))
    return {**found, _BEHAVIORS: [path.name for path in names]}
  found.pop(_BEHAVIORS, None)
  if _WEIGHTS in found:
    found[_WEIGHTS] = {**found[_WEIGHTS], 'init_from': ''}
  return found


def _names(identity: Mapping[str, Any]) -> dict[str, Any]:
  """Returns the names or directories of parameters, by key of `PARAMS`."""
  return {
    _BEHAVIORS: identity.get(_BEHAVIORS),
    'init_from': _init_from(identity),
  }


def _init_from(identity: Mapping[str, Any]) -> str:
  """Returns the directory of the initial weights; empty without any."""
  return str(identity.get(_WEIGHTS, {}).get('init_from', ''))


def _differences(old: Any, new: Any, name: str = '') -> dict[str, Any]:
  """Returns both values of each setting that differs, by name."""
  if isinstance(old, dict) and isinstance(new, dict):
    found: dict[str, Any] = {}
    for key in sorted(set(old) | set(new)):
      found.update(_differences(old.get(key), new.get(key), key))
    return found
  return {} if old == new else {name: (old, new)}
