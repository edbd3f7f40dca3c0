"""Checkpoints that are whole or not there.

A checkpoint is one folder `checkpoint-N` of arrays (`arrays.npz`) and plain
values (`values.json`), N counting up. It is written beside and renamed into
place, and the one before is kept, in case that it cannot be read.
"""

import hashlib
import json
import os
import pathlib
import re
import shutil
import tempfile
from typing import Any, List, Mapping, Optional, Tuple

import jax
import numpy as np
from absl import logging

_ARRAYS, _VALUES = 'arrays.npz', 'values.json'
_NAME = re.compile(r'checkpoint-(\d+)$')
_KEPT = 2


def _numbers(folder: pathlib.Path) -> List[int]:
  """Numbers of the checkpoints in a folder, the newest first."""
  if not folder.is_dir():
    return []
  matches = (_NAME.match(path.name) for path in folder.iterdir())
  return sorted((int(m.group(1)) for m in matches if m), reverse=True)


def save(folder: str, arrays: Any, values: Mapping[str, Any]) -> None:
  """Writes a checkpoint and removes all but the last two.

  Args:
    folder: of the run's checkpoints.
    arrays: a tree of arrays.
    values: what JSON can hold.
  """
  root = pathlib.Path(folder)
  root.mkdir(parents=True, exist_ok=True)
  for stale in root.glob('.partial-*'):
    shutil.rmtree(stale)
  temporary = pathlib.Path(tempfile.mkdtemp(dir=root, prefix='.partial-'))
  leaves = jax.tree.leaves(arrays)
  with open(temporary / _ARRAYS, 'wb') as f:
    np.savez(f, **{f'{i:05d}': np.asarray(x) for i, x in enumerate(leaves)})
    f.flush()
    os.fsync(f.fileno())
  digest = hashlib.sha256((temporary / _ARRAYS).read_bytes()).hexdigest()
  with open(temporary / _VALUES, 'w') as f:
    json.dump({'arrays_sha256': digest, 'values': dict(values)}, f)
    f.flush()
    os.fsync(f.fileno())
  numbers = _numbers(root)
  number = numbers[0] + 1 if numbers else 1
  os.rename(temporary, root / f'checkpoint-{number}')
  for old in numbers[_KEPT - 1 :]:
    shutil.rmtree(root / f'checkpoint-{old}')


def _load(path: pathlib.Path, template: Any) -> Tuple[Any, Mapping[str, Any]]:
  record = json.loads((path / _VALUES).read_text())
  digest = hashlib.sha256((path / _ARRAYS).read_bytes()).hexdigest()
  if digest != record['arrays_sha256']:
    raise ValueError(f'{_ARRAYS} is damaged: its checksum differs.')
  leaves, structure = jax.tree.flatten(template)
  with np.load(path / _ARRAYS) as stored:
    arrays = [stored[name] for name in sorted(stored.files)]
  shapes = [(x.shape, np.dtype(x.dtype)) for x in arrays]
  expected = [(x.shape, np.dtype(x.dtype)) for x in leaves]
  if shapes != expected:
    raise ValueError('it holds other arrays than this configuration.')
  return jax.tree.unflatten(structure, arrays), record['values']


def restore(
  folder: str, template: Any
) -> Optional[Tuple[Any, Mapping[str, Any]]]:
  """Reads the newest checkpoint that is whole.

  Args:
    folder: of the run's checkpoints.
    template: a tree of arrays of the structure, shapes and dtypes saved.

  Returns:
    The arrays as NumPy, in the template's structure, and the values; None where
    there is no checkpoint.

  Raises:
    ValueError: if there are checkpoints and none can be read.
  """
  root = pathlib.Path(folder)
  errors = []
  for number in _numbers(root):
    path = root / f'checkpoint-{number}'
    try:
      loaded = _load(path, template)
    except (OSError, ValueError, KeyError, TypeError) as error:
      errors.append(f'{path.name}: {type(error).__name__}: {error}')
    else:
      for passed_over in errors:
        logging.warning('Going on from %s, since %s', path, passed_over)
      return loaded
  if errors:
    raise ValueError(
      f'no checkpoint in {folder!r} can be read: ' + '; '.join(errors)
    )
  return None
