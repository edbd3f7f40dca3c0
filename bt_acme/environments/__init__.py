"""Environments by name, as `dm_env`.

A name is one of these, and `registry` finds the module that makes it:

- an Atari game: 'montezuma_revenge';
- an Atari game with another reward (`tasks`): 'hero:miners_easy';
- a MiniGrid id: 'MiniGrid-DoorKey-8x8-v0', with the modifiers of `minigrid`:
  'MiniGrid-FourRooms-v0:fixed:no_goal';
- a row of cells to explore (`chain`): 'Chain-49', 'Chain-50:random_actions';
- a test of memory (`recall`): 'Recall-6'.

A run may play several environments with equal spaces: their names, separated by
commas, stand for environments 0, 1, ... of the run, in rotation (`name_of`).
"""

from typing import Any, Tuple

import dm_env
import numpy as np

from bt_acme.environments import registry, vector
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

_ATARI_STACK = 4  # Frames in an observation of Atari, if nothing else is asked.


def seed_of(seed: int, index: int) -> int:
  """Derives the seed of environment `index`, so that no streams overlap."""
  return int(np.random.SeedSequence([seed, index]).generate_state(1)[0])


def names_in(names: str) -> Tuple[str, ...]:
  """Returns the names in a comma-separated list, of which one is the rule."""
  return tuple(names.split(','))


def name_of(names: str, index: int) -> str:
  """Returns the name of environment `index` of a run that plays `names`."""
  separate = names_in(names)
  return separate[index % len(separate)]


def validate(names: str) -> None:
  """Raises ValueError if no environment has one of the names; starts none."""
  for name in names_in(names):
    registry.find(name)


def make(
  name: str, *, seed: int, num_stacked: int = 0, **options: Any
) -> dm_env.Environment:
  """Makes an environment.

  Args:
    name: a name of the form that this module describes.
    seed: the seed; equal seeds and actions give equal episodes.
    num_stacked: the number of frames in an observation; 0 stands for the usual
      number, which is 4 on Atari and 1 elsewhere.
    **options: further arguments of the environment's class.

  Raises:
    ValueError: if no environment has that name, if it is a list of names, or
      if `num_stacked` asks for a stack of an environment that shows single
      frames.
  """
  if len(names_in(name)) > 1:
    raise ValueError(
      f'environment {name!r} lists {len(names_in(name))} environments, and '
      'this needs a single one: name one of them.'
    )
  maker = registry.find(name)
  if num_stacked and maker.can_stack:
    options['stack'] = num_stacked
  elif num_stacked > 1:
    raise ValueError(
      f'num_stacked={num_stacked} is for Atari: {name!r} shows single frames. '
      'Choose 0 or 1.'
    )
  return maker.make(seed=seed, **options)


def make_vector(
  names: str,
  num_environments: int,
  *,
  seed: int,
  first_environment: int = 0,
  num_stacked: int = 0,
) -> vector.Environments:
  """Makes the environments of one process, to be stepped together.

  Atari games run in ale-py's C++ vector environment, on a thread of their own.
  All other environments are stepped one after the other; so are Atari games
  with a modified reward, because each frame is attributed to its events.

  Args:
    names: one or several names, of the form that this module describes.
    num_environments: N, the number of environments.
    seed: the run's seed.
    first_environment: the index of the first environment in the whole run;
      environment i plays the same episodes whichever others share its process.
    num_stacked: the number of frames in an observation, as `make` takes it.
  """
  indices = range(first_environment, first_environment + num_environments)
  seeds = [seed_of(seed, i) for i in indices]
  if len(names_in(names)) == 1:
    maker = registry.find(names)
    if maker.make_vector is not None:
      return maker.make_vector(seeds, stack=num_stacked or _ATARI_STACK)
  return vector.VectorEnvironment(
    [
      make(name_of(names, i), seed=s, num_stacked=num_stacked)
      for i, s in zip(indices, seeds, strict=True)
    ]
  )
