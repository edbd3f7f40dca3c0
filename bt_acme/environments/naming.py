"""The syntax of environment names, and the makers of environments.

A name consists of a base name and modifiers. A modifier is a colon and a word,
sometimes with a value ('MiniGrid-FourRooms-v0:fixed=3:no_goal'). The order of
modifiers is fixed, so each environment has exactly one name.
"""

import difflib
import math
import re
from typing import (
  Any,
  Callable,
  Dict,
  Iterable,
  List,
  NamedTuple,
  Optional,
  Sequence,
)

import dm_env

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
  make_vector: Optional[Callable[..., vector.VectorEnvironment]] = None
  can_stack: bool = False


class Modifier(NamedTuple):
  """A word after a name that changes the environment.

  Attributes:
    word: the word, for example 'fixed'.
    example: an example for error messages: 'fixed=3'.
    parse: converts the text after '=' to a value; returns None for an invalid
      text.
    default: the value of the word without '='; None if a value is required.
    limits: the limits of the value, for error messages.
  """

  word: str
  example: str
  parse: Callable[[str], Any]
  default: Any = None
  limits: str = ''

  def value(self, written: str) -> Any:
    """Returns the value of 'word' or 'word=text'; None if it is invalid."""
    _, equals, text = written.partition('=')
    return self.parse(text) if equals else self.default


def number(text: str) -> Optional[int]:
  """Parses an integer of at most nine digits, such as a layout's seed."""
  return int(text) if re.fullmatch(r'[0-9]{1,9}', text) else None


def reward(text: str) -> Optional[float]:
  """Parses a finite number, such as a reward; returns None for other texts."""
  try:
    value = float(text)
  except ValueError:
    return None
  return value if math.isfinite(value) else None


def no_value(text: str) -> None:
  """Returns None, because the modifier takes no value and any is invalid."""
  del text


def parse(
  name: str, modifiers: Sequence[Modifier], *, base: Optional[str] = None
) -> Dict[str, Any]:
  """Parses the modifiers of a name.

  Args:
    name: a name with a known base name, with or without modifiers.
    modifiers: all modifiers of this environment, in their fixed order.
    base: the base name; None if it is the text before the first colon.

  Returns:
    The value of each modifier in the name, by its word.

  Raises:
    ValueError: if a modifier is unknown, misplaced, repeated, or has an invalid
      value. The error suggests the nearest valid name.
  """
  known = {modifier.word: modifier for modifier in modifiers}
  base = name.partition(':')[0] if base is None else base
  written = name[len(base) + 1 :].split(':') if name != base else []
  words = [w.partition('=')[0] for w in written]
  values = {
    word: known[word].value(w)
    for word, w in zip(words, written, strict=True)
    if word in known
  }
  in_order = [word for word in known if word in values]
  if words != in_order or None in values.values():
    raise ValueError(
      unknown(
        name,
        [_repaired(base, written, known)],
        'The modifiers, in this order, are '
        + ', '.join(f"':{each.example}'{each.limits}" for each in modifiers)
        + '.',
      )
    )
  return values


def _repaired(
  base: str, written: Sequence[str], known: Dict[str, Modifier]
) -> str:
  """Replaces each modifier of a name with the nearest valid one, in order."""
  kept: Dict[str, str] = {}
  for w in written:
    word = w.partition('=')[0]
    nearest = difflib.get_close_matches(word, known, n=1, cutoff=0.4)
    if not nearest:
      continue
    modifier = known[nearest[0]]
    w = w.replace(word, modifier.word, 1)
    is_good = modifier.value(w) is not None
    kept[modifier.word] = w if is_good else modifier.example
  return ':'.join([base, *(kept[word] for word in known if word in kept)])


def nearest_names(name: str, known: Iterable[str]) -> List[str]:
  """Returns up to three known names that are similar to `name`."""
  by_lower_case = {known_name.lower(): known_name for known_name in known}
  matches = difflib.get_close_matches(name.lower(), by_lower_case, cutoff=0.5)
  return [by_lower_case[match] for match in matches]


def unknown(name: str, nearest: Sequence[str], advice: str) -> str:
  """Returns the error message for an unknown name."""
  question = ', '.join(map(repr, nearest))
  return (
    f'env={name!r} is unknown. '
    + (f'Did you mean {question}? ' if nearest else '')
    + advice
  )
