"""Sets the GitHub account in all links: `make owner OWNER=name`.

The current account is read from the URL in setup.py, initially the placeholder
OWNER. The command can therefore be repeated with another account.
"""

import fnmatch
import os
import pathlib
import re
import sys
from collections.abc import Iterator

_ROOT = pathlib.Path(__file__).resolve().parents[1]
_SETUP = _ROOT / 'setup.py'
_SKIPPED = '_build build dist runs scripts tests __pycache__ *.egg-info'.split()
# Rules of GitHub: letters, digits and single hyphens.
_ACCOUNT = r'[A-Za-z\d]+(?:-[A-Za-z\d]+)*'


def _files() -> Iterator[pathlib.Path]:
  """Yields the files of the repository; setup.py comes last.

  An interrupted command can then be repeated, because setup.py still states the
  previous account.
  """
  for directory, subdirectories, names in os.walk(_ROOT):
    subdirectories[:] = [
      name
      for name in subdirectories
      if (name == '.github' or name[0] != '.')
      and not any(fnmatch.fnmatch(name, pattern) for pattern in _SKIPPED)
    ]
    paths = (pathlib.Path(directory, name) for name in sorted(names))
    # A link may lead nowhere, and reading a pipe would block.
    yield from (path for path in paths if path.is_file() and path != _SETUP)
  yield _SETUP


def main(arguments: list[str]) -> None:
  """Replaces the current account in every text file and lists changed files."""
  if len(arguments) != 1 or not re.fullmatch(_ACCOUNT, arguments[0]):
    sys.exit(
      f'OWNER={" ".join(arguments)} is not the name of a GitHub account.'
    )
  setup = _SETUP.read_text()
  (current,) = re.findall(rf'github\.com/({_ACCOUNT})/bt_acme', setup)
  link = re.compile(
    rf'(github(?:\.com)?/){current}(?=/bt_acme)|\b{current}(?=\.github\.io/bt_acme)'
  )
  for path in _files():
    try:
      before = path.read_text()
    except UnicodeDecodeError:
      continue
    after = link.sub(lambda match: f'{match[1] or ""}{arguments[0]}', before)
    if after != before:
      path.write_text(after)
      print(path.relative_to(_ROOT))


if __name__ == '__main__':
  main(sys.argv[1:])
