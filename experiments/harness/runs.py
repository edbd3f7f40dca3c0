"""Declares runs of launch scripts.

A run is identified by the settings that `config.json` in its workdir stores.
Changing a setting therefore creates a new run and never overwrites another one.
"""

import dataclasses
import functools
import hashlib
import json
import pathlib
import re
import shlex
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from bt_acme.behaviors import exported_folder
from bt_acme.config import names, presets
from bt_acme.config import run as run_config
from bt_acme.evaluation import tables
from bt_acme.runtime import resume_checks
from bt_acme.runtime import workdir as workdir_lib
from experiments import command_line, launching
from experiments.harness import processes, records
from launch import evaluate, run_bt, run_ngu, run_r2d2

# Values of `RunSpec.stage`. `dataset.RunRow` uses the first three; a final
# evaluation plays the episodes behind the final score of a finished run.
PRETRAINING, TRANSFER, ZERO_SHOT = 'pretraining', 'transfer', 'zero_shot'
FINAL_EVALUATION = 'final_evaluation'

# The settings of each script in `launch/` that runs use.
SETTINGS = {
  'evaluate': evaluate.Settings,
  'run_bt': run_bt.Settings,
  'run_ngu': run_ngu.Settings,
  'run_r2d2': run_r2d2.Settings,
}
_EPISODES = 'episodes.csv'
# Settings that are derived from the attributes of a run.
_DERIVED = (
  *('env', 'seed', 'max_actor_steps', 'workdir'),
  *('behavior', 'init', 'init_from', 'snapshot_steps'),
)

Settings = tuple[tuple[str, Any], ...]  # Pairs of flag name and value.


class Need(NamedTuple):
  """A dependency of a run on the output of another run.

  Attributes:
    flag: the flag that receives the directory: `behavior`, `init_from`, or
      `workdir` for the whole run.
    run: the other run.
    actor_steps: the actor steps of the required policy snapshot; 0 for the end
      of the run.
  """

  flag: str
  run: 'RunSpec'
  actor_steps: int = 0

  @property
  def folder(self) -> str:
    """The required directory, relative to the directory of all runs."""
    if self.flag == 'workdir':
      return self.run.workdir
    run = run_config.RunConfig(workdir=self.run.workdir)
    if self.actor_steps:
      return run.snapshot_folder(self.actor_steps)
    return run.behavior_folder

  def is_there(self, folder: pathlib.Path) -> bool:
    """Returns whether the required output exists."""
    if self.actor_steps:
      return exported_folder.is_complete(str(folder / self.folder))
    return self.run.is_done(folder)


@dataclasses.dataclass(frozen=True)
class RunSpec:
  """A requested run.

  Attributes:
    stage: `PRETRAINING`, `TRANSFER`, `ZERO_SHOT` or `FINAL_EVALUATION`.
    arm: the algorithm.
    env: the full name of the environment.
    seed: the seed of the run.
    script: the script in `launch/` that executes the run.
    budget_steps: actor steps of the run; 0 for an evaluation.
    settings: other flags, except those that these attributes determine.
    needs: the dependencies of the run.
  """

  stage: str
  arm: str
  env: str
  seed: int
  script: str
  budget_steps: int = 0
  settings: Settings = ()
  needs: tuple[Need, ...] = ()

  @property
  def is_evaluation(self) -> bool:
    """Whether the run only plays episodes and does not learn."""
    return self.script == 'evaluate'

  @functools.cached_property
  def id(self) -> str:
    """The id `ARM/ENV/sSEED-HASH`; HASH covers all settings in `config.json`.

    Raises:
      ValueError: if a setting is unknown to the script or invalid.
    """
    text = json.dumps(_lasting(self.script, self._values()), sort_keys=True)
    digest = hashlib.sha256(text.encode()).hexdigest()[:8]
    return f'{self.arm}/{self.env}/s{self.seed}-{digest}'

  @property
  def workdir(self) -> str:
    """The directory of the run, relative to the directory of all runs."""
    return f'{records.WORKDIRS}/{self.id}'

  @property
  def episodes_file(self) -> str:
    """The output file of an evaluation, relative to the same directory."""
    return f'{self.workdir}/{_EPISODES}'

  @property
  def flags(self) -> list[str]:
    """The flags of the script, which runs in the directory of all runs."""
    values = self._values()
    if self.is_evaluation:
      values['output'] = self.episodes_file
    else:
      values['workdir'] = self.workdir
    return [f'--{name}={_written(value)}' for name, value in values.items()]

  @property
  def command(self) -> str:
    """The shell command, to be executed in the directory of all runs."""
    return shlex.join(launching.command_of(f'{self.script}.py', self.flags))

  @property
  def needed(self) -> list['RunSpec']:
    """The runs that this one depends on."""
    return [need.run for need in self.needs]

  def is_ready(self, folder: pathlib.Path) -> bool:
    """Returns whether the output of the needed runs exists."""
    return all(need.is_there(folder) for need in self.needs)

  def is_done(self, folder: pathlib.Path) -> bool:
    """Returns whether the run has finished and all its output exists.

    Pre-training must have exported its policy, and an evaluation must have
    written all its episodes.
    """
    if self.is_evaluation:
      path = folder / self.episodes_file
      wanted = int(dict(self.settings)['episodes'])
      return path.exists() and len(tables.read_csv(path)) >= wanted
    run = run_config.RunConfig(
      workdir=str(folder / self.workdir), max_actor_steps=self.budget_steps
    )
    return workdir_lib.is_completed(run) and (
      self.stage != PRETRAINING
      or exported_folder.is_complete(run.behavior_folder)
    )

  def call(self, folder: pathlib.Path) -> processes.Call:
    """Returns the function that executes the script."""
    command = launching.command_of(f'{self.script}.py', self.flags)
    return functools.partial(launching.execute, command, folder)

  def __str__(self) -> str:
    return self.command

  def _values(self) -> dict[str, Any]:
    """The values of all flags, except for the directory of the output."""
    values = {**dict(self.settings), 'env': self.env, 'seed': self.seed}
    if self.stage == FINAL_EVALUATION:
      del values['env']  # The workdir determines it.
    if not self.is_evaluation:
      values['max_actor_steps'] = self.budget_steps
    return {**values, **{need.flag: need.folder for need in self.needs}}


def ordered(specs: Iterable[RunSpec]) -> list[RunSpec]:
  """Returns runs and their dependencies without duplicates, in execution order.

  Pre-training comes first, followed by the other runs seed by seed, so that the
  finished runs are balanced at any time.
  """
  return sorted(
    records.with_needed(specs),
    key=lambda spec: (spec.stage != PRETRAINING, spec.seed),
  )


def is_atari(env: str) -> bool:
  """Returns whether an environment is an Atari game."""
  return re.fullmatch('[a-z0-9_]+(:.*)?', env) is not None


def frames_per_step(env: str) -> int:
  """Returns the frames of an actor step: 4 on Atari, 1 elsewhere."""
  return 4 if is_atari(env) else 1


def parsed(name: str, text: str) -> Any:
  """Parses the value of a setting, using the type of its default.

  Raises:
    ValueError: if no script that trains has a setting with this name, if the
      setting is derived, or if the value has another type.
  """
  defaults: dict[str, Any] = {}
  for script in sorted(SETTINGS.keys() - {'evaluate'}):
    defaults.update(names.defaults_of(SETTINGS[script]))
  command_line.known('set', name, defaults)
  if name in _DERIVED:
    raise ValueError(
      f'set={name!r} is determined by the artifact and the scale. '
      'Use --games, --seeds, --scale or --folder instead.'
    )
  kind = type(defaults[name])
  try:
    if kind is bool:
      return {'true': True, 'false': False}[text.lower()]
    return kind(text)
  except (KeyError, ValueError) as error:
    raise ValueError(
      f'set={name}={text} is not of type {kind.__name__}. Pass a value such as '
      f'{name}={_written(defaults[name])}.'
    ) from error


def _lasting(script: str, values: Mapping[str, Any]) -> dict[str, Any]:
  """Returns the settings that identify a run by group, with the preset."""
  settings_class = SETTINGS[script]
  if script == 'evaluate':
    settings = names.to_dict(names.build(settings_class, values))
    return {'script': script, **settings}
  given = dict(values)
  preset = presets.get(given.pop('preset', 'paper'), settings_class, given)
  resolved = names.build(settings_class, {**preset, **given})
  groups = names.to_dict(resolved).items()
  return {
    'script': script,
    # Runs with and without nodes cannot share checkpoints.
    'has_nodes': resolved.run.uses_launchpad,
    **{group: resume_checks.lasting(settings) for group, settings in groups},
  }


def _written(value: Any) -> str:
  """Formats a value for the command line."""
  return str(value).lower() if isinstance(value, bool) else str(value)
