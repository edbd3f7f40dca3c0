"""Reads files from untrusted sources.

Nothing that a file claims about itself is trusted. The size of a file is
compared with its expected contents before it is read, and the header of each
array with the bytes that follow before memory is allocated. Only the requested
arrays are created. Nothing is unpickled, because unpickling a file can run any
code of its author.

Every problem raises `InvalidFileError` with a one-line message.
"""

import hashlib
import json
import math
import os
import pathlib
import stat
import zipfile
from collections.abc import Mapping
from typing import Any, BinaryIO

import jax
import numpy as np

from bt_acme import files
from bt_acme.core import leaves

Shapes = Mapping[str, jax.ShapeDtypeStruct]


class InvalidFileError(ValueError):
  """A file does not have the expected contents.

  The message is one line that continues after the name of the file: "is ...".
  """


# Parsed JSON takes at most about forty times the memory of its text.
_LONGEST_JSON = 1 << 20  # Bytes; a typical file has about three thousand.
# Allowance in bytes for the zip format and the header of an array. With a name
# of a hundred letters these take about 500 bytes.
_OVERHEAD = 4096
_SUFFIX = '.npy'
# Booleans, integers, floating-point and complex numbers. Objects, which are
# pickled, and records are not allowed.
_KINDS = 'biufc'
_CHUNK = 1 << 20
_LONGEST_TEXT = 400


def shortened(text: str) -> str:
  """Returns an untrusted text as one line of limited length."""
  text = ' '.join(text.split())
  if len(text) > _LONGEST_TEXT:
    return f'{text[:_LONGEST_TEXT]} [...]'
  return text


def one_line(error: BaseException) -> str:
  """Returns the type and message of an error as one line of limited length."""
  return shortened(f'{type(error).__name__}: {error}').removesuffix(':')


def read_json(path: files.PathLike, *, longest: int = _LONGEST_JSON) -> Any:
  """Reads a JSON file.

  Args:
    path: the file.
    longest: the maximum size of the file in bytes.

  Raises:
    OSError: if the file cannot be read.
    ValueError: if the file is too large, invalid, or nested too deeply.
  """
  with _open(path) as file:
    text = file.read(longest + 1)
  if len(text) > longest:
    raise InvalidFileError(f'is longer than {longest:,} bytes')
  return parse_json(text)


def _open(path: files.PathLike) -> BinaryIO:
  """Opens a file. Reading a pipe or a device could take forever."""
  mode = os.stat(path).st_mode
  if stat.S_ISFIFO(mode) or stat.S_ISCHR(mode):
    raise InvalidFileError('is not a regular file')
  return open(path, 'rb')


def parse_json(text: bytes) -> Any:
  """Parses JSON.

  Raises:
    ValueError: if the text is invalid or nested too deeply.
  """
  try:
    return json.loads(text)
  except RecursionError:
    # The traceback of the original error is as deep as the text.
    raise InvalidFileError('is nested too deeply') from None


def sha256(path: files.PathLike) -> str:
  """Returns the checksum of a file, which is read in small chunks.

  Raises:
    OSError: if the file cannot be read.
  """
  digest = hashlib.sha256()
  with _open(path) as file:
    while chunk := file.read(_CHUNK):
      digest.update(chunk)
  return digest.hexdigest()


def check_sha256(path: files.PathLike, checksum: Any) -> None:
  """Raises InvalidFileError if a file has changed, OSError if it is missing."""
  if sha256(path) != checksum:
    raise InvalidFileError('is damaged: its checksum differs')


def read_arrays(
  path: files.PathLike, expected: Shapes, checksum: Any
) -> dict[str, np.ndarray]:
  """Reads the arrays in a file written by `np.savez`.

  Args:
    path: the file.
    expected: shape and dtype of each array. They are compared with the file
      before memory is allocated.
    checksum: the SHA-256 of the file.

  Returns:
    The arrays, by name, in the order of the file.

  Raises:
    OSError: if the file cannot be read.
    InvalidFileError: if the file is damaged or compressed, or contains other
      arrays.
  """
  arrays = sum(_num_bytes(x.shape, x.dtype) for x in expected.values())
  most = arrays + _OVERHEAD * (len(expected) + 1)
  size = os.stat(path).st_size
  if size > most:
    raise InvalidFileError(
      f'is {size:,} bytes; the expected arrays need at most {most:,}'
    )
  check_sha256(path, checksum)
  try:
    with zipfile.ZipFile(path) as archive:
      members = {
        info.filename.removesuffix(_SUFFIX): info for info in archive.infolist()
      }
      found = {name: _header(archive, info) for name, info in members.items()}
      differences = leaves.mismatches(found, expected)
      if differences:
        raise InvalidFileError(
          'contains arrays that do not match the configuration: '
          + shortened(differences)
        )
      return {name: _values(archive, info) for name, info in members.items()}
  except (OSError, InvalidFileError):
    raise
  except Exception as error:  # Libraries may raise any error for such a file.
    raise InvalidFileError(f'is damaged ({one_line(error)})') from error


def _header(
  archive: zipfile.ZipFile, info: zipfile.ZipInfo
) -> jax.ShapeDtypeStruct:
  """Reads an array's shape and dtype, and compares them with its size."""
  name = pathlib.PurePosixPath(info.filename).name[:100]
  # A few compressed bytes can expand without limit, some even while the header
  # is read.
  if info.compress_type != zipfile.ZIP_STORED:
    raise InvalidFileError(
      f'contains the compressed array {name!r}, but bt_acme writes only '
      'uncompressed arrays'
    )
  if info.file_size != info.compress_size:
    raise InvalidFileError(
      f'contains {info.compress_size:,} bytes of {name!r}, but claims '
      f'{info.file_size:,}'
    )
  with archive.open(info) as file:
    version = np.lib.format.read_magic(file)
    if version != (1, 0):
      raise InvalidFileError(
        f'contains {name!r} in format {version} instead of (1, 0)'
      )
    shape, _, dtype = np.lib.format.read_array_header_1_0(file)
    left = info.file_size - file.tell()
  if dtype.kind not in _KINDS:
    raise InvalidFileError(
      f'contains {str(dtype)[:40]} in {name!r}, not numbers'
    )
  if min(shape, default=0) < 0 or _num_bytes(shape, dtype) != left:
    raise InvalidFileError(
      f'contains {left:,} bytes of values in {name!r}, but its header claims '
      f'{dtype} of shape {shape}'
    )
  return jax.ShapeDtypeStruct(shape, dtype)


def _values(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> np.ndarray:
  with archive.open(info) as file:
    return np.lib.format.read_array(file, allow_pickle=False)


def _num_bytes(shape: Any, dtype: Any) -> int:
  return math.prod(shape) * np.dtype(dtype).itemsize
