"""A run as one file, which is complete or absent, and belongs to that run only.

The first line says in JSON which run it is, and the second one what its state
is, as `serialization` writes it. The bytes of its arrays follow, and then the
SHA-256 of all that comes before it. Nothing is pickled, because the file may be
a stranger's.
"""

import hashlib
import io
import json
from typing import Any, BinaryIO, Dict, Mapping

import jax
import jaxlib
import numpy as np

from bt_acme import assembly, files, untrusted, version
from bt_acme import config as config_lib
from bt_acme.runtime import serialization, workdir

_FORMAT = 'bt_acme run 3'
# Another version of these may compute something else.
_VERSIONS = {
  'bt_acme': version.__version__,
  'jax': jax.__version__,
  'jaxlib': jaxlib.__version__,
  'numpy': np.__version__,
}
_LONGEST_HEADER = 1 << 24  # Bytes.
_LONGEST_MESSAGE = 1000
_CHUNK = 1 << 20


def identity(agent: assembly.Agent, **settings: Any) -> Dict[str, Any]:
  """Returns what a state depends on without holding it.

  Args:
    agent: the agent of the run.
    **settings: what else distinguishes the run, anything that JSON can hold.

  Returns:
    The identity, which `write` and `read` take.
  """
  return {
    'agent': type(agent.config).__name__,
    **config_lib.to_dict(agent.config),
    'environment': agent.spec._asdict(),
    'behaviors': [
      [behavior.name, _checksum(behavior.params())]
      for behavior in agent.behaviors
    ],
    'behavior_weights': agent.behavior_weights,
    **settings,
    **_VERSIONS,
  }


def _checksum(params: Any) -> str:
  """Returns what tells the parameters of two behaviors apart."""
  digest = hashlib.sha256()
  for leaf in jax.tree.leaves(params):
    digest.update(np.asarray(leaf).tobytes())
  return digest.hexdigest()


def write(path: files.PathLike, whose: Mapping[str, Any], state: Any) -> None:
  """Writes a run, replacing a file that is there.

  Args:
    path: the file.
    whose: the identity of the run.
    state: its state: numbers, strings, bytes and arrays of NumPy in lists,
      tuples and dicts.

  Raises:
    OSError: if it cannot be written; the file is then as it was.
    ValueError: if the state holds anything else.
  """
  encoded = serialization.encode(state)
  lines = (
    {'format': _FORMAT, 'identity': whose},
    {'sizes': encoded.sizes, 'tree': encoded.tree},
  )
  texts = [json.dumps(line).encode() + b'\n' for line in lines]
  digest = hashlib.sha256()
  with files.new_file(path) as file:
    for part in (*texts, *encoded.parts):
      digest.update(part)
      file.write(part)
    file.write(digest.digest())


def read(path: files.PathLike, whose: Mapping[str, Any]) -> Any:
  """Reads the state of a run.

  Args:
    path: a file that `write` wrote.
    whose: the identity of the run that is to go on.

  Raises:
    ValueError: if the file is missing, foreign or damaged, or of another run.
  """
  try:
    with open(path, 'rb') as file:
      _check_identity(path, file.readline(_LONGEST_HEADER), whose)
      start = file.tell()
      _check_sum(file)
      file.seek(start)
      return _read_state(file)
  except untrusted.InvalidFileError as error:
    raise ValueError(
      f'{path} {error}: go on from an earlier file, or start the run anew.'
    ) from error
  except OSError as error:
    raise ValueError(
      f'{path} cannot be read ({error}): name a file that a run was saved to.'
    ) from error


def _check_identity(
  path: files.PathLike, header: bytes, whose: Mapping[str, Any]
) -> None:
  """Refuses a file with another format, or that of another run."""
  try:
    saved = untrusted.parse_json(header)
    if saved['format'] != _FORMAT:
      raise ValueError(saved['format'])
    saved = _nameless(saved['identity'])
  except (ValueError, LookupError, TypeError, AttributeError):
    raise ValueError(
      f'{path} is no saved run of this version: name a file that it saved a '
      'run to.'
    ) from None
  own = _nameless(json.loads(json.dumps(whose)))
  found = workdir.describe_differences(saved, own)
  if found:
    raise ValueError(
      f'{path} belongs to another run: {found[:_LONGEST_MESSAGE]}; go on with '
      'the settings and versions of that run, or start a new one.'
    )


def _check_sum(file: BinaryIO) -> None:
  """Refuses a file that is damaged."""
  digest = hashlib.sha256()
  left = file.seek(0, io.SEEK_END) - digest.digest_size
  file.seek(0)
  while left > 0 and (chunk := file.read(min(left, _CHUNK))):
    digest.update(chunk)
    left -= len(chunk)
  if file.read() != digest.digest():
    raise untrusted.InvalidFileError(
      'is incomplete or damaged (its checksum differs)'
    )


def _read_state(file: BinaryIO) -> Any:
  """Reads what follows the first line, of a file that is not damaged."""
  try:
    body = untrusted.parse_json(file.readline())
    sizes, tree = body['sizes'], body['tree']
    start = file.tell()
    left = file.seek(0, io.SEEK_END) - hashlib.sha256().digest_size - start
    if sum(sizes) != left or min(sizes, default=0) < 0:
      raise ValueError(f'{left:,} bytes are not what it says')
  except (ValueError, KeyError, TypeError) as error:
    raise untrusted.InvalidFileError(
      f'is damaged ({untrusted.one_line(error)})'
    ) from error
  file.seek(start)
  return serialization.decode(tree, sizes, file)


def _nameless(identity: Mapping[str, Any]) -> Dict[str, Any]:
  """Leaves out the names of behaviors that have parameters to compare.

  A behavior that was exported is called as its folder is, which may move.
  """
  named = identity.get('behaviors', [])
  behaviors = [x if x[1] == _checksum({}) else x[1] for x in named]
  return {**identity, 'behaviors': behaviors}
