"""Sets the GitHub account in all links: `make owner OWNER=name`.

The current account is read from the URL in setup.py, initially the placeholder
OWNER. The command can therefore be repeated with another account.
"""

import os
import pathlib
import re
import sys
from typing import Iterator, List

_ROOT = pathlib.Path(__file__).resolve().parents[1]
_SKIPPED = {'build', 'dist', 'runs', 'scripts', 'tests', '__pycache__'}
# Rules of GitHub: letters, digits and single hyphens.
_ACCOUNT = r'[A-Za-z\d]+(?:-[A-Za-z\d]+)*'


def _files() -> Iterator[pathlib.Path]:
  for directory, subdirectories, names in os.walk(_ROOT):
    subdirectories[:] = [
      name
      for name in subdirectories
      if name not in _SKIPPED and (name == '.github' or name[0] != '.')
    ]
    yield from (pathlib.Path(directory, name) for name in sorted(names))


def main(arguments: List[str]) -> None:
  """Replaces the current account in every text file and lists changed files."""
  if len(arguments) != 1 or not re.fullmatch(_ACCOUNT, arguments[0]):
    sys.exit(
      f'OWNER={" ".join(arguments)} is not the name of a GitHub account.'
    )
  setup = (_ROOT / 'setup.py').read_text()
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
