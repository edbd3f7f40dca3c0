"""The syntax of environment names, and the makers of environments.

A name consists of a base name and modifiers. A modifier is a colon and a word,
sometimes with a value ('MiniGrid-FourRooms-v0:fixed=3:no_goal'). The order of
modifiers is fixed.

A run that plays several environments has a comma-separated list of names, which
are assigned to its environments 0, 1, ... in rotation.
"""

import math
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import dm_env
import numpy as np

from bt_acme.environments import vector


class Maker(NamedTuple):
  """Creates the environments of one name.

  Attributes:
    make: takes `seed` and environment-specific options, and creates the
      environment.
    make_vector: takes the seeds of N environments and `stack`, and creates all
      of them; None if the environments are stepped sequentially instead.
    can_stack: whether `make` takes `stack`, the number of frames in an
      observation.
  """

  make: Callable[..., dm_env.Environment]
  make_vector: Callable[..., vector.VectorEnvironment] | None = None
  can_stack: bool = False


class Modifier(NamedTuple):
  """A word after a name that changes the environment.

  Attributes:
    example: the word, with an example of a value if it can have one: 'fixed=3'.
    parse: converts the text after '=' to a value; returns None for an invalid
      text.
    default: the value of the word without '='; None if a value is required.
    limits: the limits of the value, for error messages.
  """

  example: str
  parse: Callable[[str], Any] = lambda text: None
  default: Any = None
  limits: str = ''


def seed_of(seed: int, index: int) -> int:
  """Derives the seed of environment `index`, for independent random streams.

  Example:
    ```python
    from bt_acme import environments

    seeds = [environments.seed_of(0, index) for index in range(16)]
    ```
  """
  return int(np.random.SeedSequence([seed, index]).generate_state(1)[0])


def names_in(names: str) -> tuple[str, ...]:
  """Returns the names in a comma-separated list; usually a single name.

  Example:
    ```python
    from bt_acme import environments

    assert environments.names_in('pong, breakout') == ('pong', 'breakout')
    ```
  """
  if not isinstance(names, str):
    raise ValueError(f'env={names!r} is not a name. Pass a string.')
  return tuple(name.strip(' ') for name in names.split(','))


def name_of(names: str, index: int) -> str:
  """Returns the name of environment `index` in a run that plays `names`.

  Example:
    ```python
    from bt_acme import environments

    assert environments.name_of('pong,breakout', index=3) == 'breakout'
    ```
  """
  separate = names_in(names)
  return separate[index % len(separate)]


def number(text: str) -> int | None:
  """Parses an integer of at most nine digits, such as a layout's seed."""
  return int(text) if re.fullmatch(r'[0-9]{1,9}', text) else None


def reward(text: str) -> float | None:
  """Parses a finite number, such as a reward; returns None for other texts."""
  try:
    value = float(text)
  except ValueError:
    return None
  return value if math.isfinite(value) else None


def parse(
  name: str, modifiers: Sequence[Modifier], *, base: str | None = None
) -> dict[str, Any]:
  """Parses the modifiers of a name.

  Args:
    name: a name with a known base name, with or without modifiers.
    modifiers: all modifiers of this environment, in their fixed order.
    base: the base name; None if it is the text before the first colon.

  Returns:
    The value of each modifier in the name, by its word.

  Raises:
    ValueError: if a modifier is unknown, misplaced, repeated, or has an invalid
      value.
  """
  rest = name[len(name.partition(':')[0] if base is None else base) :]
  values = {}
  for modifier in modifiers:
    word = modifier.example.partition('=')[0]
    match = re.match(rf':{word}(=[^:]*)?(?=:|\Z)', rest)
    if match:
      text = match[1]
      values[word] = modifier.parse(text[1:]) if text else modifier.default
      rest = rest[match.end() :]
  if rest or None in values.values():
    examples = [f"':{each.example}'{each.limits}" for each in modifiers]
    raise ValueError(
      f'env={name!r} is unknown. The modifiers, in this order, are '
      f'{", ".join(examples)}.'
    )
  return values
