"""Reads the seeds that a command is given."""

from typing import Sequence, Tuple

from bt_acme.config import run as run_config


def read(words: Sequence[str]) -> Tuple[int, ...]:
  """Reads seeds, of which there is at least one.

  Raises:
    ValueError: unless they are different whole numbers in their range.
  """
  seeds = [int(word) for word in words if word.strip().isdecimal()]
  allowed = {seed for seed in seeds if seed <= run_config.LARGEST_SEED}
  if not allowed or len(allowed) < len(words):
    raise ValueError(
      f'seeds={",".join(words)} must be different whole numbers of at least 0, '
      'separated by commas.'
    )
  return tuple(seeds)
