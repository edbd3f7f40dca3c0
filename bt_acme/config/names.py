"""Settings by name: flat, as in flags and presets, or nested, as in JSON.

No two settings of a configuration have the same name, not even in different
groups, so a name identifies a setting.
"""

import dataclasses
import difflib
from collections.abc import Iterable, Mapping
from typing import Any

Values = Mapping[str, Any]  # Settings by name.
# Names of settings in other libraries.
_ALIASES = {'lr': 'learning_rate', 'gamma': 'discount', 'lambda': 'trace_decay'}
_LISTED = 12  # Maximum number of choices listed after a suggestion.


def defaults_of(config_class: type) -> dict[str, Any]:
  """Returns the default of each setting of a configuration, by its name.

  Args:
    config_class: a dataclass whose fields are dataclasses of settings.
  """
  return flat(config_class())


def flat(config: Any) -> dict[str, Any]:
  """Returns the value of each setting of a configuration, by its name."""
  return {
    name: value
    for group in to_dict(config).values()
    for name, value in group.items()
  }


def build(config_class: type, values: Values) -> Any:
  """Builds a configuration from the values of its settings.

  Args:
    config_class: the configuration to build.
    values: settings by name; all other settings keep their defaults.

  Raises:
    ValueError: if a name is unknown or a value is invalid.
  """
  _check_known(values, defaults_of(config_class), config_class)
  return from_dict(
    config_class,
    {
      group: {name: values[name] for name in settings if name in values}
      for group, settings in to_dict(config_class()).items()
    },
  )


def part(settings: Any, config_class: type) -> Any:
  """Returns those groups of settings that a configuration has.

  Args:
    settings: a configuration with all groups of `config_class`.
    config_class: the configuration to build.
  """
  return config_class(
    **{
      group.name: getattr(settings, group.name)
      for group in dataclasses.fields(config_class)
    }
  )


def to_dict(config: Any) -> dict[str, Any]:
  """Returns a configuration as nested dictionaries of JSON values.

  Example:
    ```python
    from bt_acme import config

    values = config.to_dict(config.R2D2Config())
    assert values['learner']['batch_size'] == 64
    ```
  """
  return dataclasses.asdict(config)


def from_dict(config_class: type, values: Values) -> Any:
  """Restores a configuration from the result of `to_dict`.

  Args:
    config_class: the configuration, or one of its groups.
    values: the nested dictionaries; missing settings keep their defaults.

  Raises:
    ValueError: if a name is unknown or a value is invalid.

  Example:
    ```python
    from bt_acme import config

    values = {'learner': {'batch_size': 32}}
    agent = config.from_dict(config.R2D2Config, values)
    ```
  """
  return _replaced(config_class(), values)


def _replaced(settings: Any, values: Values) -> Any:
  """Returns settings with new values, which are nested like the settings."""
  known = vars(settings)
  _check_known(values, known, type(settings))
  return dataclasses.replace(
    settings,
    **{
      name: _replaced(known[name], value)
      if dataclasses.is_dataclass(known[name])
      else value
      for name, value in values.items()
    },
  )


def suggest(given: object, known: Iterable[object]) -> str:
  """Returns the end of an error message, which suggests valid choices.

  Args:
    given: the invalid choice of the user.
    known: the valid choices.
  """
  known = tuple(known)
  texts = [name for name in known if isinstance(name, str)]
  alias = _ALIASES.get(str(given), str(given))
  nearest = difflib.get_close_matches(alias, texts, n=1)
  if nearest and len(known) > _LISTED:
    return f'did you mean {nearest[0]!r}?'
  listed = ', '.join(map(repr, known))
  if nearest:
    return f'did you mean {nearest[0]!r}? Choose from {listed}.'
  return f'choose from {listed}.'


def _check_known(
  given: Iterable[str], known: Iterable[str], config_class: type
) -> None:
  known = tuple(known)
  for name in given:
    if name not in known:
      raise ValueError(
        f'{config_class.__name__} has no setting named {name!r}: '
        + suggest(name, known)
      )
