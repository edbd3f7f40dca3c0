"""Settings that make no sense are refused where they are set."""

import dataclasses

import pytest

from bt_acme import config
from bt_acme.config import run as run_config

_GROUPS = {
  type(field.default)
  for config_class in (config.NGUConfig, config.BTConfig)
  for field in dataclasses.fields(config_class)
} | {run_config.RunConfig}
_FLOATS = [
  (group, field.name)
  for group in sorted(_GROUPS, key=lambda group: group.__name__)
  for field in dataclasses.fields(group)
  if isinstance(field.default, float)
]


@pytest.mark.parametrize('value', [float('inf'), float('-inf'), float('nan')])
@pytest.mark.parametrize('group, name', _FLOATS)
def test_every_number_is_finite(group, name, value):
  with pytest.raises(ValueError, match=f'{name}={value}'):
    group(**{name: value})


@pytest.mark.parametrize('length', [0, 10_000_001])
def test_flights_of_no_length_and_of_any(length):
  with pytest.raises(ValueError, match=f'max_flight_length={length} must lie'):
    config.TransferConfig(max_flight_length=length)


def test_behavior_transfer_transfers_something():
  with pytest.raises(ValueError, match='extra_action=False leave nothing'):
    config.TransferConfig(flights=False, extra_action=False)
