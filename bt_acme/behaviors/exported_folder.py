"""Writes and reads pre-trained policies as directories.

A directory contains `behavior.json` (configuration, environment, running
statistics and a checksum) and `params.npz`, and is moved into place once it is
complete.
"""

import hashlib
import io
import math
import os
import pathlib
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from bt_acme import assembly, files, untrusted
from bt_acme import config as config_lib
from bt_acme.behaviors import cards, lookup
from bt_acme.config import checks, names
from bt_acme.core import leaves
from bt_acme.core.intrinsic import reward_statistics as reward_lib

_FORMAT = 1
FILES = _DESCRIPTION, _PARAMS = 'behavior.json', 'params.npz'
_AGAIN = 'Export the behavior again. If it was downloaded, delete this copy.'
_SEPARATOR = '::'
# Training stays far below these limits. Larger values would overflow.
_LARGEST_PARAMETER = 1e6
_LARGEST_STATISTIC = 1e15
_LARGEST_OBSERVATION = 1 << 24  # Number of values.
_MAX_ACTIONS = 1 << 16


def export(
  folder: str,
  *,
  agent: assembly.Agent,
  variables: assembly.Variables,
  statistics: Any | None,
  actor_steps: int,
) -> None:
  """Writes a behavior, replacing any existing one and its card.

  Args:
    folder: the directory to write. It must not contain anything else.
    agent: an R2D2 or NGU agent.
    variables: the parameters of the agent.
    statistics: the statistics of the agent's intrinsic reward, merged over its
      environments; None if the agent has no intrinsic reward.
    actor_steps: the number of actor steps of training.

  Raises:
    ValueError: if the directory contains anything else, or for another agent.

  Example:
    ```python
    pretrained = bt_acme.load_behavior('minigrid-explorer')
    bt_acme.behaviors.export(
      'runs/copy',
      agent=pretrained.agent,
      variables=pretrained.variables,
      statistics=pretrained.statistics,
      actor_steps=pretrained.actor_steps,
    )
    ```
  """
  check_replaceable(pathlib.Path(folder))
  checks.require(
    type(agent.config) in config_lib.AGENTS.values() and not agent.behaviors,
    'agent has behaviors, without which it cannot be exported. Use Run.export.',
  )
  params = _as_file(variables)
  with files.new_folder(folder) as temporary:
    (temporary / _PARAMS).write_bytes(params)
    description = {
      'format': _FORMAT,
      'agent': type(agent.config).__name__,
      'config': config_lib.to_dict(agent.config),
      'environment': agent.spec._asdict(),
      'statistics': None
      if statistics is None
      else {k: np.asarray(v).tolist() for k, v in statistics._asdict().items()},
      'actor_steps': int(actor_steps),
      'params_sha256': hashlib.sha256(params).hexdigest(),
    }
    files.write_json(temporary / _DESCRIPTION, description)


def check_replaceable(folder: pathlib.Path) -> None:
  """Raises ValueError if a directory contains more than a behavior."""
  if not os.path.lexists(folder):
    return
  checks.require(
    folder.is_dir(),
    f'folder={str(folder)!r} is a file. Choose another directory.',
  )
  known = {_DESCRIPTION, _PARAMS} | cards.files_in(folder)
  others = set(os.listdir(folder)) - known
  checks.require(
    not others,
    f'folder={str(folder)!r} contains {", ".join(map(repr, sorted(others)))}, '
    'not part of a behavior, which would be deleted. Choose another directory.',
  )


def checksum(variables: assembly.Variables) -> str:
  """Returns the SHA-256 of a behavior with the given parameters.

  Args:
    variables: the parameters of any agent.
  """
  return hashlib.sha256(_as_file(variables)).hexdigest()


def _as_file(variables: assembly.Variables) -> bytes:
  """Returns the contents of the parameter file."""
  buffer = io.BytesIO()
  np.savez(buffer, **leaves.by_path(variables, _SEPARATOR))
  return buffer.getvalue()


def read(
  folder: str, *, setting: str
) -> tuple[assembly.Agent, assembly.Learned, str]:
  """Reads a directory written by `export`; treats its contents as untrusted.

  The size of the file and of the parameters that `behavior.json` describes
  limit the memory use.

  Args:
    folder: the directory to read.
    setting: the name of the user's setting for the directory, for errors.

  Returns:
    The agent that was trained, its policy, and the checksum of its parameters.

  Raises:
    ValueError: if the directory is missing, incomplete or damaged, or contains
      anything that `export` does not write.
  """
  path = pathlib.Path(folder)
  subject = f'{setting}={folder!r}'
  checks.require(
    os.path.isdir(path),  # Unlike `Path.is_dir`, never raises an error.
    f'{subject} is neither a directory nor the name of a behavior: '
    f'{names.suggest(folder, lookup.names())}',
  )
  try:
    description = untrusted.read_json(path / _DESCRIPTION)
    agent, actor_steps, statistics = _read_description(description)
    digest = str(description['params_sha256'])
    # Only the shapes of the agent's parameters; no values are computed.
    expected = agent.variable_shapes
  except Exception as error:  # A damaged file can raise any error.
    raise ValueError(
      f'{subject}: {_DESCRIPTION} is missing or damaged '
      f'({untrusted.one_line(error)}). {_advice(path)}'
    ) from error
  variables = _read_params(path / _PARAMS, expected, digest, subject)
  return agent, assembly.Learned(actor_steps, variables, statistics), digest


def _advice(path: pathlib.Path) -> str:
  """Says what to do with a directory that is not a behavior."""
  if (path / 'config.json').is_file():
    return "Export the run's policy: bt_acme.load_run(FOLDER).export(OTHER)."
  if any(path.glob(f'*/{_DESCRIPTION}')):
    return (
      'Pass one of its subdirectories. To transfer all of them, pass '
      '--bank=FOLDER to run_bt.py or bt_acme.Bank(FOLDER) to bt_acme.transfer.'
    )
  return _AGAIN


def is_complete(folder: str, expected: str = '') -> bool:
  """Returns whether a directory contains a behavior with all its parameters.

  Nothing is loaded, so a process without an agent can call this function.

  Args:
    folder: the directory.
    expected: the checksum of the parameters; empty for any.
  """
  path = pathlib.Path(folder)
  try:
    description = untrusted.read_json(path / _DESCRIPTION)
    digest = expected or description['params_sha256']
    return bool(untrusted.sha256(path / _PARAMS) == digest)
  except (OSError, ValueError, KeyError, TypeError):
    return False


def _read_description(
  values: Mapping[str, Any],
) -> tuple[assembly.Agent, int, Any]:
  """Returns the agent, its actor steps, and its statistics.

  A damaged description can cause any error.
  """
  checks.require(
    values['format'] == _FORMAT,
    f'format={values["format"]} cannot be read by this version',
  )
  agent = assembly.Agent(
    config_lib.from_dict(config_lib.AGENTS[values['agent']], values['config']),
    _read_spec(values['environment']),
  )
  actor_steps = int(values['actor_steps'])
  checks.require(actor_steps >= 0, f'actor_steps={actor_steps} is negative')
  return agent, actor_steps, _read_statistics(agent, values['statistics'])


def _read_spec(values: Mapping[str, Any]) -> assembly.EnvironmentSpec:
  """Returns the environment spec after checking its sizes."""
  shape = tuple(int(size) for size in values['observation_shape'])
  spec = assembly.EnvironmentSpec(**{**values, 'observation_shape': shape})
  for name, value, most, unit in (
    ('observation_shape', math.prod(shape), _LARGEST_OBSERVATION, ' values'),
    ('num_stacked', spec.num_stacked, shape[-1], ''),
    ('num_actions', spec.num_actions, _MAX_ACTIONS, ''),
  ):
    checks.require(
      type(value) is int and min(*shape, value) > 0 and value <= most,
      f'{name}={getattr(spec, name)} must be positive, at most {most:,}{unit}',
    )
  return spec


def _read_statistics(
  agent: assembly.Agent, values: Mapping[str, Any] | None
) -> Any | None:
  if values is None:
    return None
  if agent.intrinsic is None:
    raise ValueError('statistics must be null without an intrinsic reward')
  # An earlier version did not have all statistics.
  values = {**reward_lib.NO_STATISTICS._asdict(), **values}
  statistics = reward_lib.IntrinsicStatistics(
    **{name: np.float64(value) for name, value in values.items()}
  )
  for name, value in statistics._asdict().items():
    checks.require(
      np.ndim(value) == 0 and 0 <= value <= _LARGEST_STATISTIC,
      f'{name}={value} must be a number in [0, {_LARGEST_STATISTIC:g}]',
    )
  return statistics


def _read_params(
  path: pathlib.Path, expected: assembly.Variables, digest: str, subject: str
) -> assembly.Variables:
  """Reads the parameters and checks that they match the description."""
  wanted = leaves.by_path(expected, _SEPARATOR)
  try:
    params = untrusted.read_arrays(path, wanted, digest)
  except (OSError, untrusted.InvalidFileError) as error:
    problem = str(error).replace(_SEPARATOR, '/')
    raise ValueError(f'{subject}: {_PARAMS} {problem}. {_AGAIN}') from error
  checks.require(
    # NaN compares as false.
    all((np.abs(x) <= _LARGEST_PARAMETER).all() for x in params.values()),
    f'{subject}: {_PARAMS} contains values that are not finite or exceed '
    f'{_LARGEST_PARAMETER:g} in magnitude. Train the behavior again.',
  )
  restored: assembly.Variables = jax.tree.unflatten(
    jax.tree.structure(expected), [params[name] for name in wanted]
  )
  return restored
