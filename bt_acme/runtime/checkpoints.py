"""Checkpoints that are either complete or absent (atomic writes).

A checkpoint is a folder `checkpoint-N` of arrays (`arrays.npz`) and plain
values (`values.json`), where N counts up. `files.new_folder` moves it into
place when it is complete. The checkpoint before it is kept in case the newest
one cannot be read.
"""

import json
import pathlib
import re
import shutil
from typing import Any, List, Mapping, Optional, Tuple

import jax
import numpy as np
from absl import logging

from bt_acme import files, untrusted

_ARRAYS, _VALUES = 'arrays.npz', 'values.json'
_NAME = re.compile(r'checkpoint-(\d+)$')
_KEPT = 2
_LONGEST_VALUES = 1 << 24  # Bytes; a thousand environments have 200,000.


def save(folder: str, arrays: Any, values: Mapping[str, Any]) -> None:
  """Writes a checkpoint, then removes all but the last two.

  Args:
    folder: the folder that holds the run's checkpoints.
    arrays: a tree of arrays.
    values: plain values, anything that JSON can hold.
  """
  root = pathlib.Path(folder)
  numbers = _numbers(root)
  number = numbers[0] + 1 if numbers else 1
  write(root / f'checkpoint-{number}', arrays, values)
  for old in numbers[_KEPT - 1 :]:
    shutil.rmtree(root / f'checkpoint-{old}')


def write(path: pathlib.Path, arrays: Any, values: Mapping[str, Any]) -> None:
  """Writes one folder of arrays and plain values, as `save` does."""
  named = {
    f'{i:05d}': np.asarray(leaf)
    for i, leaf in enumerate(jax.tree.leaves(arrays))
  }
  with files.new_folder(path) as folder:
    np.savez(folder / _ARRAYS, **named)
    record = {
      'arrays_sha256': untrusted.sha256(folder / _ARRAYS),
      'values': dict(values),
    }
    (folder / _VALUES).write_text(json.dumps(record))


def restore(
  folder: str, template: Any
) -> Optional[Tuple[Any, Mapping[str, Any]]]:
  """Reads the newest checkpoint that is complete.

  Args:
    folder: the folder that holds the run's checkpoints.
    template: a tree of arrays with the structure, shapes and dtypes that were
      saved.

  Returns:
    The arrays as NumPy, in the template's structure, and the values. None if
    there is no checkpoint.

  Raises:
    ValueError: if there are checkpoints and none of them can be read.
  """
  root = pathlib.Path(folder)
  errors = []
  for number in _numbers(root):
    path = root / f'checkpoint-{number}'
    try:
      loaded = read(path, template)
    except (OSError, ValueError) as error:
      errors.append(f'{path.name}: {untrusted.one_line(error)}')
    else:
      for passed_over in errors:
        logging.warning('Resuming from %s, because %s', path, passed_over)
      return loaded
  if errors:
    raise ValueError(
      f'no checkpoint in {folder!r} can be read: ' + '; '.join(errors)
    )
  return None


def read(path: pathlib.Path, template: Any) -> Tuple[Any, Mapping[str, Any]]:
  """Reads what `write` wrote, or a stranger.

  Args:
    path: the folder.
    template: as `restore` takes it.

  Raises:
    OSError: if a file is missing.
    ValueError: if anything about them is wrong. No more memory is taken than
      the template is large.
  """
  record = untrusted.read_json(path / _VALUES, longest=_LONGEST_VALUES)
  if not isinstance(record, dict) or not isinstance(record.get('values'), dict):
    raise untrusted.Refused(f'{_VALUES} is not complete')
  leaves, structure = jax.tree.flatten(template)
  wanted = {
    f'{i:05d}': jax.ShapeDtypeStruct(leaf.shape, leaf.dtype)
    for i, leaf in enumerate(leaves)
  }

  def check(shapes: untrusted.Shapes) -> None:
    if shapes != wanted:
      raise untrusted.Refused('holds other arrays than this configuration')

  file = path / _ARRAYS
  try:
    untrusted.check_size(file, wanted)
    if untrusted.sha256(file) != record.get('arrays_sha256'):
      raise untrusted.Refused('is damaged: its checksum differs')
    arrays = untrusted.read_arrays(file, check)
  except untrusted.Refused as error:
    raise untrusted.Refused(f'{_ARRAYS} {error}') from error
  in_order = [arrays[name] for name in wanted]
  return jax.tree.unflatten(structure, in_order), record['values']


def _numbers(folder: pathlib.Path) -> List[int]:
  """Returns the numbers of the checkpoints in a folder, the newest first."""
  if not folder.is_dir():
    return []
  matches = (_NAME.match(path.name) for path in folder.iterdir())
  return sorted((int(m.group(1)) for m in matches if m), reverse=True)
