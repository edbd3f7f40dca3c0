"""Declares settings with their help, range and choices.

A setting is a field of a frozen dataclass that is declared with `setting`. The
flags of the launch scripts take their help from the declaration, and `check`
rejects every value that the declaration does not allow, so that each fact about
a setting is written once. A `__post_init__` method adds only checks of several
fields together.
"""

import dataclasses
import math
import numbers
from typing import Any, Mapping, NamedTuple, Optional, Tuple

from bt_acme.config import names

_KEY = 'declaration'
# The default limit of numbers. Both int32 and float32, in which runs compute,
# represent it exactly.
_LARGEST = 1_000_000_000
# Smaller numbers may become 0 in float32.
_SMALLEST_FLOAT = 1.2e-38
# For each type of default: the allowed types of values, and their description.
_TYPES: Mapping[type, Tuple[Any, str]] = {
  bool: (bool, 'True or False'),
  int: (numbers.Integral, 'an integer'),
  float: (numbers.Real, 'a number'),
  str: (str, 'a string'),
}


class Declaration(NamedTuple):
  """The declaration of a setting; see `setting` for the fields."""

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
  """Declares a setting: a field with its help, range and choices.

  Args:
    default: a bool, int, float or str; values must have the same type.
    help: a description that names the unit and the value in the paper, if any.
    minimum: the smallest allowed value.
    above: an exclusive lower bound, used instead of `minimum`.
    maximum: the largest allowed value.
    choices: all allowed values, or empty if only the range is limited.
    hint: a sentence that is appended to errors about the range.
    largest: the absolute value above which a number can only be a mistake.
      A `maximum`, which follows from the meaning of the setting, replaces it.

  Returns:
    A `dataclasses.field`.
  """
  declaration = Declaration(
    help, minimum, above, maximum, choices, hint, largest
  )
  return dataclasses.field(default=default, metadata={_KEY: declaration})


def declaration_of(field: 'dataclasses.Field[Any]') -> Declaration:
  """Returns the declaration of a field.

  Raises:
    ValueError: if the field was not created by `setting`.
  """
  if _KEY not in field.metadata:
    raise ValueError(
      f'The field {field.name} has no help. Declare it with checks.setting.'
    )
  declaration: Declaration = field.metadata[_KEY]
  return declaration


def check(settings: Any) -> None:
  """Checks every field of a dataclass against its declaration.

  Args:
    settings: a dataclass whose fields were created by `setting`.

  Raises:
    ValueError: if a value has the wrong type or is outside its range or
      choices.
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
  """Returns the error message for a value; empty if the value is valid."""
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
  """Checks a number; an int may be too large to convert to a float."""
  if value != value or abs(value) == math.inf:
    return 'must be finite.'
  if not _in_range(value, declaration):
    return f'{_range_in_words(declaration)}. {declaration.hint}'.rstrip()
  largest = max(declaration.largest, declaration.maximum or 0)
  if abs(value) > largest:
    magnitude = ' in magnitude' if value < 0 else ''
    return f'must not exceed {largest:,}{magnitude}.'
  if kind is float and 0 < abs(value) < _SMALLEST_FLOAT:
    return f'is too small for float32. Choose at least {_SMALLEST_FLOAT}.'
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
