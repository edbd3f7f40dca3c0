"""The pre-trained behaviors that come with the package, by name.

Each is a directory that `Run.export` wrote, in `pretrained/`, with a card
`README.md` next to the parameters: its training, its scores and its limits.
"""

import pathlib
from typing import Tuple

_DIRECTORY = pathlib.Path(__file__).with_suffix('')


def names() -> Tuple[str, ...]:
  """Returns the names of the behaviors that come with the package.

  Example:
    ```python
    for name in bt_acme.behaviors.list():
      print(bt_acme.load_behavior(name).actor_steps)
    ```
  """
  return tuple(
    sorted(path.parent.name for path in _DIRECTORY.glob('*/behavior.json'))
  )


def resolve(behavior: str) -> str:
  """Returns the directory of a behavior.

  Args:
    behavior: a directory, or one of `names()`. An existing directory takes
      precedence over a name.
  """
  if behavior in names() and not pathlib.Path(behavior).exists():
    return str(_DIRECTORY / behavior)
  return behavior
