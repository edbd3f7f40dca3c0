"""The syntax of the names of environments, and what makes one by its name.

A name is that of an environment, followed by modifiers: a colon and a word
each, some with a value ('MiniGrid-FourRooms-v0:fixed=3:no_goal'). Modifiers
have a fixed order, so that no environment has two names.
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
  """How the environment of one name is made.

  Attributes:
    make: takes `seed` and options of its own, and starts the environment.
    make_vector: takes the seeds of N environments and `stack`, and starts them
      together; None if single environments are stepped in turn instead.
    can_stack: whether `make` takes `stack`, the frames in an observation.
  """

  make: Callable[..., dm_env.Environment]
  make_vector: Optional[Callable[..., vector.Environments]] = None
  can_stack: bool = False


class Modifier(NamedTuple):
  """A word after a name that changes the environment.

  Attributes:
    word: the word itself, for example 'fixed'.
    example: how to write it, for error messages: 'fixed=3'.
    parse: turns the text after '=' into a value; gives None for a bad text.
    default: the value of the word alone; None if the word needs a value.
  """

  word: str
  example: str
  parse: Callable[[str], Any]
  default: Any = None

  def value(self, written: str) -> Any:
    """Returns the value of 'word' or 'word=text'; None for a bad text."""
    _, equals, text = written.partition('=')
    return self.parse(text) if equals else self.default


def number(text: str) -> Optional[int]:
  """Parses a whole number of at most nine digits, such as a layout's seed."""
  return int(text) if re.fullmatch(r'[0-9]{1,9}', text) else None


def reward(text: str) -> Optional[float]:
  """Parses a finite number."""
  try:
    value = float(text)
  except ValueError:
    return None
  return value if math.isfinite(value) else None


def no_value(text: str) -> None:
  """Parses the text after a modifier that takes no value: always None."""
  del text


def parse(name: str, modifiers: Sequence[Modifier]) -> Dict[str, Any]:
  """Reads the modifiers of a name.

  Args:
    name: the name of an environment that exists, with or without modifiers.
    modifiers: all modifiers of this environment, in the order of the name.

  Returns:
    The value of each modifier that the name has, by its word.

  Raises:
    ValueError: if a modifier is unknown, misplaced, repeated, or has a bad
      value; the error names the nearest name that exists.
  """
  known = {modifier.word: modifier for modifier in modifiers}
  _, *written = name.split(':')
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
        [_repaired(name, known)],
        'Its modifiers, in this order, are '
        + ', '.join(f"':{modifier.example}'" for modifier in modifiers)
        + '.',
      )
    )
  return values


def _repaired(name: str, known: Dict[str, Modifier]) -> str:
  """Returns the name with the nearest modifiers that exist, in their order."""
  base, *written = name.split(':')
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
  """Returns up to three of the known names that look like `name`."""
  by_lower_case = {known_name.lower(): known_name for known_name in known}
  matches = difflib.get_close_matches(name.lower(), by_lower_case, cutoff=0.5)
  return [by_lower_case[match] for match in matches]


def unknown(name: str, nearest: Sequence[str], advice: str) -> str:
  """Returns the message for a name that no environment has."""
  question = ', '.join(map(repr, nearest))
  return (
    f'environment {name!r} is unknown: '
    + (f'did you mean {question}? ' if nearest else '')
    + advice
  )
