"""Saves and restores environments in the middle of an episode.

An environment with methods `state()` and `restore(state)` can be saved. Its
state consists of serializable values: numbers, strings, bytes and arrays, in
lists, tuples and dicts. For other environments `SaveNotSupportedError` is
raised, and a resumed run starts new episodes. Pickle is not used, because
resuming a run from an untrusted source could then execute arbitrary code.
"""

import inspect
from typing import Any

# The result of `state()` of an environment: values for JSON and NumPy.
State = dict[str, Any]


class SaveNotSupportedError(ValueError):
  """The state of an environment cannot be saved, or not be restored."""


def state_of(environment: Any) -> State:
  """Returns the state of an environment as serializable values.

  Raises:
    SaveNotSupportedError: if the environment cannot be saved.
  """
  if not can_be_saved(environment):
    name = type(environment).__name__
    raise SaveNotSupportedError(
      f'{name} cannot be saved in the middle of an episode, so a resumed run '
      f'starts new episodes. To avoid this, add methods state() and '
      f'restore(state) to {name}.'
    )
  return environment.state()


def can_be_saved(owner: object) -> bool:
  """Returns whether an environment or a policy can save its own state."""
  # Some have attributes of these names that are not methods, and wrappers may
  # forward the methods of what they wrap, which do not save the wrapper.
  methods = (
    inspect.getattr_static(owner, name, None) for name in ('state', 'restore')
  )
  return all(map(callable, methods))
