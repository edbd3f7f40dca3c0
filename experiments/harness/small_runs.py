"""Single-process runs in small environments: training, then evaluation.

On one processor type with one set of package versions, the seed fully
determines the results. Each run writes its result as JSON. A run whose policy
others transfer also exports it as a behavior.
"""

import dataclasses
import functools
import hashlib
import json
import pathlib
import re
import tempfile
import time
from collections.abc import Mapping
from typing import Any, ClassVar, Union

import numpy as np

import bt_acme
from bt_acme import assembly, behaviors, compilation_cache, files
from bt_acme import config as config_lib
from bt_acme.behaviors import lookup
from bt_acme.config import names, presets
from bt_acme.evaluation import episode_records
from bt_acme.evaluation import evaluator as evaluator_lib
from bt_acme.launching import named_behaviors
from experiments.harness import processes

# Explorers are also evaluated after these shares of their training.
SHARES = (0.25, 0.5, 0.75)
# The window of `steps_until_half_solved`, in episodes.
_RECENT_EPISODES = 64

_PRETRAINING_STEPS = 40_000  # Of NGU, unless a run's description has others.
_NUM_ENVIRONMENTS = 16  # Environments that a run steps at once.
_LEARNS = ('r2d2', 'ngu', 'bt')  # The kinds of runs that train an agent.
_CONFIGS = {
  'r2d2': config_lib.R2D2Config,
  'ngu': config_lib.NGUConfig,
  'bt': config_lib.BTConfig,
  'program': config_lib.BTConfig,
}
# The behaviors that are not the policies of other runs.
_NAMES = (*lookup.names(), *named_behaviors.BUILT_IN)

Row = dict[str, float]
Columns = Mapping[str, np.ndarray]  # The metrics of episodes, by name.
Result = dict[str, Any]
Behavior = Union['SmallRun', str]


@dataclasses.dataclass(frozen=True)
class SmallRun:
  """A run of an algorithm in an environment, which the harness executes.

  Attributes:
    algorithm: name of the algorithm in tables.
    kind: `r2d2`, `ngu` or `bt` train an agent, and `dqn` that of dm-acme, with
      behavior transfer if there is a behavior; `random` and `behavior` evaluate
      a random policy and the behavior without training; `program` evaluates the
      agent of a run of `launch/run_bt.py`.
    env: the name of the environment.
    actor_steps: the actor steps of training.
    settings: settings by name, which override the preset.
    behavior: the pre-training run whose policy is transferred, and whose
      weights `init` loads, or the name of a behavior; a tuple of them if BT
      transfers several. Without one, BT transfers an action repeat.
    init: the weights to load: `partial`, `full`, or empty for none.
    episodes: the number of evaluation episodes; 0 for no evaluation.
    record: whether to also play episodes with flights and store their actions.
    workdir: the launched run, relative to the directory of all runs.
    shared: whether a run of BT exports its policy, so that others transfer it.
    preset: the preset of the agent's settings.
    seed: the seed of the run, and of the pre-training runs that it depends on.
    fixed_seed: whether runs with other seeds need this run with its own seed.
  """

  is_evaluation: ClassVar[bool] = False  # Small runs use only cores.

  algorithm: str
  kind: str
  env: str
  actor_steps: int = 0
  settings: Mapping[str, Any] = dataclasses.field(
    default_factory=dict, hash=False
  )
  behavior: Behavior | tuple[Behavior, ...] | None = None
  init: str = ''
  episodes: int = 64
  record: bool = False
  workdir: str = ''
  shared: bool = False
  preset: str = 'minigrid'
  seed: int = 0
  fixed_seed: bool = False

  def __str__(self) -> str:
    env = self.env.replace('MiniGrid-', '').replace('-v0', '')
    return f'{self.algorithm}, {env}, seed {self.seed}'

  def with_seed(self, seed: int) -> 'SmallRun':
    """Returns the run with another seed, unless its own is fixed."""
    return self if self.fixed_seed else dataclasses.replace(self, seed=seed)

  @property
  def id(self) -> str:
    """The name of the run's files: algorithm, environment, seed and hash."""
    words = re.sub(r'[^0-9A-Za-z.=-]+', '_', f'{self.env} {self.algorithm}')
    # File names are limited to 255 bytes, the number of environments is not.
    return f'{words[:150]}-{self.seed}-{self.hash}'

  @property
  def exports(self) -> bool:
    """Whether the run exports its policy as a behavior."""
    return self.kind == 'ngu' or self.shared

  @functools.cached_property
  def hash(self) -> str:
    """A hash of the settings, including those of the pre-training run."""
    return hashlib.sha256(json.dumps(self._identity()).encode()).hexdigest()[:8]

  def _identity(self) -> dict[str, Any]:
    """Returns all inputs of a result besides the code and a seed that varies.

    The keys must never change, because published results store the hash.
    """
    behaviors = [
      each._identity() if isinstance(each, SmallRun) else _named(each)
      for each in self.behaviors
    ]
    is_bank = isinstance(self.behavior, tuple)
    seed = str(self.seed) if self.fixed_seed else ''
    optional = {'film': self.record, 'workdir': self.workdir, 'seed': seed}
    return {
      'kind': self.kind,
      'world': self.env,  # english: ok
      'actor_steps': self.actor_steps,
      'init': self.init,
      'episodes': self.episodes,
      'configuration': _changes(
        self.kind, self.preset, json.dumps(dict(self.settings))
      ),
      'behavior': behaviors if is_bank else (behaviors or [{}])[0],
      **{name: value for name, value in optional.items() if value},
    }

  @property
  def behaviors(self) -> list[Behavior]:
    """The transferred behaviors; pre-training runs have the run's seed."""
    found = self.behavior or ()
    return [
      each if isinstance(each, str) else each.with_seed(self.seed)
      for each in (found if isinstance(found, tuple) else (found,))
    ]

  @property
  def needed(self) -> list['SmallRun']:
    """The pre-training runs that this run depends on."""
    return [each for each in self.behaviors if isinstance(each, SmallRun)]

  def transferred(self, folder: pathlib.Path) -> list[str]:
    """Returns the paths or names of the behaviors to transfer."""
    return [
      each if isinstance(each, str) else str(each.exported(folder))
      for each in self.behaviors
    ]

  def exported(self, folder: pathlib.Path) -> pathlib.Path:
    """Returns the path of the behavior that the run exports."""
    return folder / 'behaviors' / self.id

  def is_ready(self, folder: pathlib.Path) -> bool:
    """Returns whether the pre-training runs are done."""
    return all(run.is_done(folder) for run in self.needed)

  def is_done(self, folder: pathlib.Path) -> bool:
    """Returns whether the result and any exported behavior exist."""
    if self.exports and not _checksum(self.exported(folder)):
      return False
    return self.result(folder) is not None

  def checksums(self, folder: pathlib.Path) -> list[str]:
    """Returns the checksum of each needed behavior; empty for missing ones."""
    return [_checksum(run.exported(folder)) for run in self.needed]

  def result(self, folder: pathlib.Path) -> Result | None:
    """Reads the result; None if there is none, or one of other behaviors."""
    try:
      result = json.loads(self._path(folder).read_text())
      # The result of a missing behavior stays valid.
      is_valid = all(x in result['behavior'] for x in self.checksums(folder))
    except (OSError, ValueError, KeyError, TypeError):
      return None
    return result if is_valid else None

  def call(self, folder: pathlib.Path) -> processes.Call:
    """Returns the function that executes the run."""
    return functools.partial(_execute, self, folder)

  def _path(self, folder: pathlib.Path) -> pathlib.Path:
    return folder / 'results' / f'{self.id}.json'


def of_data(data: Mapping[str, Any]) -> SmallRun:
  """Returns a run that is described as JSON.

  Args:
    data: the attributes of the run. A behavior is a name, the environment in
      which NGU pre-trains it, or the attributes of another run.
  """
  behavior = data.get('behavior')
  if isinstance(behavior, list):
    behavior = tuple(map(_behavior, behavior))
  elif behavior:
    behavior = _behavior(behavior)
  return SmallRun(**{**data, 'behavior': behavior})


def _behavior(data: Any) -> Behavior:
  if isinstance(data, dict):
    return of_data(data)
  if isinstance(data, SmallRun) or data in _NAMES:
    return data
  settings = {'intrinsic_reward': 'ngu'}
  return SmallRun('NGU', 'ngu', data, _PRETRAINING_STEPS, settings)


def _named(behavior: str) -> dict[str, Any]:
  folder = pathlib.Path(lookup.resolve(behavior))
  return {'name': behavior, 'params_sha256': _checksum(folder)}


@functools.cache
def _changes(kind: str, preset: str, settings: str) -> dict[str, Any]:
  """Returns the settings of an agent that differ from the defaults.

  Args:
    kind: the kind of the run.
    preset: the name of the preset.
    settings: the settings that override the preset, as JSON.

  Returns:
    The settings by group and name. Existing results stay valid when the code
    gains a new setting whose default preserves the previous behavior.
  """
  given: dict[str, Any] = json.loads(settings)
  config_class = _CONFIGS.get(kind)
  if config_class is None:
    return given
  values = {**presets.get(preset, config_class, given), **given}
  config = names.build(config_class, values)
  default = config_lib.to_dict(config_class())
  return {
    f'{group}.{name}': value
    for group, values in config_lib.to_dict(config).items()
    for name, value in values.items()
    if value != default[group][name]
  }


def _checksum(behavior: pathlib.Path) -> str:
  """Returns the checksum of a behavior's parameters; empty if missing."""
  try:
    card = json.loads((behavior / 'behavior.json').read_text())
  except (OSError, ValueError):
    return ''
  return str(card['params_sha256'])


def _execute(
  run: SmallRun, folder: pathlib.Path, report: processes.Report
) -> None:
  """Trains and evaluates, then writes the result atomically."""
  start = time.monotonic()
  compilation_cache.enable()  # Not every kind of run starts a learner.
  result = (_of_dqn if run.kind == 'dqn' else _of_agent)(run, folder, report)
  result['behavior'] = ''.join(run.checksums(folder))
  result['row']['seconds'] = time.monotonic() - start
  files.write_text(run._path(folder), json.dumps(result) + '\n')


def _of_agent(
  run: SmallRun, folder: pathlib.Path, report: processes.Report
) -> Result:
  """Returns the result of an agent of bt_acme."""
  agent, states, episodes = _learn(run, folder, report)
  if not episodes:  # No episode has ended.
    episodes = dict.fromkeys(_curves(run), np.zeros(0))
  result: Result = {
    'row': _evaluate(run, agent, states, episodes) if run.episodes else {},
    'episodes': {name: episodes[name].tolist() for name in _curves(run)},
  }
  if run.record:
    flies = run.kind in ('bt', 'program')
    (recordings,) = _play(run, agent, states[-1:], flights=flies)
    result['films'] = [
      [r.actions, r.sources, r.metrics['episode_return']] for r in recordings
    ]
  return result


def _of_dqn(
  run: SmallRun, folder: pathlib.Path, report: processes.Report
) -> Result:
  """Returns the result of dm-acme's DQN, which needs the full stack."""
  from launch import run_acme_dqn

  settings = run_acme_dqn.Settings(
    run_acme_dqn.DQNConfig(
      run.env,
      ','.join(run.transferred(folder)),
      run.actor_steps,
      run.episodes,
      run.seed,
    ),
    dataclasses.replace(run_acme_dqn.Settings.transfer, **run.settings),
  )
  trained, played = run_acme_dqn.run(
    settings, lambda played: report(int(played[:, 0].sum()))
  )
  lengths, returns = trained.T
  training = {'actor_steps': lengths.cumsum(), 'episode_return': returns}
  row = {
    'solved': float(np.mean(played[:, 1] > 0)),
    'return': float(np.mean(played[:, 1])),
    **_training_row(training, run.actor_steps),
  }
  curves = {name: values.tolist() for name, values in training.items()}
  return {'row': row, 'episodes': curves}


# An agent, its states (runs or behaviors, each with its `learned` policy), the
# final one last, and the metrics of the training episodes.
_Learned = tuple[assembly.Agent, list[Any], Columns]


def _learn(
  run: SmallRun, folder: pathlib.Path, report: processes.Report
) -> _Learned:
  """Trains an agent, or loads a trained one."""
  if run.kind == 'program':
    loaded = bt_acme.load_run(folder / run.workdir)
    order = np.argsort(loaded.episodes['actor_steps'], kind='stable')
    episodes = {name: x[order] for name, x in loaded.episodes.items()}
    return loaded.agent, [loaded], episodes
  if run.kind in _LEARNS:
    return _train(run, folder, report)
  (name,) = run.transferred(folder)
  behavior = bt_acme.load_behavior(name)
  return behavior.agent.named(run.env), [behavior], {}


def _train(
  run: SmallRun, folder: pathlib.Path, report: processes.Report
) -> _Learned:
  """Trains an agent; exports a policy that other runs need."""
  paths: list[str] = []
  with tempfile.TemporaryDirectory(prefix='bt_acme-') as workdir:
    arguments: dict[str, Any] = {
      **run.settings,
      'max_actor_steps': run.actor_steps,
      'seed': run.seed,
      'preset': run.preset,
      'num_environments': _NUM_ENVIRONMENTS,
      'num_evaluators': 0,
      'workdir': workdir,
      'progress': 'off',
      'callbacks': [lambda values: report(int(values['actor_steps']))],
    }
    if run.kind == 'ngu':
      snapshots = [round(share * run.actor_steps) for share in SHARES]
      steps = ','.join(map(str, snapshots))
      trained = bt_acme.pretrain(run.env, snapshot_steps=steps, **arguments)
      paths = [f'{workdir}/behavior-{step}' for step in snapshots]
    else:
      transferred = run.transferred(folder)
      if run.init:
        arguments.update(init_from=transferred[0], init=run.init)
      if run.kind == 'bt':
        transferred = transferred or ['action_repeat']
        trained = bt_acme.transfer(run.env, transferred, **arguments)
      else:
        trained = bt_acme.train(run.env, **arguments)
    if trained.actor_steps < run.actor_steps:
      raise KeyboardInterrupt  # Another attempt starts from the beginning.
    states: list[Any] = [*map(behaviors.Exported, paths), trained]
    episodes = trained.episodes
  if run.exports:
    trained.export(run.exported(folder))
  return trained.agent, states, episodes


def _curves(run: SmallRun) -> list[str]:
  """Returns the metrics of training episodes that a result contains."""
  learned = run.settings.get('flight_priorities') == 'learned'
  priorities = [f'flight_priority_{k}' for k in range(len(run.behaviors))]
  return ['actor_steps', 'episode_return', *(priorities if learned else [])]


def _evaluate(
  run: SmallRun, agent: assembly.Agent, states: list[Any], training: Columns
) -> Row:
  """Returns means over the evaluation episodes and the training episodes.

  Explorers were also evaluated during training: `cells_25` is the number of
  cells after 25% of the training.
  """
  *earlier, row = map(_summary, _play(run, agent, states))
  for share, earlier_row in zip(SHARES, earlier, strict=False):
    row[f'cells_{100 * share:.0f}'] = earlier_row['cells']
  if run.kind in _LEARNS:
    row.update(_training_row(training, run.actor_steps))
  return row


def _training_row(training: Columns, budget: int) -> Row:
  """Returns means over the training episodes."""
  return {
    'training_return': float(np.mean(training['episode_return'])),
    'training_solved': float(np.mean(training['episode_return'] > 0)),
    'half_solved': steps_until_half_solved(training, budget),
  }


def steps_until_half_solved(training: Columns, budget: int) -> float:
  """Returns the actor steps until half of the last 64 episodes are solved.

  Args:
    training: the metrics of the training episodes.
    budget: the actor steps of the run, the result if that never happens.
  """
  is_solved = training['episode_return'] > 0
  for end in range(_RECENT_EPISODES, len(is_solved) + 1):
    if np.mean(is_solved[end - _RECENT_EPISODES : end]) >= 0.5:
      return float(training['actor_steps'][end - 1])
  return float(budget)


def _play(
  run: SmallRun, agent: assembly.Agent, states: list[Any], flights: bool = False
) -> list[list[episode_records.Recording]]:
  """Plays the episodes of a run with each state of an agent."""
  evaluator = evaluator_lib.Evaluator(
    agent,
    episodes=run.episodes,
    seed=run.seed,
    epsilon=1.0 if run.kind == 'random' else None,
    flights=flights,
  )
  recordings = [
    episode_records.record(evaluator, state.learned) for state in states
  ]
  evaluator.close()
  return recordings


def _summary(recordings: list[episode_records.Recording]) -> Row:
  def mean(name: str) -> float:
    return float(np.mean([r.metrics[name] for r in recordings]))

  return {
    'solved': float(np.mean([r.is_solved for r in recordings])),
    'return': mean('episode_return'),
    'length': mean('episode_length'),
    'cells': float(np.mean([r.num_cells for r in recordings])),
    'extra_action': mean('greedy_extra_share'),
  }
