"""Writes and reads checkpoints atomically: complete or absent.

A checkpoint is a directory `checkpoint-N` of arrays (`arrays.npz`) and JSON
values (`values.json`), where N counts up. `files.new_folder` moves it into
place when it is complete. The previous checkpoint is retained in case the
newest one cannot be read.

A checkpoint may include a replay, in the directory `replay`: the files of
Reverb's server or, for a run in one process, the states of all nodes, of which
the replay is one. Because replays are large, the disk never holds more than
two: that of the newest checkpoint, and the next one while it is being written.
"""

import contextlib
import json
import os
import pathlib
import re
import shutil
import zipfile
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar

import jax
import numpy as np
from absl import logging

from bt_acme import files, untrusted

_ARRAYS, _VALUES, _REPLAY = 'arrays.npz', 'values.json', 'replay'
_PREFIX = 'checkpoint-'
_PARTIAL = '.checkpoint-*.partial-*'  # As `files.new_folder` names it.
_KEPT = 2
_LONGEST_VALUES = 1 << 24  # Bytes; a thousand environments take 200,000.

# The arrays and JSON values of a checkpoint, without the replay.
State = tuple[Any, Mapping[str, Any]]
_T = TypeVar('_T')


class Replay(NamedTuple):
  """The files of a replay that are, or will be, part of a checkpoint.

  Attributes:
    folder: the directory that holds the files.
    sha256: the checksum of each file, by name.
    layout: JSON values that determine which runs can use the replay.
  """

  folder: pathlib.Path
  sha256: Mapping[str, str]
  layout: Mapping[str, Any]


def save(folder: str, state: State, replay: Replay | None = None) -> None:
  """Writes a checkpoint, then removes all but the last two.

  Args:
    folder: the directory that holds the run's checkpoints.
    state: a tree of arrays, and JSON values.
    replay: the replay of the checkpoint. Its files are linked, not copied; they
      may be removed afterwards, but must not be modified.
  """
  root = pathlib.Path(folder)
  old = numbers(root)
  write(_path(root, max(old, default=0) + 1), state, replay)
  for number in old[_KEPT - 1 :]:
    files.remove_folder(_path(root, number))


def write(
  path: pathlib.Path, state: State, replay: Replay | None = None
) -> None:
  """Writes one directory of arrays and JSON values; see `save`."""
  arrays, values = state
  with files.new_folder(path) as folder:
    _write_arrays(jax.tree.leaves(arrays), folder / _ARRAYS)
    record = {
      'arrays_sha256': untrusted.sha256(folder / _ARRAYS),
      'values': dict(values),
    }
    if replay is not None:
      record['replay'] = {'sha256': replay.sha256, 'layout': replay.layout}
      (folder / _REPLAY).mkdir()
      for name in replay.sha256:
        _link(replay.folder / name, folder / _REPLAY / name)
    (folder / _VALUES).write_text(json.dumps(record))


def _write_arrays(arrays: list[Any], path: pathlib.Path) -> None:
  """Works like `np.savez`, but closes the file even if the disk is full."""
  with zipfile.ZipFile(path, 'w') as archive:
    for i, array in enumerate(arrays):
      with archive.open(f'{i:05d}.npy', 'w', force_zip64=True) as file:
        np.lib.format.write_array(file, np.asarray(array), allow_pickle=False)


def _link(source: pathlib.Path, target: pathlib.Path) -> None:
  """Hard-links a file, or copies it if the file system has no hard links."""
  try:
    os.link(source, target)
  except OSError:
    shutil.copyfile(source, target)


def prune_replays(folder: str) -> None:
  """Removes all replays except the one of the newest checkpoint.

  Also removes the leftovers of interrupted writes and removals.
  """
  root = pathlib.Path(folder)
  for number in numbers(root)[1:]:
    with contextlib.suppress(FileNotFoundError):
      files.remove_folder(_path(root, number) / _REPLAY)
  for path in root.glob(_PARTIAL):
    shutil.rmtree(path)


def newest_replay(folder: str) -> Replay | None:
  """Finds the replay of the newest checkpoint that is complete.

  Args:
    folder: the directory that holds the run's checkpoints.

  Returns:
    The replay; its files are not read. None if there is no checkpoint, or if
    the newest has no replay (omitted or deleted).

  Raises:
    ValueError: if there are checkpoints but none can be read.
  """
  root = pathlib.Path(folder)
  path, record = _newest(root, _read_checked) or (root, {})
  replay = record.get('replay')
  if replay is None or not (path / _REPLAY).is_dir():
    return None
  return Replay(path / _REPLAY, replay['sha256'], replay['layout'])


def has_previous_replay(folder: str) -> bool:
  """Returns whether a checkpoint before the newest one has its replay."""
  root = pathlib.Path(folder)
  return any((_path(root, n) / _REPLAY).is_dir() for n in numbers(root)[1:])


def restore(folder: str, template: Any, resumes: bool = False) -> State | None:
  """Reads the newest checkpoint that is complete.

  Args:
    folder: the directory that holds the run's checkpoints.
    template: a tree of arrays with the structure, shapes and dtypes that were
      saved.
    resumes: whether the caller will write the next checkpoint. The newer
      checkpoints, which cannot be read, are then removed: otherwise, this one
      and its replay would be removed in their place.

  Returns:
    NumPy arrays in the template's structure, and the values. None if there is
    no checkpoint.

  Raises:
    ValueError: if there are checkpoints but none can be read.
  """
  root = pathlib.Path(folder)
  found = _newest(root, lambda path: read(path, template))
  if found is None:
    return None
  # The writer may have been killed before it synced the name. A run that
  # resumes from this checkpoint must not fall back to an older one later.
  with contextlib.suppress(OSError):  # Some callers can only read.
    files.sync_folder(root)
  while resumes and (newest := _path(root, numbers(root)[0])) != found[0]:
    files.remove_folder(newest)
  return found[1]


def actor_steps(folder: str) -> int:
  """Returns the actor steps of the newest complete checkpoint; 0 if none."""
  found = _newest(pathlib.Path(folder), _read_checked)
  return int(found[1]['values']['counts']['actor_steps']) if found else 0


def _newest(
  folder: pathlib.Path, reads: Callable[[pathlib.Path], _T]
) -> tuple[pathlib.Path, _T] | None:
  """Returns the newest readable checkpoint and the result of reading it."""
  errors = []
  for number in numbers(folder):
    path = _path(folder, number)
    try:
      loaded = reads(path)
    except (OSError, ValueError) as error:
      errors.append(f'{path.name}: {untrusted.one_line(error)}')
    else:
      for passed_over in errors:
        logging.warning(
          'Checkpoint skipped (%s); resuming from %s', passed_over, path
        )
      return path, loaded
  if errors:
    raise ValueError(
      f'no checkpoint in {str(folder)!r} can be read: ' + '; '.join(errors)
    )
  return None


def read(path: pathlib.Path, template: Any) -> State:
  """Reads a checkpoint written by `write`; treats its contents as untrusted.

  Args:
    path: the directory of the checkpoint.
    template: see `restore`. Reading uses no more memory than its arrays would.

  Raises:
    OSError: if a file is missing.
    ValueError: if a file is damaged or does not match the template.
  """
  record = _read_record(path)
  leaves, structure = jax.tree.flatten(template)
  wanted = {
    f'{i:05d}': jax.ShapeDtypeStruct(leaf.shape, leaf.dtype)
    for i, leaf in enumerate(leaves)
  }
  try:
    arrays = untrusted.read_arrays(
      path / _ARRAYS, wanted, record.get('arrays_sha256')
    )
  except untrusted.InvalidFileError as error:
    raise untrusted.InvalidFileError(f'{_ARRAYS} {error}') from error
  in_order = [arrays[name] for name in wanted]
  return jax.tree.unflatten(structure, in_order), record['values']


def _read_checked(path: pathlib.Path) -> dict[str, Any]:
  """Reads the record of a checkpoint, and verifies the arrays' checksum."""
  record = _read_record(path)
  untrusted.check_sha256(path / _ARRAYS, record.get('arrays_sha256'))
  return record


def _read_record(path: pathlib.Path) -> dict[str, Any]:
  """Reads the JSON file of a checkpoint."""
  record = untrusted.read_json(path / _VALUES, longest=_LONGEST_VALUES)
  if not isinstance(record, dict) or not isinstance(record.get('values'), dict):
    raise untrusted.InvalidFileError(f'{_VALUES} is incomplete')
  replay = record.get('replay')
  if replay is not None and not (
    isinstance(replay, dict)
    and isinstance(replay.get('sha256'), dict)
    and all(pathlib.PurePath(name).name == name for name in replay['sha256'])
    and isinstance(replay.get('layout'), dict)
  ):
    raise untrusted.InvalidFileError(f'{_VALUES} is incomplete')
  return record


def _path(folder: pathlib.Path, number: int) -> pathlib.Path:
  return folder / f'{_PREFIX}{number}'


def numbers(folder: pathlib.Path, prefix: str = _PREFIX) -> list[int]:
  """Returns N of the directories `PREFIX-N` in a directory, largest first."""
  pattern = re.compile(re.escape(prefix) + r'(\d+)$')
  names = os.listdir(folder) if folder.is_dir() else []
  matches = map(pattern.match, names)
  return sorted((int(match[1]) for match in matches if match), reverse=True)
