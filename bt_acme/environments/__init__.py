"""Environments by name, as `dm_env`.

The supported names are:

- an Atari game: 'montezuma_revenge';
- an Atari game with a modified reward (`atari_rewards`): 'hero:miners_easy';
- a MiniGrid ID: 'MiniGrid-DoorKey-8x8-v0', optionally with the modifiers of
  `minigrid`: 'MiniGrid-FourRooms-v0:fixed:no_goal';
- a row of cells to explore (`chain`): 'Chain-49', 'Chain-50:random_actions';
- a memory test (`recall`): 'Recall-6'.

`registry` finds the module that creates an environment.

A run may play several environments whose observations and actions have equal
shapes. `naming` assigns the names in a comma-separated list to them.
"""

from typing import Any

import dm_env

from bt_acme.config import checks
from bt_acme.environments import registry, vector
from bt_acme.environments.naming import name_of, names_in, seed_of
from bt_acme.environments.registry import register

__all__ = (
  'make',
  'make_vector',
  'name_of',
  'names_in',
  'register',
  'seed_of',
  'validate',
)

_ATARI_STACK = 4  # The default number of frames in an observation of Atari.


def validate(name: str) -> None:
  """Checks that an environment exists, without creating it.

  Args:
    name: one name or a comma-separated list, all of whose names are checked.

  Raises:
    ValueError: if a name is unknown.

  Example:
    ```python
    from bt_acme import environments

    environments.validate('MiniGrid-DoorKey-5x5-v0')
    ```
  """
  for each in names_in(name):
    registry.find(each)


def make(
  name: str, *, seed: int, num_stacked: int = 0, **options: Any
) -> dm_env.Environment:
  """Creates an environment.

  Args:
    name: a single name as described in this module.
    seed: the seed; equal seeds and actions give equal episodes.
    num_stacked: the number of frames in an observation; 0 for the default,
      which is 4 for Atari and 1 for other environments.
    **options: further arguments of the environment's class.

  Returns:
    The environment.

  Raises:
    ValueError: if the name is unknown or a list, or if `num_stacked` is not an
      integer, is negative, or exceeds 1 for an environment that cannot stack.

  Example:
    ```python
    from bt_acme import environments

    environment = environments.make('MiniGrid-DoorKey-5x5-v0', seed=0)
    print(environment.reset().observation.shape)
    ```
  """
  checks.check_value('num_stacked', num_stacked, checks.setting(0, minimum=0))
  if len(names_in(name)) > 1:
    raise ValueError(
      f'name={name!r} lists {len(names_in(name))} environments, but only a '
      'single environment is supported here. Choose one of them.'
    )
  maker = registry.find(name_of(name, 0))
  if num_stacked and maker.can_stack:
    options['stack'] = num_stacked
  elif num_stacked > 1:
    raise ValueError(
      f'num_stacked={num_stacked} is only supported for Atari; {name!r} has '
      'single-frame observations. Choose 0 or 1.'
    )
  return maker.make(seed=seed, **options)


def make_vector(
  name: str,
  num_environments: int,
  *,
  seed: int,
  first_environment: int = 0,
  num_stacked: int = 0,
  joint_emulator: bool = True,
) -> vector.VectorEnvironment:
  """Creates the environments of one process, which are stepped together.

  Atari games run in ale-py's C++ vector environment, in a separate thread. All
  other environments are stepped sequentially. They include Atari games with a
  modified reward, whose reward is computed frame by frame.

  Args:
    name: one name or a comma-separated list, as described in this module.
    num_environments: N, the number of environments.
    seed: the run's seed.
    first_environment: the index of the first environment within the run. An
      environment's episodes depend on its own index only, not on the other
      environments in its process.
    num_stacked: the number of frames in an observation; see `make`.
    joint_emulator: whether the games of Atari run in ale-py's vector
      environment, which is faster but has no access to single games.

  Returns:
    The environments.

  Raises:
    ValueError: see `make`.

  Example:
    ```python
    from bt_acme import environments

    sixteen = environments.make_vector('Chain-49', 16, seed=0)
    sixteen.reset()
    step = sixteen.step([1] * 16)
    sixteen.close()
    ```
  """
  indices = range(first_environment, first_environment + num_environments)
  seeds = [seed_of(seed, i) for i in indices]
  if joint_emulator and len(names_in(name)) == 1:
    maker = registry.find(name_of(name, 0))
    if maker.make_vector is not None:
      return maker.make_vector(seeds, stack=num_stacked or _ATARI_STACK)
  return vector.VectorEnvironment(
    [
      make(name_of(name, i), seed=s, num_stacked=num_stacked)
      for i, s in zip(indices, seeds, strict=True)
    ]
  )
