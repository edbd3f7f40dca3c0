"""Saves the states of all nodes of an in-process run in a checkpoint.

Their file takes the place of the files of Reverb's server in other runs.
Nothing is pickled, because the file may come from an untrusted source.
"""

import contextlib
import hashlib
import pathlib
import shutil
from collections.abc import Iterator, Mapping
from typing import Any

import jax
import jaxlib
import numpy as np

from bt_acme import assembly, files, untrusted, version
from bt_acme.config import run as run_config
from bt_acme.core import leaves
from bt_acme.runtime import checkpoints, serialization

_FILE = 'nodes'
# Other versions of these packages may compute different results.
_VERSIONS = {
  'bt_acme': version.__version__,
  'jax': jax.__version__,
  'jaxlib': jaxlib.__version__,
  'numpy': np.__version__,
}


class OtherRunError(ValueError):
  """The states are intact, but belong to other versions or behaviors."""


def layout(agent: assembly.Agent) -> dict[str, Any]:
  """Returns the versions and behaviors that the states depend on."""
  return {
    'versions': _VERSIONS,
    'behaviors': [_checksum(behavior) for behavior in agent.behaviors],
  }


def _checksum(behavior: Any) -> str:
  """Returns a behavior's checksum, or its name if it has no parameters.

  The name of an exported behavior is that of its directory, which may change,
  so the name cannot identify the behavior.
  """
  params = leaves.tree_leaves(behavior.params())
  if not params:
    return str(behavior.name)
  digest = hashlib.sha256()
  for leaf in params:
    digest.update(leaf.tobytes())
  return digest.hexdigest()


def write(
  run: run_config.RunConfig, agent: assembly.Agent, states: Mapping[str, Any]
) -> checkpoints.Replay:
  """Writes node states to a scratch directory, for the next checkpoint.

  Args:
    run: the run.
    agent: the agent of the run.
    states: numbers, strings, bytes and NumPy arrays in lists, tuples and dicts.

  Raises:
    OSError: if the states cannot be written.
    ValueError: if the states contain values of any other type.
  """
  folder = _scratch(run)
  folder.mkdir(parents=True, exist_ok=True)
  with files.new_file(folder / _FILE) as file:
    serialization.dump(dict(states), file)
  sums = {_FILE: untrusted.sha256(folder / _FILE)}
  return checkpoints.Replay(folder, sums, layout(agent))


def clear(run: run_config.RunConfig) -> None:
  """Removes the scratch directory."""
  shutil.rmtree(_scratch(run), ignore_errors=True)


def read(
  run: run_config.RunConfig, agent: assembly.Agent
) -> Mapping[str, Any] | None:
  """Returns the states in the newest checkpoint; None without a checkpoint.

  Raises:
    ValueError: if the states are missing, damaged, or belong to other versions
      or behaviors.
  """
  if not checkpoints.numbers(pathlib.Path(run.checkpoint_folder)):
    return None
  found = checkpoints.newest_replay(run.checkpoint_folder)
  if found is None:
    raise ValueError(
      f'workdir={run.workdir!r}: the newest checkpoint has no node states, '
      'so this run cannot be resumed. Choose another workdir.'
    )
  path = found.folder / _FILE
  with refusals(run):
    check_versions(found.layout['versions'])
    if found.layout['behaviors'] != layout(agent)['behaviors']:
      raise OtherRunError('they were saved with other behaviors')
    untrusted.check_sha256(path, found.sha256.get(_FILE))
    with path.open('rb') as file:
      states: Mapping[str, Any] = serialization.load(file, path.stat().st_size)
    return states


def check_versions(found: Mapping[str, Any]) -> None:
  """Raises OtherRunError if other versions wrote the states."""
  differences = [
    f'{name}={found.get(name)!r} then, {version!r} now'
    for name, version in _VERSIONS.items()
    if found.get(name) != version
  ]
  if differences:
    raise OtherRunError(
      f'they were saved by other versions: {", ".join(differences)}'
    )


@contextlib.contextmanager
def refusals(run: run_config.RunConfig, advice: str = '') -> Iterator[None]:
  """Turns any error that untrusted states cause into a ValueError.

  Args:
    run: the run.
    advice: what the user can do; by default, delete the checkpoint if there is
      a previous one to resume from.
  """
  try:
    yield
  except Exception as error:
    if isinstance(error, OtherRunError):
      advice = 'Resume it with the same ones, or choose'
    elif not advice and checkpoints.has_previous_replay(run.checkpoint_folder):
      advice = (
        'Delete that checkpoint to resume from the previous one, or choose'
      )
    raise ValueError(
      f'workdir={run.workdir!r}: the states in its newest checkpoint do not '
      f'fit this run ({untrusted.one_line(error)}). {advice or "Choose"} '
      'another workdir.'
    ) from error


def _scratch(run: run_config.RunConfig) -> pathlib.Path:
  return pathlib.Path(run.checkpoint_folder) / '.partial-states'
