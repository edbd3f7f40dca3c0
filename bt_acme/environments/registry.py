"""Finds the module that creates a named environment.

To add environments, write a module with these functions and list the module in
`_MODULES`:

  names() -> all names without modifiers, as suggestions for error messages;
  find(name) -> the `naming.Maker` of a name, or None if the name is unknown;
    raises ValueError for an invalid modifier (`naming.parse`).
"""

import difflib
import functools
import importlib
import inspect
from collections.abc import Callable
from typing import Any

import dm_env
import numpy as np
from dm_env import specs

from bt_acme.environments import naming

# The module by prefix of the name; '' is for all other names. Modules are
# imported on demand, so an actor on MiniGrid does not load Atari.
_MODULES = {
  'Chain-': 'bt_acme.environments.chain',
  'MiniGrid-': 'bt_acme.environments.minigrid',
  'Recall-': 'bt_acme.environments.recall',
  '': 'bt_acme.environments.atari',
}

_registered: dict[str, Callable[..., dm_env.Environment]] = {}


def register(name: str, constructor: Callable[..., Any]) -> None:
  """Registers an environment of your own under a name, in this process.

  The Python API accepts the name wherever it takes an environment. Runs with
  several processes cannot use the name. Registering a name again replaces its
  constructor.

  Args:
    name: the new name.
    constructor: a function that takes `seed` and returns a `dm_env.Environment`
      or a `gymnasium.Env` with uint8 observations [H, W, C] and actions
      numbered from 0. Every episode must end, for example after the steps of
      `gymnasium.wrappers.TimeLimit`. A gymnasium environment is seeded at its
      first reset. If the environment or its outermost wrapper has `state()` and
      `restore(state)`, a stopped run resumes in the middle of an episode (see
      `bt_acme.environments.saving`). The torso
      `small`, the default below 36 pixels a side, divides observations by 10,
      which suits the indices of MiniGrid; for images of 20 pixels or more,
      choose torso='workshop', which divides by 255.

  Raises:
    ValueError: if the name is that of an environment of the library, is empty,
      or contains a comma or outer spaces, or if the constructor does not take
      `seed`.

  Example:
    ```python
    import gymnasium
    from minigrid import wrappers


    def make_game(seed: int) -> gymnasium.Env:
      return wrappers.ImgObsWrapper(gymnasium.make('MiniGrid-Empty-5x5-v0'))


    bt_acme.register_environment('my_game', make_game)
    behavior = bt_acme.load_behavior('minigrid-explorer')
    print(bt_acme.evaluate(behavior, env='my_game', episodes=10))
    ```
  """
  is_text = isinstance(name, str) and name
  if not is_text or ',' in name or name != name.strip():
    raise ValueError(
      f'name={name!r} is not the name of one environment. Choose a text '
      'without commas and without spaces around it.'
    )
  if name not in _registered and _exists(name):
    raise ValueError(
      f'name={name!r} is already an environment. Choose another name.'
    )
  try:
    inspect.signature(constructor).bind(seed=0)
  except TypeError as error:
    raise ValueError(
      f'constructor={constructor!r} cannot be called with seed=0: {error}. '
      'Pass a function that takes `seed`.'
    ) from error
  _registered[name] = functools.partial(_construct, name, constructor)


def _exists(name: str) -> bool:
  try:
    find(name)
  except ValueError:
    return False
  return True


def _construct(
  name: str, constructor: Callable[..., Any], *, seed: int
) -> dm_env.Environment:
  """Creates a registered environment and checks its specs."""
  environment = constructor(seed=seed)
  if hasattr(environment, 'observation_space'):
    adapter: Any = importlib.import_module('bt_acme.environments.gymnasium')
    try:
      environment = adapter.Gymnasium(environment, seed=seed)
    except ValueError as error:
      raise ValueError(f'env={name!r}: {error}') from error
  if not isinstance(environment, dm_env.Environment):
    raise ValueError(
      f'env={name!r}: its constructor returned a {type(environment).__name__}. '
      'It must return a dm_env.Environment or a gymnasium.Env.'
    )
  check_specs(environment, name)
  return environment


def check_specs(environment: dm_env.Environment, name: str) -> None:
  """Raises ValueError unless observations are images and actions discrete."""
  action = environment.action_spec()
  dtype, shape = _kind_of(environment.observation_spec())
  if dtype != np.uint8 or len(shape) != 3 or 0 in shape:
    raise ValueError(
      f'env={name!r} has observations {dtype} {shape}, which are not '
      'supported. Wrap it to return uint8 images [H, W, C].'
    )
  if not isinstance(action, specs.DiscreteArray):
    dtype, shape = _kind_of(action)
    raise ValueError(
      f'env={name!r} has actions {dtype} {shape}, which are not supported. '
      'Wrap it to take discrete actions numbered from 0.'
    )


def _kind_of(spec: Any) -> tuple[Any, tuple[int, ...]]:
  """Returns the dtype and shape of a spec; its type if it has neither."""
  return getattr(spec, 'dtype', type(spec)), getattr(spec, 'shape', ())


def find(name: str) -> naming.Maker:
  """Returns the maker of an environment, without creating the environment.

  Args:
    name: a single name.

  Raises:
    ValueError: if the name is unknown; the message suggests similar names.
  """
  if name in _registered:
    return naming.Maker(_registered[name])
  prefix = max(filter(name.startswith, _MODULES), key=len)
  maker: Any = importlib.import_module(_MODULES[prefix]).find(name)
  if maker is None:
    raise ValueError(
      f'env={name!r} is unknown. {_suggestions(name)}Choose one of the Atari '
      "57 in snake_case ('montezuma_revenge') or a MiniGrid ID "
      "('MiniGrid-DoorKey-8x8-v0'). In Python, first register an environment "
      'of your own with bt_acme.register_environment.'
    )
  return maker


def _suggestions(name: str) -> str:
  """Asks whether a similar name was meant; empty if there is none."""
  by_lower_case = {
    known.lower(): known
    for module in _MODULES.values()
    for known in importlib.import_module(module).names()
  } | {known.lower(): known for known in _registered}
  matches = difflib.get_close_matches(name.lower(), by_lower_case, cutoff=0.5)
  nearest = ', '.join(repr(by_lower_case[match]) for match in matches)
  return f'Did you mean {nearest}? ' if nearest else ''
