"""Declares settings: their help, range and choices.

A setting is a field of a frozen dataclass, and the docstring of the class
describes it under `Attributes`; the flags of the launch scripts take their help
from there. `setting` and `choice` limit the values of a field, and `check`
rejects all others, so that each fact about a setting is written once. A
`__post_init__` method adds only checks of several fields together. Checks of
several groups are in `config.agent` and `assembly`, and those of the machine in
`runtime.launch_checks`.
"""

import dataclasses
import inspect
import math
import numbers
import os
import pathlib
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from bt_acme.config import names

_Number = TypeVar('_Number', int, float)

# The default limit of numbers. Both int32 and float32, in which runs compute,
# represent it exactly.
_LARGEST = 1_000_000_000
# Smaller numbers may become 0 in float32.
_SMALLEST_FLOAT = 1.2e-38
# For each type of default: the allowed types of values, and their description.
_TYPES: Mapping[type, tuple[Any, str]] = {
  bool: (bool, 'True or False'),
  int: (numbers.Integral, 'an integer'),
  float: (numbers.Real, 'a number'),
  str: (str, 'a string'),
}

Limits = Mapping[str, Any]


def setting(
  default: Any,
  *,
  minimum: float | None = None,
  above: float | None = None,
  maximum: float | None = None,
  hint: str = '',
  largest: float = _LARGEST,
) -> Any:
  """Declares a setting whose range is limited.

  Args:
    default: a bool, int, float or str; values must have the same type.
    minimum: the smallest allowed value.
    above: an exclusive lower bound, used instead of `minimum`.
    maximum: the largest allowed value.
    hint: a sentence that is appended to errors about the range.
    largest: the absolute value above which a number can only be a mistake.
      A `maximum`, which follows from the meaning of the setting, replaces it.

  Returns:
    A `dataclasses.field`, which has the limits as its metadata.
  """
  limits = {
    **{'minimum': minimum, 'above': above, 'maximum': maximum},
    **{'choices': (), 'hint': hint, 'largest': largest},
  }
  return dataclasses.field(default=default, metadata=limits)


def choice(default: Any, *others: Any) -> Any:
  """Declares a setting that has only a few allowed values.

  Args:
    default: the default, which is the first choice.
    *others: the other choices, of the same type; they may repeat the default.

  Returns:
    A `dataclasses.field`; its metadata has the same names as that of `setting`.
  """
  choices = tuple(dict.fromkeys((default, *others)))
  limits = {**setting(default).metadata, 'choices': choices}
  return dataclasses.field(default=default, metadata=limits)


def limits_of(field: 'dataclasses.Field[Any]') -> Limits:
  """Returns the limits of a setting: arguments of `setting`, and `choices`."""
  return field.metadata or setting(field.default).metadata


def help_of(group: type) -> dict[str, str]:
  """Returns the help of each setting of a group, from its docstring.

  Args:
    group: a dataclass; the docstrings of its base classes are read too.
  """
  found: dict[str, str] = {}
  for one in reversed(group.__mro__[:-1]):
    text = inspect.cleandoc(one.__doc__ or '')
    attributes = text.partition('\nAttributes:\n')[2].partition('\n\n')[0]
    _, *entries = re.split(r'^  (\w+): ', attributes, flags=re.MULTILINE)
    for name, entry in zip(entries[::2], entries[1::2], strict=True):
      found[name] = ' '.join(entry.split())
  return {field.name: found[field.name] for field in dataclasses.fields(group)}


def check(settings: Any) -> None:
  """Checks every field of a dataclass against its declaration.

  Args:
    settings: a dataclass of settings.

  Raises:
    ValueError: if a value has the wrong type or is outside its range or
      choices.
  """
  for field in dataclasses.fields(settings):
    check_value(field.name, getattr(settings, field.name), field)


def check_value(
  name: str, value: Any, declared: 'dataclasses.Field[Any]'
) -> None:
  """Checks the value of a setting, or of an argument like it.

  Args:
    name: the name in the error.
    value: the value.
    declared: the result of `setting` or `choice`, or a field of a dataclass of
      settings.

  Raises:
    ValueError: if the value has the wrong type or is outside its range or
      choices.
  """
  problem = _problem(value, type(declared.default), limits_of(declared))
  if problem:
    raise ValueError(f'{name}={value!r} {problem}')


def require(condition: bool, message: str) -> None:
  """Raises ValueError with the message unless the condition holds."""
  if not condition:
    raise ValueError(message)


def path(name: str, value: Any) -> pathlib.Path:
  """Returns the path that an argument contains.

  Args:
    name: the name in the error.
    value: the value.

  Raises:
    ValueError: if the value is empty or not a path.
  """
  require(
    isinstance(value, (str, os.PathLike)) and bool(os.fspath(value)),
    f'{name}={value!r} is not a path. Pass the path of a directory.',
  )
  return pathlib.Path(value)


def functions(name: str, value: Any) -> tuple[Callable[..., Any], ...]:
  """Returns the functions that an argument contains.

  Args:
    name: the name in the error.
    value: the value.

  Raises:
    ValueError: if the value is not a list, or contains anything else.
  """
  found = tuple(value) if isinstance(value, Iterable) else (None,)
  require(
    all(map(callable, found)),
    f'{name}={value!r} is not a list of functions. Pass a list.',
  )
  return found


def numbers_in(
  name: str, text: str, kind: Callable[[str], _Number]
) -> tuple[_Number, ...]:
  """Returns the numbers in a text, separated by commas; none if it is empty.

  Args:
    name: the name in the error.
    text: the text.
    kind: `int` or `float`.

  Raises:
    ValueError: if the text contains anything else.
  """
  try:
    return tuple(map(kind, text.split(','))) if text else ()
  except ValueError as error:
    what = 'integers' if kind is int else 'numbers'
    raise ValueError(
      f'{name}={text!r} must be {what} separated by commas, such as 100,200.'
    ) from error


def require_defaults(settings: Any, *names: str, without: str) -> None:
  """Raises ValueError unless settings without any effect have their defaults.

  Args:
    settings: a dataclass of settings.
    *names: the names of the settings.
    without: another setting and its value, or a condition, with which they have
      no effect.
  """
  for name in names:
    value = getattr(settings, name)
    other, equals, _ = without.partition('=')
    require(
      value == getattr(type(settings), name),
      f'{name}={value!r} has no effect with {without}. Remove {name}'
      f'{f", or change {other}" if equals else ""}.',
    )


def require_order(values: Mapping[str, Any], smaller: str, larger: str) -> None:
  """Raises ValueError if a setting exceeds another one.

  Args:
    values: settings by name.
    smaller: the name of the smaller setting.
    larger: the name of the larger setting.
  """
  require(
    values[smaller] <= values[larger],
    f'{smaller}={values[smaller]} exceeds {larger}={values[larger]}. Lower '
    f'{smaller} or raise {larger}.',
  )


def _problem(value: Any, kind: type, limits: Limits) -> str:
  """Returns the error message for a value; empty if the value is valid."""
  allowed, in_words = _TYPES[kind]
  if not isinstance(value, allowed) or (
    isinstance(value, bool) and kind is not bool
  ):
    return f'must be {in_words}.'
  if limits['choices']:
    if value in limits['choices']:
      return ''
    return 'is unknown: ' + names.suggest(value, limits['choices'])
  if kind in (int, float):
    return _problem_of_number(value, kind, limits)
  return ''


def _problem_of_number(value: float, kind: type, limits: Limits) -> str:
  """Checks a number; an int may be too large to convert to a float."""
  if value != value or abs(value) == math.inf:
    return 'must be finite.'
  minimum, above, maximum = map(limits.get, ('minimum', 'above', 'maximum'))
  if not (
    (minimum is None or value >= minimum)
    and (above is None or value > above)
    and (maximum is None or value <= maximum)
  ):
    words = _range_in_words(minimum, above, maximum)
    return f'{words}. {limits["hint"]}'.rstrip()
  largest = max(limits['largest'], limits['maximum'] or 0)
  if abs(value) > largest:
    magnitude = ' in magnitude' if value < 0 else ''
    return f'must not exceed {largest:,}{magnitude}.'
  if kind is float and 0 < abs(value) < _SMALLEST_FLOAT:
    return f'is too small for float32. Choose at least {_SMALLEST_FLOAT}.'
  return ''


def _range_in_words(minimum: Any, above: Any, maximum: Any) -> str:
  if maximum is not None and above is not None:
    return f'must lie in ({above}, {maximum}]'
  if maximum is not None and minimum is not None:
    return f'must lie in [{minimum}, {maximum}]'
  if maximum is not None:
    return f'must not exceed {maximum}'
  if above is not None:
    return f'must exceed {above}' if above else 'must be positive'
  return f'must be at least {minimum}' if minimum else 'must not be negative'
