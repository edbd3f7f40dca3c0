"""Checks that a command resumes the run that its workdir records.

The identity of a run consists of the settings that may not change when it is
resumed.
"""

import dataclasses
import json
import pathlib
from collections.abc import Mapping
from typing import Any

from bt_acme import config as config_lib
from bt_acme import files
from bt_acme.config import run as run_config

# The key for the checksums of the parameters that were passed to a run. The
# checksums are compared instead of the directories of these parameters, which
# the other two keys contain.
PARAMS = 'params_sha256'
BEHAVIORS, WEIGHTS = 'behaviors', 'weights'
# Settings that may differ when a run is resumed. The values of the first group
# at the start of the run are recorded.
RECORDED = (
  'num_evaluators',
  'evaluation_period',
  'evaluation_episodes',
  'checkpoint_period',
)
# Each session records its own values, with which `bt_acme.load_run` resumes.
OF_SESSION = (
  *RECORDED,
  *('max_actor_steps', 'snapshot_steps', 'max_episode_rows'),
)
_MAY_CHANGE = (
  *OF_SESSION,
  'lp_launch_type',  # Runs in one process are told apart by `engine`.
  *('ray_address', 'ray_python', 'placement'),
  *('open_ports', 'replay_port'),
  'inference',
  'max_restarts',
  'watchdog_seconds',
  'num_devices',
  'checkpoint_replay',
  'codec',  # A saved replay records its own codec.
)


def identity_of(
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
  return json.loads(files.json_text(identity))


def lasting(settings: Mapping[str, Any]) -> dict[str, Any]:
  """Returns the settings of a group that are fixed for the whole run.

  Excludes settings that may change on resume, and the paths of the run.
  """
  return {
    name: value
    for name, value in settings.items()
    if name not in _MAY_CHANGE and name != 'workdir'
  }


def check(
  workdir: str,
  recorded: Mapping[str, Any],
  new: Mapping[str, Any],
  config_class: type[config_lib.R2D2Config],
) -> None:
  """Raises ValueError if a run differs from the one that a workdir records.

  Args:
    workdir: the directory of the run.
    recorded: the identity of the run in the workdir.
    new: the identity of the run to resume.
    config_class: the class of its agent's configuration.
  """
  old = _with_defaults(recorded, config_class)
  by_checksum = PARAMS in old and PARAMS in new
  differences = _differences(
    _comparable(old, by_checksum), _comparable(new, by_checksum)
  )
  if 'engine' in differences:  # Users know it by the name of its flag.
    before, now = differences.pop('engine')
    nodes = 'local_mp, local_mt or ray'
    differences['lp_launch_type'] = (before or nodes, now or nodes)
  if 'agent' in differences:  # Another agent has other settings.
    differences = {'agent': differences['agent']}
  if differences:
    # Names and directories say more than checksums, unless they are the same.
    before, now = (
      {BEHAVIORS: x.get(BEHAVIORS), 'init_from': _init_from(x)}
      for x in (old, new)
    )
    named = _differences(before, now)
    differences.update((x, named[x]) for x in named if x in differences)
    found = ', '.join(
      f'{name}={before!r} then, {now!r} now'
      for name, (before, now) in differences.items()
    )
    raise ValueError(
      f'workdir={workdir!r} was created with other settings: {found}. Use the '
      'same settings to resume, or choose another workdir.'
    )


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
    found.pop(WEIGHTS, None)
  if not by_checksum:
    found.pop(PARAMS, None)
    names = map(pathlib.PurePath, found.get(BEHAVIORS, ()))
    return {**found, BEHAVIORS: [path.name for path in names]}
  found.pop(BEHAVIORS, None)
  if WEIGHTS in found:
    found[WEIGHTS] = {**found[WEIGHTS], 'init_from': ''}
  return found


def _init_from(identity: Mapping[str, Any]) -> str:
  """Returns the directory of the initial weights; empty without any."""
  return str(identity.get(WEIGHTS, {}).get('init_from', ''))


def _differences(old: Any, new: Any, name: str = '') -> dict[str, Any]:
  """Returns both values of each setting that differs, by name."""
  if isinstance(old, dict) and isinstance(new, dict):
    found: dict[str, Any] = {}
    for key in sorted(set(old) | set(new)):
      found.update(_differences(old.get(key), new.get(key), key))
    return found
  return {} if old == new else {name: (old, new)}
