"""Serializes values as JSON and bytes, because pickles are unsafe to load.

Lists, numbers, strings, booleans and None are stored as JSON. A tuple, dict,
NumPy scalar, bytes object or array is stored as a JSON object with one item,
whose name is the type. The contents of bytes and arrays are stored separately,
in parts that are numbered in order of occurrence. A bytes object that occurs
several times is stored as one part.
"""

import json
import math
from collections.abc import Callable, Mapping
from typing import Any, BinaryIO, Literal

import numpy as np

from bt_acme import untrusted

# The supported dtypes; others could contain Python objects.
_DTYPES: Mapping[str, np.dtype] = {
  np.dtype(name).str: np.dtype(name)
  for name in (
    *('bool', 'int8', 'int16', 'int32', 'int64', 'uint8', 'uint16', 'uint32'),
    *('uint64', 'float16', 'float32', 'float64', 'complex64', 'complex128'),
  )
}
_PLAIN = (type(None), bool, int, float, str)


def dump(value: Any, file: BinaryIO) -> None:
  """Writes a value to a file: a line of JSON, then its parts.

  Args:
    value: None, bool, int, float, str, bytes, NumPy arrays and scalars, in
      lists, tuples and dicts.
    file: a file open for writing.

  Raises:
    ValueError: if the value contains any other type; nothing is written then.
  """
  encoder = _Encoder()
  tree, parts = encoder.encode(value), encoder.parts
  body = {'sizes': [memoryview(part).nbytes for part in parts], 'tree': tree}
  file.write(json.dumps(body).encode() + b'\n')
  for part in parts:
    file.write(part)


def load(file: BinaryIO, end: int) -> Any:
  """Reads a value that `dump` wrote; treats the file as untrusted.

  Args:
    file: a file open at the start of the value.
    end: the offset of the end of the value, at most that of the file.

  Raises:
    Exception: of any type, if `dump` cannot have written this value.
  """
  body = untrusted.parse_json(file.readline())
  sizes, left = body['sizes'], end - file.tell()
  if sum(sizes) != left or min(sizes, default=0) < 0:
    raise untrusted.InvalidFileError(
      f'the {left:,} bytes of data do not match the listed sizes'
    )
  return _Decoder(sizes, file).decode(body['tree'])


class _Encoder:
  """Encodes one value as JSON, and collects its parts.

  Attributes:
    parts: the contents of bytes and arrays, as bytes or C-contiguous arrays.
  """

  def __init__(self) -> None:
    self.parts: list[Any] = []
    self._numbers: dict[int, int] = {}  # Part number of bytes, by id().

  def encode(self, value: Any) -> Any:
    kind = type(value)
    if kind in _PLAIN:
      return value
    if kind is list:
      return [self.encode(item) for item in value]
    if kind is tuple:
      return {'tuple': [self.encode(item) for item in value]}
    if kind is dict:
      pairs = ([self.encode(k), self.encode(v)] for k, v in value.items())
      return {'dict': list(pairs)}
    if kind is bytes:
      return {'bytes': self._number_of(value)}
    if kind is np.ndarray and value.dtype.str in _DTYPES:
      return {'array': self._array(value)}
    if isinstance(value, np.generic) and value.dtype.kind in 'biuf':
      return {'scalar': [value.dtype.str, value.item()]}
    raise ValueError(
      f'{kind.__name__} cannot be saved. state() of an environment or a '
      'behavior must return numbers, strings, bytes and arrays, in lists, '
      'tuples and dicts.'
    )

  def _number_of(self, value: bytes) -> int:
    # The caller keeps a reference to the value, so its id() cannot be reused.
    number = self._numbers.setdefault(id(value), len(self.parts))
    if number == len(self.parts):
      self.parts.append(value)
    return number

  def _array(self, array: np.ndarray) -> list[Any]:
    is_fortran = array.flags.f_contiguous and not array.flags.c_contiguous
    order: Literal['C', 'F'] = 'F' if is_fortran else 'C'
    flat = array.reshape(-1, order=order)
    self.parts.append(np.ascontiguousarray(flat).view(np.uint8))
    return [array.dtype.str, list(array.shape), order, len(self.parts) - 1]


class _Decoder:
  """Reads the parts of one value in order."""

  def __init__(self, sizes: list[int], file: BinaryIO):
    self._sizes, self._file = sizes, file
    self._next = 0
    self._bytes: dict[int, bytes] = {}
    self._decoders: dict[str, Callable[[Any], Any]] = {
      'tuple': lambda items: tuple(self.decode(item) for item in items),
      'dict': lambda pairs: {self.decode(k): self.decode(v) for k, v in pairs},
      'bytes': self._shared_bytes,
      'array': lambda described: self._array(*described),
      'scalar': lambda described: _DTYPES[described[0]].type(described[1]),
    }

  def decode(self, tree: Any) -> Any:
    if isinstance(tree, list):
      return [self.decode(item) for item in tree]
    if isinstance(tree, dict):
      ((kind, content),) = tree.items()
      return self._decoders[kind](content)
    return tree

  def _take(self, number: int) -> int:
    """Returns the size of the next part, checking its number."""
    if number != self._next:
      raise ValueError(f'expected part {self._next}, found part {number}')
    self._next += 1
    return self._sizes[number]

  def _shared_bytes(self, number: int) -> bytes:
    if number not in self._bytes:
      self._bytes[number] = self._file.read(self._take(number))
    return self._bytes[number]

  def _array(
    self, dtype: str, shape: list[int], order: Any, number: int
  ) -> np.ndarray:
    kind = _DTYPES[dtype]
    size = self._take(number)
    if min(shape, default=0) < 0 or math.prod(shape) * kind.itemsize != size:
      raise ValueError(f'{size} bytes do not fit {dtype} of shape {shape}')
    flat = np.empty(size, np.uint8)
    self._file.readinto(flat)  # type: ignore[attr-defined]
    return flat.view(kind).reshape(shape, order=order)
