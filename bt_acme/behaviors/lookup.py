"""Finds the directory of a behavior, given its name, workdir or address.

The behaviors that come with the package have names. Each is a directory that
`Run.export` wrote, in `pretrained/`, with a card `README.md` next to the
parameters: its training, its scores and its limits.
"""

import os
import pathlib

from bt_acme.behaviors import download
from bt_acme.config import run as run_config

_DIRECTORY = pathlib.Path(__file__).with_name('pretrained')


def names() -> tuple[str, ...]:
  """Returns the names of the behaviors that come with the package.

  Example:
    ```python
    for name in bt_acme.behaviors.list():
      print(bt_acme.load_behavior(name).actor_steps)
    ```
  """
  return tuple(found_in(_DIRECTORY))


def found_in(folder: str | pathlib.Path) -> list[str]:
  """Returns the names of the behaviors in a directory, in alphabetical order.

  Args:
    folder: a directory with a subdirectory for each behavior, such as that of a
      bank; may be missing.
  """
  if not os.path.isdir(folder):  # Unlike `glob`, never raises an error.
    return []
  # Names that begin with a dot are those of unfinished exports.
  found = pathlib.Path(folder).glob('[!.]*/behavior.json')
  return sorted(path.parent.name for path in found)


def resolve(behavior: str, *, setting: str = 'behavior') -> str:
  """Returns the directory of a behavior.

  Args:
    behavior: a directory, the workdir of a pre-training run, which contains a
      behavior, one of `names()`, or the address of an archive, which is
      downloaded. An existing directory takes precedence over a name.
    setting: the name of the user's setting for the behavior, for errors.

  Raises:
    ValueError: if the archive at an address cannot be used; see `download`.
  """
  if download.is_address(behavior):
    return download.fetch(behavior, setting=setting)
  if behavior in names() and not os.path.isdir(behavior):
    return str(_DIRECTORY / behavior)
  exported = run_config.RunConfig(workdir=behavior).behavior_folder
  # Also the directory of a bank may contain one that is called `behavior`.
  is_run = os.path.isfile(os.path.join(behavior, 'config.json'))
  return exported if is_run and os.path.isdir(exported) else behavior
