"""Assigns names and seeds to the environments of a run, by their index.

A run that plays several environments has a comma-separated list of names, which
are assigned to its environments 0, 1, ... in rotation.
"""

import numpy as np


def seed_of(seed: int, index: int) -> int:
  """Derives the seed of environment `index`, for independent random streams.

  Example:
    ```python
    from bt_acme import environments

    seeds = [environments.seed_of(0, index) for index in range(16)]
    ```
  """
  return int(np.random.SeedSequence([seed, index]).generate_state(1)[0])


def names_in(names: str) -> tuple[str, ...]:
  """Returns the names in a comma-separated list; usually a single name.

  Example:
    ```python
    from bt_acme import environments

    assert environments.names_in('pong, breakout') == ('pong', 'breakout')
    ```
  """
  if not isinstance(names, str):
    raise ValueError(f'env={names!r} is not a name. Pass a string.')
  return tuple(name.strip(' ') for name in names.split(','))


def name_of(names: str, index: int) -> str:
  """Returns the name of environment `index` in a run that plays `names`.

  Example:
    ```python
    from bt_acme import environments

    assert environments.name_of('pong,breakout', index=3) == 'breakout'
    ```
  """
  separate = names_in(names)
  return separate[index % len(separate)]
