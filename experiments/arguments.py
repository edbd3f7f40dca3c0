"""Checks the arguments of commands."""

from typing import Iterable, Sequence

from bt_acme.config import names
from bt_acme.config import run as run_config


def known(name: str, value: str, choices: Iterable[str]) -> str:
  """Returns a value; raises ValueError unless it is one of the choices."""
  choices = list(choices)
  if value not in choices:
    advice = names.suggest(value, choices)
    raise ValueError(f'{name}={value!r} is unknown: {advice}')
  return value


def seeds(words: Sequence[str]) -> tuple[int, ...]:
  """Parses at least one seed.

  Raises:
    ValueError: unless the seeds are distinct integers in the allowed range.
  """
  found = [int(word) for word in words if word.strip().isdecimal()]
  allowed = {seed for seed in found if seed <= run_config.LARGEST_SEED}
  if not allowed or len(allowed) < len(words):
    raise ValueError(
      f'seeds={",".join(words)} is invalid. Pass distinct integers from 0 to '
      f'{run_config.LARGEST_SEED}, separated by commas.'
    )
  return tuple(found)
