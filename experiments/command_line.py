"""Runs commands whose flags are the settings of one dataclass."""

import dataclasses
from typing import Any, Callable

from bt_acme.cli import flags


def run(name: str, config_class: type, main: Callable[[Any], int]) -> None:
  """Defines and parses the flags of a command, runs it, and exits.

  Args:
    name: the name of the command.
    config_class: a dataclass of settings; see `bt_acme.config.checks`.
    main: called with an instance of `config_class`; returns an exit code.
  """
  settings = dataclasses.make_dataclass(
    'CommandSettings', [(name, config_class, config_class())], frozen=True
  )
  flags.define(settings)
  flags.run_main(
    lambda argv: main(getattr(flags.from_flags(settings), name)), settings
  )
