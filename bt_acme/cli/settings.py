"""Settings of a launch script, from flags, a preset and the defaults."""

import dataclasses
import sys
from typing import Any, Type, TypeVar

import jax
from absl import flags as absl_flags

from bt_acme import config as config_lib
from bt_acme.cli import flags
from bt_acme.config import presets

FLAGS = absl_flags.FLAGS
Config = TypeVar('Config', bound=config_lib.R2D2Config)


def define(settings_class: type) -> None:
  """Defines the flags of a launch script.

  Args:
    settings_class: an agent's configuration with a group `run` added.
  """
  absl_flags.DEFINE_string(
    'preset',
    'paper',
    'Preset that provides the defaults of the settings below: '
    + '; '.join(f'`{n}`, for {p.purpose}' for n, p in presets.PRESETS.items())
    + '. `python -m bt_acme.config.presets` prints what each preset changes.',
  )
  FLAGS.register_key_flag_for_module(sys.argv[0], FLAGS['preset'])
  flags.define(settings_class)


def read(settings_class: Type[Config]) -> Config:
  """Returns the settings of a script: flags, then the preset, then defaults.

  If the nodes of the run are separate processes, JAX is restricted to the CPU
  in this process. Otherwise, JAX would reserve all memory of a GPU just for the
  initial weights.
  """
  preset = presets.get(FLAGS.preset, settings_class)
  settings: Any = flags.from_flags(settings_class, preset)
  if not settings.run.is_in_this_process:
    jax.config.update('jax_platforms', 'cpu')
  return settings  # type: ignore[no-any-return]


def agent_config(config_class: Type[Config], settings: Any) -> Config:
  """Returns the agent's part of a script's settings.

  Args:
    config_class: the agent's configuration.
    settings: an instance of a class with all groups of `config_class`.
  """
  return config_class(
    **{
      field.name: getattr(settings, field.name)
      for field in dataclasses.fields(config_class)
    }
  )
