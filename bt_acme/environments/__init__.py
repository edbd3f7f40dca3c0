"""Environments by name, as `dm_env`.

A name is an Atari game ('montezuma_revenge'), a game with another reward
('hero:miners_easy'), or a MiniGrid id ('MiniGrid-DoorKey-8x8-v0'). Behind a
MiniGrid id, ':fixed=3' gives each episode layout 3 (':fixed' layout 0), and
':no_goal' leaves the goal's cell empty, a world without its task; both go in
this order ('MiniGrid-FourRooms-v0:fixed:no_goal').
"""

import difflib
import functools
import re
from typing import Any, Callable, Dict

import dm_env
import numpy as np

from bt_acme.environments import vector

_MINIGRID = 'MiniGrid-'
_registered: Dict[str, Callable[..., dm_env.Environment]] = {}
_MINIGRID_VARIANT = re.compile(
  r'(?P<name>[^:]*)(?P<fixed>:fixed(=(?P<layout>\d{1,9}))?)?'
  r'(?P<no_goal>:no_goal)?'
)


def seed_of(seed: int, index: int) -> int:
  """Seed of environment `index` of a run: the streams do not overlap."""
  return int(np.random.SeedSequence([seed, index]).generate_state(1)[0])


def register(name: str, constructor: Callable[..., dm_env.Environment]) -> None:
  """Gives an environment of one's own a name, in this process.

  Runs in one process (`bt_acme.runtime.engines.in_process`) and evaluators
  there find it by that name. The processes of a Launchpad program do not.

  Args:
    name: that `make` takes from now on.
    constructor: takes `seed` and returns observations uint8 [H, W, C].

  Raises:
    ValueError: if the name is taken.
  """
  if name in _registered:
    raise ValueError(f'environment {name!r} is registered already.')
  try:
    validate(name)
  except ValueError:
    _registered[name] = constructor
  else:
    raise ValueError(f'environment {name!r} exists already.')


def make(
  name: str, *, seed: int, num_stacked: int = 0, **options: Any
) -> dm_env.Environment:
  """Makes an environment.

  Args:
    name: as the module says.
    seed: the same seed and actions give the same episodes.
    num_stacked: frames in an observation; 0 for what is usual: 4 on Atari, 1
      elsewhere.
    **options: further arguments of `atari.Atari` or `minigrid.MiniGrid`.

  Raises:
    ValueError: if no environment has that name, or only Atari could stack.
  """
  if num_stacked and not is_atari(name):
    if num_stacked != 1:
      raise ValueError(
        f'num_stacked={num_stacked} is for Atari: {name!r} shows single '
        'frames. Choose 0 or 1.'
      )
  elif num_stacked:
    options['stack'] = num_stacked
  return _constructor(name)(seed=seed, **options)


def make_vector(
  name: str,
  num_environments: int,
  *,
  seed: int,
  first_environment: int = 0,
  num_stacked: int = 0,
) -> vector.Environments:
  """Makes the environments of one process, to be stepped together.

  Atari games run in ale-py's C++ vector environment, on a thread of their own;
  those with a modified reward, which is attributed frame by frame, and MiniGrid
  step one after the other.

  Args:
    name: as the module says.
    num_environments: N.
    seed: of the run.
    first_environment: index of the first in the whole run; environment i plays
      the same episodes whichever others share its process.
    num_stacked: as for `make`.
  """
  seeds = [
    seed_of(seed, first_environment + i) for i in range(num_environments)
  ]
  if is_atari(name):
    from bt_acme.environments import atari, atari_vector

    if name in atari.ATARI_57:
      return atari_vector.AtariVector(name, seeds, stack=num_stacked or 4)
  return vector.VectorEnvironment(
    [make(name, seed=s, num_stacked=num_stacked) for s in seeds]
  )


def is_atari(name: str) -> bool:
  """Whether this is the name of an Atari game or of a task on one."""
  return name not in _registered and not name.startswith(_MINIGRID)


def validate(name: str) -> None:
  """Raises ValueError if no environment has that name; starts none."""
  _constructor(name)


def _constructor(name: str) -> Callable[..., dm_env.Environment]:
  if name in _registered:
    return _registered[name]
  # Each family loads its own packages: an actor pays for one.
  if name.startswith(_MINIGRID):
    from bt_acme.environments import minigrid

    variant = _MINIGRID_VARIANT.fullmatch(name)
    if variant and variant['name'] in minigrid.names():
      layout = int(variant['layout'] or 0)
      return functools.partial(
        minigrid.MiniGrid,
        variant['name'],
        layout_seed=layout if variant['fixed'] else None,
        no_goal=bool(variant['no_goal']),
      )
  else:
    from bt_acme.environments import atari, tasks

    if name in atari.ATARI_57:
      return functools.partial(atari.Atari, name)
    if name in tasks.TASKS:
      task = tasks.TASKS[name]
      return functools.partial(atari.Atari, task.game.name, task=task)
  raise ValueError(_unknown(name))


def _unknown(name: str) -> str:
  """What to tell who asked for an environment that does not exist."""
  from bt_acme.environments import atari, minigrid, tasks

  known = {
    known_name.lower(): known_name
    for known_name in (*atari.ATARI_57, *tasks.TASKS, *minigrid.names())
  }
  matches = difflib.get_close_matches(name.lower(), known, cutoff=0.5)
  nearest = ', '.join(repr(known[match]) for match in matches)
  return (
    f'environment {name!r} is unknown: '
    + (f'did you mean {nearest}? ' if nearest else '')
    + "Choose one of the Atari 57 in snake_case ('montezuma_revenge') or a "
    "MiniGrid id ('MiniGrid-DoorKey-8x8-v0')."
  )
