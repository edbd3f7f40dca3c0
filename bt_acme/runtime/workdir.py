"""Records which run a workdir belongs to, and whether the run is completed.

`config.json` contains the settings of the run. The same command on the same
directory resumes the run; a command with other settings is refused.
`completed.json` is written when the run has used up its budget.
"""

import os
import pathlib
from collections.abc import Mapping
from typing import Any

from bt_acme import config as config_lib
from bt_acme import files, untrusted
from bt_acme.config import run as run_config
from bt_acme.config import transfer
from bt_acme.runtime import resume_checks, workdir_lock
from bt_acme.runtime.resume_checks import BEHAVIORS, WEIGHTS

_FILE = 'config.json'
_COMPLETED_FILE = 'completed.json'


def claim(
  run: run_config.RunConfig,
  config: config_lib.R2D2Config,
  extra: Mapping[str, Any] | None = None,
) -> bool:
  """Claims the workdir for a run, or recognizes it as the run's own.

  Args:
    run: the run, whose workdir is locked and therefore writable.
    config: the agent's configuration.
    extra: additional identity of the run, such as its behaviors and initial
      weights.

  Returns:
    Whether the run was started before and is now resumed.

  Raises:
    ValueError: if the workdir was created with other settings, which the
      message names, or contains other files. Nothing is written in that case.
  """
  identity = resume_checks.identity_of(run, config, extra or {})
  folder = pathlib.Path(run.workdir)
  path = folder / _FILE
  # Unlike pathlib, os.path does not raise if the name is too long.
  if contains_run(folder):
    recorded = read_identity(run.workdir)
    resume_checks.check(run.workdir, recorded, identity, type(config))
    # The parameters may have been moved to other directories.
    folders = {
      name: identity[name]
      for name in (BEHAVIORS, WEIGHTS)
      if resume_checks.PARAMS in recorded and name in identity
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
  recorded = {name: getattr(run, name) for name in resume_checks.RECORDED}
  files.write_json(path, {**identity, 'began_with': recorded})
  return False


def contains_run(folder: files.PathLike) -> bool:
  """Returns whether a directory is the workdir of a run."""
  return os.path.isfile(os.path.join(folder, _FILE))


def read_identity(workdir: str) -> dict[str, Any]:
  """Reads the settings that `claim` wrote.

  Raises:
    ValueError: if the workdir does not contain a run, or its record is damaged.
  """
  path = pathlib.Path(workdir) / _FILE
  try:
    identity: dict[str, Any] = untrusted.read_json(path)
    parts = [identity['run'], identity['config'], identity.get(WEIGHTS, {})]
    parts.append(identity['config'].get('transfer', {}))
    if not all(isinstance(x, dict) for x in parts):
      raise ValueError('it is incomplete')
    _convert(identity)
    names = [identity['agent'], *identity.get(BEHAVIORS, ())]
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
  flags = identity.get(BEHAVIORS)
  if isinstance(flags, dict):
    names = str(flags['behavior']).split(',')
    weights = str(flags.get('behavior_weights', ''))
    identity[BEHAVIORS] = [name.strip() for name in names]
    identity['behavior_weights'] = [float(x) for x in weights.split(',') if x]


def run_of(workdir: str, identity: Mapping[str, Any]) -> run_config.RunConfig:
  """Returns the configuration of a recorded run.

  Settings that are not recorded have their defaults.

  Args:
    workdir: the directory of the run.
    identity: the result of `read_identity`.
  """
  return run_config.RunConfig(
    **{**identity['run'], **identity.get('began_with', {}), 'workdir': workdir}
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
  except (OSError, ValueError, KeyError, TypeError, OverflowError):
    return 0
