"""Reads and upgrades checkpoints that in-process runs wrote before 0.2.

Such a checkpoint is one file, `checkpoints/run`. It contains two lines of JSON
(the run's identity, and the sizes of the parts), the parts, and the SHA-256 of
everything before it.
"""

import hashlib
import io
import pathlib
from collections.abc import Mapping
from typing import Any

from bt_acme import assembly, untrusted
from bt_acme.acting import statistics_store
from bt_acme.config import run as run_config
from bt_acme.core import leaves
from bt_acme.core.intrinsic import reward_statistics as reward_lib
from bt_acme.runtime import checkpoints, saved_nodes, serialization

_FILE, _FORMAT = 'run', 'bt_acme run 3'


def upgrade(
  run: run_config.RunConfig, agent: assembly.Agent, shapes: Any
) -> None:
  """Rewrites an old checkpoint, if any, in the current format.

  Args:
    run: the run, whose workdir this process has locked.
    agent: the agent of the run.
    shapes: the shapes and dtypes of the learner's state.

  Raises:
    ValueError: if the file is damaged, or was written by other versions.
  """
  old = read(run, shapes)
  if old is None:
    return
  arrays, values, states = old
  replay = saved_nodes.write(run, agent, states)
  checkpoints.save(run.checkpoint_folder, (arrays, values), replay)
  saved_nodes.clear(run)
  _path(run).unlink()


def read(
  run: run_config.RunConfig, shapes: Any
) -> tuple[Any, Mapping[str, Any], Mapping[str, Any]] | None:
  """Reads an old checkpoint, if any.

  Args:
    run: the run.
    shapes: the shapes and dtypes of the learner's state.

  Returns:
    The parts of a checkpoint of the current format: the arrays of the learner,
    the JSON values, and the states of the other nodes. None without an old
    checkpoint.

  Raises:
    ValueError: if the file is damaged, or was written by other versions.
  """
  path = _path(run)
  if not path.is_file():
    return None
  with saved_nodes.refusals(run):
    state = _read(path)
    arrays = leaves.restore_leaves(shapes, state['learner'].pop('core'))
    values = {
      'learner': _learner_values(state),
      'counts': {
        'actor_steps': state['actor_steps'],
        'learner_steps': state['learner']['num_steps'],
      },
    }
  actor = ('environment', 'step', 'actor', 'sinks', 'writers', 'turns')
  states = {
    'actor': {name: state[name] for name in actor},
    'learner': state['learner'],
  }
  return arrays, values, states


def _path(run: run_config.RunConfig) -> pathlib.Path:
  return pathlib.Path(run.checkpoint_folder) / _FILE


def _learner_values(state: Mapping[str, Any]) -> dict[str, Any]:
  """Returns the JSON values of the learner."""
  store = statistics_store.StatisticsStore()
  intrinsic = state['actor']['intrinsic']
  if intrinsic is not None:
    store.put(0, reward_lib.IntrinsicStatistics(*intrinsic['statistics']))
  return {
    'statistics': store.save(),
    'max_priority': state['learner']['largest_priority'],
    'learner_steps': state['learner']['num_steps'],
  }


def _read(path: pathlib.Path) -> dict[str, Any]:
  """Reads the state of a run; raises InvalidFileError if it is damaged."""
  content = path.read_bytes()
  end = len(content) - hashlib.sha256().digest_size
  if hashlib.sha256(content[:end]).digest() != content[end:]:
    raise untrusted.InvalidFileError('is damaged: its checksum differs')
  file = io.BytesIO(content)
  header = untrusted.parse_json(file.readline())
  if header['format'] != _FORMAT:
    raise untrusted.InvalidFileError(f'is not of the format {_FORMAT!r}')
  saved_nodes.check_versions(header['identity'])
  return serialization.load(file, end)
