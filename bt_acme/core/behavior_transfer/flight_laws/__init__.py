"""The laws of flights by name (`TransferConfig.flight_law`).

To add a law, write a file in this directory, register it in the table below,
and add its name to the choices of `TransferConfig.flight_law`.
"""

from collections.abc import Callable, Mapping

from bt_acme import config as config_lib
from bt_acme.core.behavior_transfer import flights
from bt_acme.core.behavior_transfer.flight_laws import (
  jump_start,
  triggered,
  until_agent,
  zeta,
)

_Make = Callable[
  [config_lib.TransferConfig, config_lib.LearnerConfig], flights.FlightLaw
]
BY_NAME: Mapping[str, _Make] = {
  'zeta': zeta.make,
  'jump_start': jump_start.make,
  'until_agent': until_agent.make,
  'triggered': triggered.make,
}
