"""The launch scripts `run_*.py`: settings from flags and a preset; a run."""

import dataclasses
import sys
from typing import Any, Callable, Dict, Optional, Tuple

import jax
from absl import flags as absl_flags

from bt_acme import assembly
from bt_acme.cli import flags
from bt_acme.config import names, presets
from bt_acme.launching import initial_weights, named_behaviors
from bt_acme.launching import launch as launch_lib

FLAGS = absl_flags.FLAGS


def run_main(
  settings_class: type, start: Optional[Callable[[Any], int]] = None
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
    + '. `python -m bt_acme.config.presets` prints what each preset changes.',
  )
  FLAGS.register_key_flag_for_module(sys.argv[0], FLAGS['preset'])
  flags.define(settings_class)


def read(settings_class: type) -> Any:
  """Returns the settings of a script: flags, then the preset, then defaults.

  If the nodes of the run are separate processes, JAX is restricted to the CPU
  in this process. Otherwise, JAX would reserve all memory of a GPU just for the
  initial weights.
  """
  preset = presets.get(FLAGS.preset, settings_class)
  settings = flags.from_flags(settings_class, preset)
  if not settings.run.is_in_this_process:
    jax.config.update('jax_platforms', 'cpu')
  return settings


def _train(settings: Any) -> int:
  """Starts or resumes a run; returns the exit code."""
  run = settings.run
  config_class: Any = type(settings).__base__
  transferred: Tuple[Any, ...] = ()
  behavior_weights: Tuple[float, ...] = ()
  recorded: Dict[str, Any] = {}
  if given := getattr(settings, 'behaviors', None):
    named = given.expanded()
    transferred = named_behaviors.make(named.behavior, settings.transfer)
    behavior_weights = named.weights
    recorded['behaviors'] = dataclasses.asdict(named)
    # Its behaviors are among the others. Older workdirs do not record it.
    del recorded['behaviors']['bank']
  agent = assembly.Agent(
    names.part(settings, config_class),
    assembly.spec_by_name(run.env, num_stacked=run.num_stacked),
    transferred,
    behavior_weights,
  )
  options = initial_weights.launch_options(
    agent, run.seed, getattr(settings, 'weights', None), recorded=recorded
  )
  code = launch_lib.launch(run, agent, **options)
  if code == 0 and agent.intrinsic is not None:
    print(f'Behavior exported to {run.behavior_folder}')
  return code
