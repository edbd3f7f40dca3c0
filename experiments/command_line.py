"""Runs commands whose flags are settings, and checks their arguments."""

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from bt_acme.cli import flags
from bt_acme.config import checks
from bt_acme.config import run as run_config


def run(config_class: type, main: Callable[[Any], int]) -> None:
  """Defines and parses the flags of a command, runs it, and exits.

  Args:
    config_class: a dataclass of settings; see `bt_acme.config.checks`.
    main: called with an instance of `config_class`; returns an exit code.
  """
  group = ('command', config_class, config_class())
  settings = dataclasses.make_dataclass('CommandSettings', [group], frozen=True)
  flags.define(settings)
  flags.run_main(
    lambda argv: main(flags.from_flags(settings).command), settings
  )


def known(name: str, value: str, choices: Iterable[str]) -> str:
  """Returns a value; raises ValueError unless it is one of the choices."""
  checks.check_value(name, value, checks.choice(*choices))
  return value


def seeds(words: Sequence[str]) -> tuple[int, ...]:
  """Parses at least one seed.

  Raises:
    ValueError: unless the seeds are distinct integers in the allowed range.
  """
  found = {int(word) for word in words if word.strip().isdecimal()}
  if len(found) < len(words) or max(found) > run_config.LARGEST_SEED:
    raise ValueError(
      f'seeds={",".join(words)} is invalid. Pass distinct integers from 0 to '
      f'{run_config.LARGEST_SEED}, separated by commas.'
    )
  return tuple(map(int, words))
