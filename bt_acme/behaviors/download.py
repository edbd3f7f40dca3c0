"""Downloads behaviors from addresses `https://.../NAME.tar.gz#sha256=DIGEST`.

The server need not be trusted: an archive is unpacked only if its SHA-256 is
the one that the user gives. The unpacked directory stays in the user's cache.
"""

import gzip
import hashlib
import io
import os
import pathlib
import re
import tarfile
import urllib.parse
import urllib.request

from bt_acme import compilation_cache, files, untrusted
from bt_acme.config import checks

_LARGEST = 1 << 28  # Bytes of an archive, packed or unpacked.
_TIMEOUT = 60.0  # Seconds without any data from the server.
_DESCRIPTION = 'behavior.json'
# Redirections to http fail, because it has no handler here.
_HANDLERS = (
  urllib.request.HTTPDefaultErrorHandler,
  urllib.request.HTTPErrorProcessor,
  urllib.request.HTTPRedirectHandler,
  urllib.request.HTTPSHandler,
  urllib.request.ProxyHandler,
  urllib.request.UnknownHandler,
)


def is_address(behavior: str) -> bool:
  """Returns whether a text is an address rather than a directory."""
  return '://' in behavior


def fetch(address: str, *, setting: str) -> str:
  """Returns the directory of a behavior, which is downloaded only once.

  Args:
    address: the https address of a `.tar.gz` archive of the behavior, followed
      by `#sha256=` and the SHA-256 of the archive.
    setting: the name of the user's setting for the address, for errors.

  Raises:
    ValueError: if the address does not begin with https or has no checksum, or
      if the archive cannot be downloaded or stored, has another checksum, or
      contains anything but files and one behavior.
  """
  subject = f'{setting}={address!r}'
  url, _, digest = address.partition('#sha256=')
  checks.require(
    url.startswith('https://'),
    f'{subject} is not an https address. Use https, or download the archive, '
    'unpack it and pass its directory.',
  )
  checks.require(
    re.fullmatch('[0-9a-fA-F]{64}', digest) is not None,
    f'{subject} has no valid checksum. Append #sha256= and the 64 digits of '
    "the archive's SHA-256 that its author published.",
  )
  path = urllib.parse.unquote(urllib.parse.urlsplit(url).path)
  name = re.sub(r'(\.tar)?\.\w+$', '', pathlib.PurePosixPath(path).name)
  name = re.sub(r'[^\w.-]', '_', name).strip('.') or 'behavior'
  folder = compilation_cache.root() / 'behaviors' / digest.lower() / name
  try:
    if not (folder / _DESCRIPTION).is_file():
      contents = _unpack(_download(url, digest.lower()))
      with files.new_folder(folder, cleans=False) as temporary:
        for file_name, data in contents.items():
          (temporary / file_name).write_bytes(data)
  except untrusted.InvalidFileError as error:
    raise ValueError(f'{subject} {error}.') from error
  except OSError as error:
    # Another process may have stored the same files at the same time.
    if not os.path.isfile(folder / _DESCRIPTION):
      raise ValueError(
        f'{subject} cannot be stored: {error}. Set XDG_CACHE_HOME to a '
        'directory that is writable.'
      ) from error
  return str(folder)


def _download(url: str, digest: str) -> bytes:
  """Returns the contents of a file that has the given checksum."""
  opener = urllib.request.OpenerDirector()
  for handler in _HANDLERS:
    opener.add_handler(handler())
  try:
    with opener.open(url, timeout=_TIMEOUT) as response:
      data: bytes = response.read(_LARGEST + 1)
  except Exception as error:  # A server can cause errors of many types.
    raise untrusted.InvalidFileError(
      f'cannot be downloaded ({untrusted.one_line(error)}). Check the address '
      'and the network connection'
    ) from error
  _check_length(data)
  found = hashlib.sha256(data).hexdigest()
  if found != digest:
    raise untrusted.InvalidFileError(
      f'has the SHA-256 {found}: the file is not the one that was published. '
      'Compare the address and the checksum with those of its author'
    )
  return data


def _unpack(data: bytes) -> dict[str, bytes]:
  """Returns the files next to the archive's `behavior.json`, by name."""
  found: dict[pathlib.PurePosixPath, bytes] = {}
  try:
    with gzip.open(io.BytesIO(data)) as packed:
      unpacked = packed.read(_LARGEST + 1)
    _check_length(unpacked)
    with tarfile.open(fileobj=io.BytesIO(unpacked), mode='r:') as archive:
      for member in archive:
        path = pathlib.PurePosixPath(member.name)
        # A sparse file can be much larger than the archive.
        is_plain = member.isreg() and not member.issparse()
        if not (is_plain or member.isdir()) or {'/', '..'} & {*path.parts}:
          raise untrusted.InvalidFileError(
            f'contains {untrusted.shortened(member.name)!r}, which is not a '
            'plain file or leads out of the directory. Pack only files and '
            'directories'
          )
        content = archive.extractfile(member)
        if content is not None:
          found[path] = content.read()
  except untrusted.InvalidFileError:
    raise
  except Exception as error:  # Libraries may raise any error for such a file.
    raise untrusted.InvalidFileError(
      f'is not a valid .tar.gz archive ({untrusted.one_line(error)}). Pack the '
      'directory with `tar -czf NAME.tar.gz NAME`'
    ) from error
  folders = [path.parent for path in found if path.name == _DESCRIPTION]
  if len(folders) != 1:
    raise untrusted.InvalidFileError(
      f'contains {len(folders)} files {_DESCRIPTION} instead of one. Pack the '
      'directory of one behavior'
    )
  return {p.name: data for p, data in found.items() if p.parent == folders[0]}


def _check_length(data: bytes) -> None:
  if len(data) > _LARGEST:
    raise untrusted.InvalidFileError(
      f'is larger than {_LARGEST:,} bytes, packed or unpacked. Download and '
      'unpack it yourself, and pass its directory'
    )
