"""Serializes values as JSON and bytes, because pickles are unsafe to load.

Lists, numbers, strings, booleans and None are stored as JSON. A tuple, dict,
NumPy scalar, bytes object or array is stored as a JSON object with one item,
whose name is the type. The contents of bytes and arrays are stored separately,
in parts that are numbered in order of occurrence. A bytes object that occurs
several times is stored as one part.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any, BinaryIO, Literal

import jax.numpy as jnp
import numpy as np

from bt_acme import untrusted

# The supported dtypes; others could contain Python objects.
_DTYPES: Mapping[str, np.dtype] = {
  np.dtype(name).str: np.dtype(name)
  for name in (
    *('bool', 'int8', 'int16', 'int32', 'int64', 'uint8', 'uint16', 'uint32'),
    *('uint64', 'float16', 'float32', 'float64', 'complex64', 'complex128'),
    jnp.bfloat16,
  )
}
_PLAIN = (type(None), bool, int, float, str)

# The number and the contents of each part, bytes or a C-contiguous array, by
# its id().
_Parts = dict[int, tuple[int, Any]]


def dump(value: Any, file: BinaryIO) -> None:
  """Writes a value to a file: a line of JSON, then its parts.

  Args:
    value: None, bool, int, float, str, bytes, NumPy arrays and scalars, in
      lists, tuples and dicts.
    file: a file open for writing.

  Raises:
    ValueError: if the value contains any other type; nothing is written then.
  """
  parts: _Parts = {}
  tree = _encode(value, parts)
  sizes = [memoryview(part).nbytes for _, part in parts.values()]
  file.write(json.dumps({'sizes': sizes, 'tree': tree}).encode() + b'\n')
  for _, part in parts.values():
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
  parts = {number: file.read(size) for number, size in enumerate(sizes)}
  return _decode(body['tree'], parts)


def _encode(value: Any, parts: _Parts) -> Any:
  """Returns a value as JSON, and adds its parts."""
  kind = type(value)
  if kind in _PLAIN:
    return value
  if kind is list:
    return [_encode(item, parts) for item in value]
  if kind is tuple:
    return {'tuple': _encode(list(value), parts)}
  if kind is dict:
    return {'dict': [_encode(list(pair), parts) for pair in value.items()]}
  if kind is bytes:
    return {'bytes': _number_of(value, parts)}
  if kind is np.ndarray and value.dtype.str in _DTYPES:
    return {'array': _encode_array(value, parts)}
  if isinstance(value, np.generic) and value.dtype.kind in 'biuf':
    return {'scalar': [value.dtype.str, value.item()]}
  raise ValueError(
    f'{kind.__name__} cannot be saved. state() of an environment or a behavior '
    'must return numbers, strings, bytes and arrays, in lists, tuples and '
    'dicts.'
  )


def _encode_array(array: np.ndarray, parts: _Parts) -> list[Any]:
  is_fortran = array.flags.f_contiguous and not array.flags.c_contiguous
  order: Literal['C', 'F'] = 'F' if is_fortran else 'C'
  flat = np.ascontiguousarray(array.reshape(-1, order=order))
  number = _number_of(flat.view(np.uint8), parts)
  return [array.dtype.str, list(array.shape), order, number]


def _number_of(part: Any, parts: _Parts) -> int:
  """Returns the number of a part, which is added unless it exists already."""
  # `parts` keeps a reference to the part, so its id() cannot be reused.
  return parts.setdefault(id(part), (len(parts), part))[0]


def _decode(tree: Any, parts: dict[int, bytes]) -> Any:
  """Returns the value of JSON; removes the parts of arrays."""
  if isinstance(tree, list):
    return [_decode(item, parts) for item in tree]
  if not isinstance(tree, dict):
    return tree
  ((kind, content),) = tree.items()
  return _DECODERS[kind](content, parts)


def _decode_array(described: list[Any], parts: dict[int, bytes]) -> np.ndarray:
  dtype, shape, order, number = described
  # The copy is writable.
  flat = np.frombuffer(bytearray(parts.pop(number)), _DTYPES[dtype])
  return flat.reshape(shape, order=order)


_DECODERS: Mapping[str, Callable[[Any, dict[int, bytes]], Any]] = {
  'tuple': lambda items, parts: tuple(_decode(items, parts)),
  'dict': lambda pairs, parts: dict(_decode(pairs, parts)),
  'bytes': lambda number, parts: parts[number],
  'array': _decode_array,
  'scalar': lambda described, _: _DTYPES[described[0]].type(described[1]),
}
