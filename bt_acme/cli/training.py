"""The launch scripts `run_*.py`: settings from flags and a preset; a run."""

import sys
from collections.abc import Callable
from typing import Any

import jax
from absl import flags as absl_flags

from bt_acme import assembly
from bt_acme.behaviors import exported_folder
from bt_acme.cli import flags
from bt_acme.config import names, presets
from bt_acme.launching import (
  initial_weights,
  named_behaviors,
  recorded_agent,
  starting,
)
from bt_acme.runtime import output

FLAGS = absl_flags.FLAGS


def run_main(
  settings_class: type, start: Callable[[Any], int] | None = None
) -> None:
  """Runs a launch script.

  Args:
    settings_class: a subclass of an agent's configuration, to which it adds the
      group `run` and possibly the groups `behaviors` and `weights`.
    start: takes the settings and returns the exit code; None starts or resumes
      one run.
  """
  start = start or _train
  define(settings_class)
  flags.run_main(lambda argv: start(read(settings_class)), settings_class)


def define(settings_class: type) -> None:
  """Defines the flags of a launch script; see `run_main`."""
  absl_flags.DEFINE_string(
    'preset',
    'paper',
    'Preset that provides the defaults of the settings below: '
    + '; '.join(f'`{n}`, for {p.purpose}' for n, p in presets.PRESETS.items())
    + '. `python -m bt_acme.config.presets` prints the changes of each preset.',
  )
  FLAGS.register_key_flag_for_module(sys.argv[0], FLAGS['preset'])
  flags.define(settings_class)


def read(settings_class: type) -> Any:
  """Returns the settings of a script: flags, then the preset, then defaults.

  If the nodes of the run are separate processes, JAX is restricted to the CPU
  in this process. Otherwise, JAX would reserve all memory of a GPU just for the
  initial weights.
  """
  given = flags.given(settings_class)
  preset = presets.get(FLAGS.preset, settings_class, given)
  settings = flags.from_flags(settings_class, preset)
  if not settings.run.workdir:
    raise ValueError("workdir='' is empty. Pass a directory.")
  if not settings.run.is_in_this_process:
    jax.config.update('jax_platforms', 'cpu')
  return settings


def _train(settings: Any) -> int:
  """Starts or resumes a run; returns the exit code."""
  run = settings.run
  config_class: Any = type(settings).__base__
  transferred: tuple[Any, ...] = ()
  behavior_weights: tuple[float, ...] = ()
  if given := getattr(settings, 'behaviors', None):
    transferred = named_behaviors.make(given.listed(), settings.transfer)
    behavior_weights = given.weights
  agent = assembly.Agent(
    names.part(settings, config_class),
    assembly.spec_by_name(run.env, num_stacked=run.num_stacked),
    transferred,
    behavior_weights,
  )
  weights = getattr(settings, 'weights', initial_weights.WeightsConfig())
  options = recorded_agent.start_options(agent, run.seed, weights)
  code = starting.start(run, agent, **options)
  if code == 0 and agent.intrinsic is not None:
    folder = run.behavior_folder
    text = f'Behavior exported to {folder}'
    if not exported_folder.is_complete(folder):
      call = f'bt_acme.load_run({run.workdir!r}).export({folder!r})'
      text = f'{folder} lacks the behavior. Export it again: {call}'
    output.show(text)
  return code
