"""Settings that carry their own help, range and choices.

A setting is a field of a frozen dataclass that is declared with `setting`. The
flags of the launch scripts take their help from the declaration, and `check`
refuses every value that the declaration does not allow, so that each fact about
a setting is written once. What remains in a `__post_init__` relates two fields.
"""

import dataclasses
import math
import numbers
from typing import Any, Mapping, NamedTuple, Optional, Tuple

from bt_acme.config import names

_KEY = 'declaration'
# No setting needs a larger number unless it says so. Both int32 and float32,
# in which runs compute, hold this one exactly.
_LARGEST = 1_000_000_000
# What is smaller than this may become 0 in float32.
_SMALLEST_FLOAT = 1.2e-38
# By the type of the default: the types that a value may have, in words too.
_TYPES: Mapping[type, Tuple[Any, str]] = {
  bool: (bool, 'True or False'),
  int: (numbers.Integral, 'a whole number'),
  float: (numbers.Real, 'a number'),
  str: (str, 'a text'),
}


class Declaration(NamedTuple):
  """What a field says about its setting; see `setting`."""

  help: str
  minimum: Optional[float]
  above: Optional[float]
  maximum: Optional[float]
  choices: Tuple[object, ...]
  hint: str
  largest: float


def setting(
  default: Any,
  help: str,
  *,
  minimum: Optional[float] = None,
  above: Optional[float] = None,
  maximum: Optional[float] = None,
  choices: Tuple[object, ...] = (),
  hint: str = '',
  largest: float = _LARGEST,
) -> Any:
  """Declares a setting: a field with its help, its range and its choices.

  Args:
    default: a bool, int, float or str, whose type the setting then has.
    help: whole sentences that name the unit and the paper's choice.
    minimum: the smallest value that is allowed.
    above: the bound that every value must exceed, instead of `minimum`.
    maximum: the largest value that is allowed.
    choices: the only values that are allowed; empty if a range decides.
    hint: a sentence that an error about the range ends with.
    largest: the size above which a number can only be a mistake. A `maximum`,
      which belongs to what the setting means, replaces it.

  Returns:
    A `dataclasses.field`.
  """
  declaration = Declaration(
    help, minimum, above, maximum, choices, hint, largest
  )
  return dataclasses.field(default=default, metadata={_KEY: declaration})


def declaration_of(field: 'dataclasses.Field[Any]') -> Declaration:
  """Returns what a field was declared with.

  Raises:
    ValueError: if the field was not made by `setting`.
  """
  if _KEY not in field.metadata:
    raise ValueError(
      f'The field {field.name} has no help: declare it with checks.setting.'
    )
  declaration: Declaration = field.metadata[_KEY]
  return declaration


def check(settings: Any) -> None:
  """Checks every field of a dataclass against its declaration.

  Args:
    settings: a dataclass whose fields were made by `setting`.

  Raises:
    ValueError: for a value of another type or outside of its range or choices.
  """
  for field in dataclasses.fields(settings):
    value = getattr(settings, field.name)
    problem = _problem(value, type(field.default), declaration_of(field))
    if problem:
      raise ValueError(f'{field.name}={value!r} {problem}')


def require(condition: bool, message: str) -> None:
  """Raises ValueError with the message unless the condition holds."""
  if not condition:
    raise ValueError(message)


def _problem(value: Any, kind: type, declaration: Declaration) -> str:
  """Returns what is wrong with a value, or an empty string."""
  allowed, in_words = _TYPES[kind]
  if not isinstance(value, allowed) or (
    isinstance(value, bool) and kind is not bool
  ):
    return f'must be {in_words}.'
  if declaration.choices:
    if value in declaration.choices:
      return ''
    return 'is unknown: ' + names.suggest(value, declaration.choices)
  if kind in (int, float):
    return _problem_of_number(value, kind, declaration)
  return ''


def _problem_of_number(
  value: float, kind: type, declaration: Declaration
) -> str:
  """As `_problem`; a whole number may exceed every float."""
  if value != value or abs(value) == math.inf:
    return 'must be finite.'
  if not _in_range(value, declaration):
    return f'{_range_in_words(declaration)}. {declaration.hint}'.rstrip()
  largest = max(declaration.largest, declaration.maximum or 0)
  if abs(value) > largest:
    return f'must not exceed {largest:,}' + (' in size.' if value < 0 else '.')
  if kind is float and 0 < abs(value) < _SMALLEST_FLOAT:
    return f'is too small for float32: choose {_SMALLEST_FLOAT} at least.'
  return ''


def _in_range(value: float, declaration: Declaration) -> bool:
  _, minimum, above, maximum, *_ = declaration
  return (
    (minimum is None or value >= minimum)
    and (above is None or value > above)
    and (maximum is None or value <= maximum)
  )


def _range_in_words(declaration: Declaration) -> str:
  _, minimum, above, maximum, *_ = declaration
  if maximum is not None and above is not None:
    return f'must lie in ({above}, {maximum}]'
  if maximum is not None and minimum is not None:
    return f'must lie in [{minimum}, {maximum}]'
  if maximum is not None:
    return f'must not exceed {maximum}'
  if above is not None:
    return f'must exceed {above}' if above else 'must be positive'
  return f'must be at least {minimum}' if minimum else 'must not be negative'
