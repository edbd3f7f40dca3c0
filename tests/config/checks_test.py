"""Tests that settings only accept the values that they were declared with."""

import dataclasses
import re

import pytest

from bt_acme.config import checks


@dataclasses.dataclass(frozen=True)
class _Group:
  count: int = checks.setting(3, above=0)
  rate: float = checks.setting(0.5, minimum=0, maximum=1)
  share: float = checks.setting(
    0.5, above=0, maximum=1, hint='Leave it out with 1.'
  )
  slope: float = checks.setting(2.0, above=1)
  weight: float = checks.setting(0.0, minimum=0)
  factor: float = checks.setting(2.0, minimum=1)
  bound: float = checks.setting(0.0, maximum=1)
  free: float = checks.setting(0.0)
  kind: str = checks.choice('sum', 'mean')
  offset: float = checks.choice(0.0, 1.0)
  size: int = checks.setting(1, above=0, largest=100)
  flag: bool = checks.setting(True)
  name: str = checks.setting('')

  def __post_init__(self):
    checks.check(self)


@pytest.mark.parametrize(
  'values, message',
  [
    ({'count': 0}, 'count=0 must be positive.'),
    ({'count': 2.0}, 'count=2.0 must be an integer.'),
    ({'count': True}, 'count=True must be an integer.'),
    ({'count': None}, 'count=None must be an integer.'),
    ({'rate': 1.5}, 'rate=1.5 must lie in [0, 1].'),
    ({'rate': 'x'}, "rate='x' must be a number."),
    ({'rate': False}, 'rate=False must be a number.'),
    ({'share': 0.0}, 'share=0.0 must lie in (0, 1]. Leave it out with 1.'),
    ({'slope': 1.0}, 'slope=1.0 must exceed 1.'),
    ({'weight': -1.0}, 'weight=-1.0 must not be negative.'),
    ({'factor': 0.5}, 'factor=0.5 must be at least 1.'),
    ({'bound': 1.5}, 'bound=1.5 must not exceed 1.'),
    ({'free': float('nan')}, 'free=nan must be finite.'),
    ({'bound': float('-inf')}, 'bound=-inf must be finite.'),
    ({'free': 10**400}, f'free={10**400} must not exceed 1,000,000,000.'),
    (
      {'free': -1e300},
      'free=-1e+300 must not exceed 1,000,000,000 in magnitude.',
    ),
    ({'size': 101}, 'size=101 must not exceed 100.'),
    (
      {'weight': 1e-300},
      'weight=1e-300 is too small for float32. Choose at least 1.2e-38.',
    ),
    (
      {'kind': 'maen'},
      "kind='maen' is unknown: did you mean 'mean'? Choose from 'sum', 'mean'.",
    ),
    ({'kind': 3}, 'kind=3 must be a string.'),
    ({'offset': 0.5}, 'offset=0.5 is unknown: choose from 0.0, 1.0.'),
    ({'flag': 1}, 'flag=1 must be True or False.'),
  ],
)
def test_invalid_values(values, message):
  with pytest.raises(ValueError, match=f'^{re.escape(message)}$'):
    _Group(**values)


@pytest.mark.parametrize(
  'values',
  [
    {},
    {'count': 1},
    {'rate': 0, 'weight': 0},
    {'rate': 1.0, 'share': 1},
    {'slope': 1.001},
    {'bound': -1e9, 'free': 1e9, 'size': 100, 'weight': 1.2e-38},
    {'kind': 'mean', 'offset': 1},
    {'flag': False, 'name': 'x'},
  ],
)
def test_valid_values(values):
  group = _Group(**values)
  assert all(getattr(group, name) == value for name, value in values.items())


@dataclasses.dataclass(frozen=True)
class _Base:
  """A group.

  Attributes:
    speed: The speed in actor steps per second, which is
      a number.
    depth: The depth.

  Other text.
  """

  depth: float = 1.0
  speed: float = 1.0


def test_help_is_read_from_the_docstrings_of_a_class_and_its_bases():
  @dataclasses.dataclass(frozen=True)
  class Derived(_Base):
    """Another group.

    Attributes:
      depth: Another depth: in meters."""

    depth: float = 2.0

  assert list(checks.help_of(Derived).items()) == [
    ('depth', 'Another depth: in meters.'),
    ('speed', 'The speed in actor steps per second, which is a number.'),
  ]
