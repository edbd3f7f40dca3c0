"""Tests that untrusted files are refused in one line and without memory."""

import contextlib
import os
import pickle
import re
import tracemalloc
import zipfile

import jax
import numpy as np
import pytest

from bt_acme import untrusted
from tests import python

_MB = 1 << 20
MAGIC = b'\x93NUMPY'


def header(shape, descr='<f4'):
  """Returns the header of an array's file."""
  text = repr({'descr': descr, 'fortran_order': False, 'shape': shape})
  text += ' ' * (-len(text) % 16) + '\n'
  return MAGIC + b'\x01\x00' + len(text).to_bytes(2, 'little') + text.encode()


def write_zip(path, members, compression=zipfile.ZIP_STORED):
  with zipfile.ZipFile(path, 'w', compression) as archive:
    for name, data in members.items():
      archive.writestr(f'{name}.npy', data)


@contextlib.contextmanager
def one_line_error(
  message=None, error=ValueError, *, length=1200, megabytes=64
):
  """Checks the error of a block, its length, and the peak memory."""
  tracemalloc.start()
  try:
    with pytest.raises(error, match=message) as info:
      yield info
    _, peak = tracemalloc.get_traced_memory()
  finally:
    tracemalloc.stop()
  assert '\n' not in str(info.value) and len(str(info.value)) < length
  assert peak < megabytes * _MB


@pytest.fixture(name='path')
def make_path(tmp_path):
  return tmp_path / 'arrays.npz'


ARRAYS = {
  'a::b': np.arange(6, dtype=np.float32).reshape(2, 3),
  'fortran': np.asfortranarray(np.ones([3, 4], np.int32)),
  'empty': np.zeros([0, 5], bool),
  'scalar': np.uint64(2**64 - 1),
}


def shapes_of(**arrays):
  return {
    name: jax.ShapeDtypeStruct(array.shape, array.dtype)
    for name, array in arrays.items()
  }


def read(path, expected):
  """Reads arrays with a valid checksum."""
  return untrusted.read_arrays(path, expected, untrusted.sha256(path))


def test_arrays_are_read(path):
  np.savez(path, **ARRAYS)
  found = read(path, shapes_of(**ARRAYS))
  assert list(found) == list(ARRAYS)
  for name, array in ARRAYS.items():
    np.testing.assert_array_equal(found[name], array)
    assert found[name].dtype == array.dtype
  assert found['fortran'].flags.f_contiguous


def test_a_file_larger_than_its_arrays_is_not_read(path):
  np.savez(path, **ARRAYS)
  os.truncate(path, 10**12)  # A sparse file takes no disk space.
  with pytest.raises(
    untrusted.InvalidFileError, match='is 1,000,000,000,000 bytes; the'
  ):
    untrusted.read_arrays(path, shapes_of(**ARRAYS), '')


def test_another_checksum_is_an_error(path):
  np.savez(path, **ARRAYS)
  for checksum in ('', None, 64 * '0'):
    with pytest.raises(untrusted.InvalidFileError, match='checksum differs'):
      untrusted.read_arrays(path, shapes_of(**ARRAYS), checksum)


def refused(path, message):
  """Checks an error that occurs whatever the expected arrays are."""
  expected = {'y': jax.ShapeDtypeStruct((128, 1024, 1024), np.uint8)}
  error = untrusted.InvalidFileError
  with one_line_error(message, error, length=700, megabytes=8):
    read(path, expected)


def test_shapes_are_compared_before_arrays_are_read(path):
  np.savez(path, x=np.zeros([64, 1024, 1024], np.uint8))
  refused(
    path,
    r'configuration: x is \(64, 1024, 1024\), expected None; y is None, '
    r'expected \(128, 1024, 1024\)$',
  )


@pytest.mark.parametrize(
  'compression', [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA]
)
def test_zip_bomb(path, compression):
  size = 16 * _MB
  write_zip(path, {'x': header((size // 4,)) + bytes(size)}, compression)
  assert path.stat().st_size < _MB
  refused(path, "contains the compressed array 'x.npy'")


VALUES = 'contains 400 bytes of values in .*'


@pytest.mark.parametrize(
  'data, message',
  [
    (header((10**12,)) + bytes(400), VALUES + '1000000000'),
    (header((10**30, 10**30)) + bytes(400), VALUES),
    (header((99,)) + bytes(400), VALUES + r'float32 of shape \(99,\)'),
    (header((101,)) + bytes(400), VALUES),
    (header((-10, -10)) + bytes(400), VALUES),
    (header((50,), '|O') + bytes(400), "contains object in 'x.npy', not num"),
    (header((100,), '<U1') + bytes(400), "contains <U1 in 'x.npy', not num"),
    (header((100,), [('a', '<f4')]) + bytes(400), 'not numbers'),
    (header((100,), 'nothing') + bytes(400), 'is damaged'),
    (header(100) + bytes(400), 'is damaged'),
    (MAGIC + b'\x01\x00\x10\x27' + b'(' * 10_000, 'is damaged'),
    (MAGIC + b'\x01\x00\x08\x00{[]: 1}\n', 'is damaged'),
    (MAGIC + b'\x02\x00\xff\xff\xff\xff', r"'x.npy' in format \(2, 0\)"),
    (MAGIC + b'\x01\x00\xff\xff', 'is damaged'),
    (b'', 'is damaged'),
    (pickle.dumps(print), 'is damaged'),
  ],
)
def test_invalid_header(path, data, message):
  write_zip(path, {'x': data})
  refused(path, message)


def test_invalid_zip_directory(path):
  np.savez(path, x=np.zeros(100, np.float32))
  data = bytearray(path.read_bytes())
  entry = data.index(b'PK\x01\x02') + 24  # The size of the first member.
  data[entry : entry + 4] = (2**32 - 2).to_bytes(4, 'little')
  path.write_bytes(data)
  refused(path, r'contains 528 bytes of .* claims 4,294,967,294')


class Evil:
  """An object whose pickle creates a directory when loaded."""

  def __init__(self, path):
    self._path = path

  def __reduce__(self):
    return os.mkdir, (str(self._path),)


def test_objects_are_not_unpickled(path, tmp_path):
  trace = tmp_path / 'executed'
  np.savez(path, x=np.array([Evil(trace)], object))
  refused(path, 'is damaged|not numbers')
  assert not trace.exists()
  with np.load(path, allow_pickle=True) as arrays:
    arrays['x']
  assert trace.exists()  # np.load executes the pickle.


@pytest.mark.parametrize('kept', [0, 1, 30, 200, 0.5, 0.99])
def test_truncated_file(path, kept):
  np.savez(path, x=np.zeros(1000, np.float32), y=np.zeros(1000, np.float32))
  size = path.stat().st_size
  os.truncate(path, kept if kept >= 1 else int(kept * size))
  refused(path, 'is damaged')


def test_a_changed_byte_is_detected_or_has_no_effect(path):
  array = np.arange(100, dtype=np.float32)
  np.savez(path, x=array, y=array)
  original = path.read_bytes()
  for place in range(0, len(original), 16):
    data = bytearray(original)
    data[place] ^= 0x55
    path.write_bytes(data)
    try:
      found = read(path, shapes_of(x=array, y=array))
    except (untrusted.InvalidFileError, OSError) as error:
      assert '\n' not in str(error)
    else:
      for value in found.values():
        np.testing.assert_array_equal(value, array)
      assert not 300 <= place < 500  # These bytes are values.


@pytest.mark.parametrize(
  'text, message',
  [
    ('[' * 100_000, 'is nested too deeply'),
    ('{"a":' * 50_000, 'is nested too deeply'),
    (' ' * (_MB + 1), 'is longer than 1,048,576 bytes'),
    ('{"a": 1', 'Expecting'),
    ('', 'Expecting'),
    ('\xff', 'Expecting'),
  ],
)
def test_invalid_json(tmp_path, text, message):
  (tmp_path / 'card').write_text(text)
  with one_line_error(message):
    untrusted.read_json(tmp_path / 'card')


def test_a_pipe_or_a_device_is_not_read(tmp_path):
  os.mkfifo(tmp_path / 'pipe')
  for path in (tmp_path / 'pipe', '/dev/zero'):
    for read in (untrusted.read_json, untrusted.sha256):
      with one_line_error('is not a regular file'):
        read(path)


def test_an_error_is_one_line_of_limited_length():
  assert untrusted.one_line(KeyError('a')) == "KeyError: 'a'"
  assert untrusted.one_line(MemoryError()) == 'MemoryError'
  long = untrusted.one_line(ValueError('a\nb ' * 10_000))
  assert '\n' not in long and len(long) < 420 and long.endswith(' [...]')


# Calls that unpickle or execute text; `import_rules` finds modules.
_UNSAFE = re.compile(
  r'allow_pickle=(?!False)|\b(?:j?np|numpy)\.load\(|\bread_pickle\('
  r'|\bread_array\((?![^)]*allow_pickle=False)'
  r'|(?<![\w.])(?:eval|exec|__import__)\('
)


def test_the_package_neither_unpickles_nor_executes_text():
  folders = (python.ROOT / name for name in ('bt_acme', 'launch'))
  paths = [path for folder in folders for path in folder.rglob('*.py')]
  assert len(paths) > 100
  assert [path for path in paths if _UNSAFE.search(path.read_text())] == []
