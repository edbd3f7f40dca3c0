"""Parses the seeds of a command line."""

from typing import Sequence, Tuple

from bt_acme.config import run as run_config


def read(words: Sequence[str]) -> Tuple[int, ...]:
  """Parses at least one seed.

  Raises:
    ValueError: unless the seeds are distinct integers in the allowed range.
  """
  seeds = [int(word) for word in words if word.strip().isdecimal()]
  allowed = {seed for seed in seeds if seed <= run_config.LARGEST_SEED}
  if not allowed or len(allowed) < len(words):
    raise ValueError(
      f'seeds={",".join(words)} is invalid. Pass distinct integers from 0 to '
      f'{run_config.LARGEST_SEED}, separated by commas.'
    )
  return tuple(seeds)
