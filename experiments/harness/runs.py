"""Runs of scripts, as data: what each one is, where it lies, how it starts.

A run is identified by its settings, as its workdir's `config.json` holds them.
A changed setting therefore is another run, and never overwrites one.
"""

import dataclasses
import difflib
import functools
import hashlib
import json
import pathlib
import sys
from typing import (
  Any,
  Dict,
  Iterable,
  List,
  Mapping,
  NamedTuple,
  Tuple,
)

from bt_acme.behaviors import exported_folder
from bt_acme.config import names, presets
from bt_acme.config import run as run_config
from bt_acme.evaluation import tables
from bt_acme.runtime import workdir as workdir_lib
from experiments.harness import pool, records
from launch import evaluate, run_bt, run_ngu, run_r2d2

# What `RunSpec.stage` may be. The first three are those of `dataset.Run`; a
# final evaluation plays the episodes that count for a run that has ended.
PRETRAINING, TRANSFER, ZERO_SHOT = 'pretraining', 'transfer', 'zero_shot'
FINAL_EVALUATION = 'final_evaluation'

# The settings of each script in `launch/`.
_SETTINGS = {
  'evaluate': evaluate.Settings,
  'run_bt': run_bt.Settings,
  'run_ngu': run_ngu.Settings,
  'run_r2d2': run_r2d2.Settings,
}
_EPISODES = 'episodes.csv'
# The settings that the attributes of a run decide.
_DECIDED = (
  *('env', 'seed', 'max_actor_steps', 'workdir', 'output', 'episodes'),
  *('behavior', 'init', 'init_from', 'snapshot_steps'),
)

Settings = Tuple[Tuple[str, Any], ...]  # Names of flags with their values.


class Need(NamedTuple):
  """What another run has to leave behind before a run may start.

  Attributes:
    flag: the flag that takes the folder: `behavior`, `init_from`, or `workdir`
      for the whole run.
    run: the other run.
    actor_steps: the step of the snapshot that is needed; 0 for the run's end.
  """

  flag: str
  run: 'RunSpec'
  actor_steps: int = 0

  @property
  def folder(self) -> str:
    """The folder that is needed, relative to the folder of all runs."""
    if self.flag == 'workdir':
      return self.run.workdir
    run = run_config.RunConfig(workdir=self.run.workdir)
    if self.actor_steps:
      return run.snapshot_folder(self.actor_steps)
    return run.behavior_folder

  def is_there(self, folder: pathlib.Path) -> bool:
    """Returns whether the other run has left it."""
    if self.actor_steps:
      return exported_folder.is_complete(str(folder / self.folder))
    return self.run.is_done(folder)


@dataclasses.dataclass(frozen=True)
class RunSpec:
  """A run that is asked for.

  Attributes:
    stage: `PRETRAINING`, `TRANSFER`, `ZERO_SHOT` or `FINAL_EVALUATION`.
    arm: the algorithm.
    env: the environment's whole name.
    seed: of the run.
    script: the script in `launch/` that executes it.
    budget_steps: the actor steps that it takes; 0 for an evaluation.
    settings: other flags, without those that the attributes here decide.
    needs: what must be there before it starts.
  """

  stage: str
  arm: str
  env: str
  seed: int
  script: str
  budget_steps: int = 0
  settings: Settings = ()
  needs: Tuple[Need, ...] = ()

  @property
  def is_evaluation(self) -> bool:
    """Whether it only plays episodes, and learns nothing."""
    return self.script == 'evaluate'

  @functools.cached_property
  def id(self) -> str:
    """`ARM/ENV/sSEED-HASH`; the hash is that of all lasting settings.

    Raises:
      ValueError: for a setting that the script does not have, or refuses.
    """
    values = {**dict(self.settings), **self._of_the_attributes()}
    text = json.dumps(_lasting(self.script, values), sort_keys=True)
    digest = hashlib.sha256(text.encode()).hexdigest()[:8]
    return f'{self.arm}/{self.env}/s{self.seed}-{digest}'

  @property
  def workdir(self) -> str:
    """The run's folder, relative to the folder of all runs."""
    return f'{records.WORKDIRS}/{self.id}'

  @property
  def episodes_file(self) -> str:
    """The file that an evaluation writes, relative like `workdir`."""
    return f'{self.workdir}/{_EPISODES}'

  @property
  def flags(self) -> List[str]:
    """The flags of the script, whose working folder is that of all runs."""
    place = (
      {'output': self.episodes_file}
      if self.is_evaluation
      else {'workdir': self.workdir}
    )
    values = {**dict(self.settings), **self._of_the_attributes(), **place}
    return [f'--{name}={_written(value)}' for name, value in values.items()]

  @property
  def command(self) -> str:
    """What to type in the folder of all runs, for readers."""
    return ' '.join(['python', f'launch/{self.script}.py', *self.flags])

  @property
  def needed(self) -> List['RunSpec']:
    """The runs that leave what it needs."""
    return [need.run for need in self.needs]

  def is_ready(self, folder: pathlib.Path) -> bool:
    """Returns whether all that it needs is there."""
    return all(need.is_there(folder) for need in self.needs)

  def is_done(self, folder: pathlib.Path) -> bool:
    """Returns whether it has used up its budget, and left all that it should.

    Pre-training leaves its policy, and an evaluation its episodes.
    """
    if self.is_evaluation:
      wanted = dict(self.settings).get('episodes', 1)
      return _num_rows(folder / self.episodes_file) >= int(wanted)
    run = run_config.RunConfig(
      workdir=str(folder / self.workdir), max_actor_steps=self.budget_steps
    )
    return workdir_lib.is_completed(run) and (
      self.stage != PRETRAINING
      or exported_folder.is_complete(run.behavior_folder)
    )

  def call(self, folder: pathlib.Path) -> pool.Call:
    """Returns what executes its script."""
    return functools.partial(pool.run_script, command_of(self), folder)

  def __str__(self) -> str:
    return self.command

  def _of_the_attributes(self) -> Dict[str, Any]:
    needs = {need.flag: need.folder for need in self.needs}
    if not self.is_evaluation:
      budget = {'max_actor_steps': self.budget_steps}
      return {'env': self.env, 'seed': self.seed, **budget, **needs}
    if self.stage == FINAL_EVALUATION:  # The run knows its environment.
      return {'seed': self.seed, **needs}
    return {'env': self.env, 'seed': self.seed, **needs}


def command_of(spec: RunSpec) -> List[str]:
  """Returns the command line that executes a run in the folder of all runs."""
  script = pool.ROOT / 'launch' / f'{spec.script}.py'
  return [sys.executable, str(script), *spec.flags]


def ordered(specs: Iterable[RunSpec]) -> List[RunSpec]:
  """Returns runs and all that they need, each once, in the order of work.

  Pre-training comes first, then the first seed of all others, then the second,
  so that what is done is balanced whenever the work is stopped.
  """
  found: Dict[str, RunSpec] = {}
  for spec in specs:
    _add(spec, found)
  return sorted(
    found.values(), key=lambda spec: (spec.stage != PRETRAINING, spec.seed)
  )


def has_setting(script: str, name: str) -> bool:
  """Returns whether a script has a setting of this name."""
  return name in names.settings_of(_SETTINGS[script])


def check_setting(name: str) -> None:
  """Raises ValueError if no script has a setting of this name."""
  known = {n for c in _SETTINGS.values() for n in names.settings_of(c)}
  if name not in known:
    nearest = difflib.get_close_matches(name, known, n=1)
    raise ValueError(
      f'set={name!r} is no setting: '
      + (f'did you mean {nearest[0]!r}? ' if nearest else '')
      + '`python launch/run_bt.py --help` lists all.'
    )
  if name in _DECIDED:
    raise ValueError(
      f'set={name!r} is decided by the artifact and the scale: '
      'use --games, --seeds, --scale or --folder.'
    )


def parsed(name: str, text: str) -> Any:
  """Reads the value of a setting, which is of its default's type.

  Raises:
    ValueError: for an unknown setting, or a text that is no such value.
  """
  check_setting(name)
  defaults: Dict[str, Any] = {}
  for settings_class in _SETTINGS.values():
    defaults.update(names.defaults_of(settings_class))
  kind = type(defaults[name])
  try:
    if kind is bool:
      return {'true': True, 'false': False}[text.lower()]
    return kind(text)
  except (KeyError, ValueError) as error:
    raise ValueError(
      f'set={name}={text} must be of the type {kind.__name__}, such as '
      f'{name}={_written(defaults[name])}.'
    ) from error


def _num_rows(path: pathlib.Path) -> int:
  return len(tables.read_csv(path)) if path.exists() else 0


def _add(spec: RunSpec, found: Dict[str, RunSpec]) -> None:
  if spec.id not in found:
    for need in spec.needs:
      _add(need.run, found)
    found[spec.id] = spec


def _lasting(script: str, values: Mapping[str, Any]) -> Dict[str, Any]:
  """Returns all lasting settings of a run, by group, presets resolved."""
  settings_class = _SETTINGS[script]
  given = dict(values)
  if script == 'evaluate':
    settings = names.to_dict(names.build(settings_class, given))
    return {'script': script, **settings}
  preset = presets.get(given.pop('preset', 'paper'), settings_class)
  resolved = names.build(settings_class, {**preset, **given})
  groups = names.to_dict(resolved).items()
  return {
    'script': script,
    # Runs with and without nodes do not go on with each other's checkpoints.
    'has_nodes': resolved.run.has_nodes,
    **{group: workdir_lib.lasting(settings) for group, settings in groups},
  }


def _written(value: Any) -> str:
  """Returns a value as a flag takes it."""
  return str(value).lower() if isinstance(value, bool) else str(value)
