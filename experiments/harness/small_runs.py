"""Runs of one process in small environments: trained, then evaluated.

The seed decides every number. A run leaves its result as JSON, and its policy
as a behavior if it explores.
"""

import dataclasses
import functools
import hashlib
import json
import math
import pathlib
import re
import tempfile
import time
from typing import (
  Any,
  ClassVar,
  Dict,
  List,
  Mapping,
  NamedTuple,
  Optional,
  Sequence,
  Tuple,
)

import jax
import numpy as np

from bt_acme import assembly, behaviors, environments, files
from bt_acme import config as config_lib
from bt_acme.cli import evaluation
from bt_acme.config import names, presets
from bt_acme.config import run as run_config
from bt_acme.core import weight_transfer
from bt_acme.evaluation import evaluator as evaluator_lib
from bt_acme.evaluation import logs, recorder
from bt_acme.runtime import learned, progress
from bt_acme.runtime.engines import in_process
from experiments.harness import pool

PRESET = 'minigrid'
NUM_EPISODES = 64  # Episodes of the evaluation behind each number.
# What explores is also evaluated during training, at these shares of it.
SHARES = (0.25, 0.5, 0.75)

_NUM_ENVIRONMENTS = 16  # Environments that a run steps at once.
_LEARNS = ('r2d2', 'ngu', 'bt')  # The kinds of runs that train an agent.
_CONFIGS = {
  'r2d2': config_lib.R2D2Config,
  'ngu': config_lib.NGUConfig,
  'bt': config_lib.BTConfig,
  'program': config_lib.BTConfig,
}

Row = Dict[str, float]
Result = Dict[str, Any]


@dataclasses.dataclass(frozen=True)
class Run:
  """One algorithm's run in one environment.

  Attributes:
    algorithm: its name in the tables.
    kind: `r2d2`, `ngu` or `bt`; `random` acts at random and `behavior` as the
      behavior does, both without learning; `program` acts as a run of
      `launch/run_bt.py` has learned to.
    world: the name of the environment.
    actor_steps: the number of steps of training.
    settings: settings by name, over those of the preset.
    behavior: the pre-training run whose policy is transferred, and whose
      weights `init` loads. Without it, BT transfers an action repeat.
    init: the weights that are loaded: `partial`, `full`, or none if empty.
    episodes: of the evaluation; 0 for none.
    film: whether it also plays with flights, and keeps the actions.
    map_world: where the behavior and a random policy are also watched.
    map_episodes: of each of these.
    workdir: the launched run, relative to the folder.
  """

  algorithm: str
  kind: str
  world: str
  actor_steps: int = 0
  settings: Mapping[str, Any] = dataclasses.field(
    default_factory=dict, hash=False
  )
  behavior: Optional['Run'] = None
  init: str = ''
  episodes: int = NUM_EPISODES
  film: bool = False
  map_world: str = ''
  map_episodes: int = 0
  workdir: str = ''

  def name(self, seed: int) -> str:
    """The name of the files that keep its result."""
    words = re.sub(r'[^0-9A-Za-z.=-]+', '_', f'{self.world} {self.algorithm}')
    return f'{words}-{seed}'

  @functools.cached_property
  def hash(self) -> str:
    """Identifies its settings, with those of what it builds on."""
    text = json.dumps(self._identity())
    return hashlib.sha256(text.encode()).hexdigest()[:8]

  def _identity(self) -> Dict[str, Any]:
    """What a result depends on, next to the seed and the code."""
    added = ('film', 'map_world', 'map_episodes', 'workdir')
    return {
      'kind': self.kind,
      'world': self.world,
      'actor_steps': self.actor_steps,
      'init': self.init,
      'episodes': self.episodes,
      'configuration': _changes(self) if self.kind in _CONFIGS else {},
      'behavior': self.behavior._identity() if self.behavior else {},
      **{name: getattr(self, name) for name in added if getattr(self, name)},
    }


@dataclasses.dataclass(frozen=True)
class Job:
  """A run with its seed, which the harness executes."""

  run: Run
  seed: int

  is_evaluation: ClassVar[bool] = False  # Cores are good for all.

  def __str__(self) -> str:
    return f'{self.run.algorithm} on {self.run.world}, seed {self.seed}'

  @property
  def id(self) -> str:
    """Its name with the hash of its settings."""
    return f'{self.run.name(self.seed)}-{self.run.hash}'

  @property
  def needed(self) -> List['Job']:
    """The run that it builds on, if it does on one."""
    return [Job(self.run.behavior, self.seed)] if self.run.behavior else []

  def behavior(self, folder: pathlib.Path) -> pathlib.Path:
    """Where it leaves its behavior, if it explores."""
    return folder / 'behaviors' / self.run.name(self.seed)

  def is_ready(self, folder: pathlib.Path) -> bool:
    """Returns whether the behavior is there that it needs."""
    return all(job.behavior(folder).exists() for job in self.needed)

  def is_done(self, folder: pathlib.Path) -> bool:
    """Returns whether it has left its result here, and its behavior."""
    result = self.result(folder)
    explores = self.run.kind == 'ngu'
    if result is None or (explores and not _checksum(self.behavior(folder))):
      return False
    return all(
      _checksum(job.behavior(folder)) in ('', result['behavior'])
      for job in self.needed
    )

  def result(self, folder: pathlib.Path) -> Optional[Result]:
    """Reads its result; None if there is none."""
    try:
      result: Result = json.loads(self._path(folder).read_text())
    except (OSError, ValueError):
      return None
    return result

  def row(self, folder: pathlib.Path) -> Row:
    """Reads the numbers of its result, which is there."""
    row: Row = json.loads(self._path(folder).read_text())['row']
    return row

  def call(self, folder: pathlib.Path) -> pool.Call:
    """Returns what executes it."""
    return functools.partial(_execute, self, folder)

  def _path(self, folder: pathlib.Path) -> pathlib.Path:
    return folder / 'results' / f'{self.id}.json'


class _Policy(NamedTuple):
  """What is evaluated.

  Attributes:
    agent: acts.
    variables: its parameters.
    statistics: those of its intrinsic reward; None without one.
    epsilon: of its actions; None for the configuration's.
  """

  agent: assembly.Agent
  variables: Any
  statistics: Any = None
  epsilon: Optional[float] = None


# States of one agent, the last one of the run's end, and the metrics of each
# episode of training.
_Learned = Tuple[List[_Policy], Sequence[Row]]


def configuration(run: Run) -> Any:
  """The configuration of a run that learns: the preset's, with its own."""
  config_class = _CONFIGS[run.kind]
  settings = {**presets.get(PRESET, config_class), **run.settings}
  return names.build(config_class, settings)


def _changes(run: Run) -> Dict[str, Any]:
  """The settings that are not the defaults.

  A setting that joins later, with what was done before as its default, leaves
  the results valid.
  """
  config = configuration(run)
  default = config_lib.to_dict(type(config)())
  return {
    f'{group}.{name}': value
    for group, settings in config_lib.to_dict(config).items()
    for name, value in settings.items()
    if value != default[group][name]
  }


def _checksum(behavior: pathlib.Path) -> str:
  """Returns that of a behavior's parameters; empty if there is none."""
  try:
    card = json.loads((behavior / 'behavior.json').read_text())
  except (OSError, ValueError):
    return ''
  return str(card['params_sha256'])


def _execute(job: Job, folder: pathlib.Path, report: pool.Report) -> None:
  """Trains and evaluates, and writes the result, whole or not at all."""
  start = time.monotonic()
  run = job.run
  report((0, math.nan))
  policies, episodes = _learn(job, folder, report)
  result: Result = {
    'row': _evaluate(run, policies, episodes, job.seed) if run.episodes else {},
    'behavior': ''.join(_checksum(j.behavior(folder)) for j in job.needed),
    'episodes': {
      name: [row[name] for row in episodes]
      for name in ('actor_steps', 'episode_return')
    },
  }
  final = policies[-1]
  if run.film:
    films = _play([final], run.episodes, job.seed, flights=True)[0]
    result['films'] = [
      [r.actions, r.sources, r.metrics['episode_return']] for r in films
    ]
  if run.map_world:
    result['visits'] = {
      'random': _visits(final, run, job.seed),
      'pi_p': _visits(final._replace(epsilon=None), run, job.seed),
    }
  result['row']['seconds'] = time.monotonic() - start
  files.write_text(job._path(folder), json.dumps(result) + '\n')


def _learn(job: Job, folder: pathlib.Path, report: pool.Report) -> _Learned:
  """Trains an agent, or loads one that is trained."""
  run = job.run
  if run.kind == 'program':
    workdir = str(folder / run.workdir)
    loaded = evaluation.load(evaluation.EvaluationConfig(workdir=workdir))
    episodes = logs.read_rows(workdir, 'actor')
    episodes.sort(key=lambda row: row['actor_steps'])
    return [_Policy(loaded.agent, loaded.variables)], episodes
  behavior: Any = behaviors.ActionRepeat()
  if job.needed:
    epsilon = 0.0
    if run.kind == 'bt':
      epsilon = configuration(run).transfer.behavior_epsilon
    path = job.needed[0].behavior(folder)
    behavior = behaviors.Exported(str(path), epsilon=epsilon)
  if run.kind in _LEARNS:
    return _train(job, folder, behavior, report)
  policy = _Policy(
    _agent_in(behavior.agent, run.world),
    behavior.variables,
    behavior.statistics,
    1.0 if run.kind == 'random' else None,
  )
  return [policy], ()


def _agent_in(agent: assembly.Agent, world: str) -> assembly.Agent:
  return dataclasses.replace(agent, spec=agent.spec._replace(name=world))


def _train(
  job: Job, folder: pathlib.Path, behavior: Any, report: pool.Report
) -> _Learned:
  """Trains an agent; what explores is exported for later runs."""
  run = job.run
  agent = assembly.Agent(
    configuration(run),
    assembly.spec_by_name(run.world),
    (behavior,) if run.kind == 'bt' else (),
  )
  explores = run.kind == 'ngu'

  period = round(run.actor_steps * SHARES[0])
  states: List[learned.Learned] = []

  def on_iteration(values: Mapping[str, Any]) -> None:
    steps = int(values['actor_steps'])
    recent = math.nan if explores else values.get('episode_return', math.nan)
    report((steps, float(recent)))
    if explores and len(states) < len(SHARES):
      if steps >= period * (len(states) + 1):
        states.append(engine.learned())

  with tempfile.TemporaryDirectory(prefix='bt_acme-') as workdir:
    engine = in_process.InProcess(
      run_config.RunConfig(
        env=agent.spec.name,
        num_stacked=agent.spec.num_stacked,
        lp_launch_type='in_process',
        num_actors=1,
        envs_per_actor=_NUM_ENVIRONMENTS,
        max_actor_steps=run.actor_steps,
        seed=job.seed,
        num_evaluators=0,
        workdir=workdir,
      ),
      agent,
      make_display=progress.NoDisplay,
      initial_params=_initial_params(run, agent, behavior, job.seed),
    )
    engine.run([on_iteration])
    episodes = logs.read_rows(workdir, 'actor')
  result = engine.learned()
  if explores:
    behaviors.export(
      str(job.behavior(folder)),
      agent=agent,
      variables=result.variables,
      statistics=result.statistics,
      actor_steps=result.actor_steps,
    )
  policies = [
    _Policy(agent, state.variables, state.statistics)
    for state in (*states, result)
  ]
  return policies, episodes


def _initial_params(
  run: Run, agent: assembly.Agent, behavior: Any, seed: int
) -> Any:
  """The weights of the behavior; None to begin with fresh ones."""
  if not run.init:
    return None
  return weight_transfer.transfer(
    behavior.variables.agent,
    agent.network.init(jax.random.key(seed)),
    init=run.init,
  )


def _evaluate(
  run: Run, policies: List[_Policy], training: Sequence[Row], seed: int
) -> Row:
  """Returns means over episodes of the evaluation, and over those of training.

  What explores was also evaluated during training: `cells_25` are the cells at
  25 % of it.
  """
  plays = _play(policies, run.episodes, seed)
  *earlier, row = [_summary(recordings) for recordings in plays]
  for share, earlier_row in zip(SHARES, earlier, strict=False):
    row[f'cells_{100 * share:.0f}'] = earlier_row['cells']
  if run.kind in _LEARNS:
    returns = [episode['episode_return'] for episode in training]
    row['training_return'] = float(np.mean(returns))
    row['training_solved'] = float(np.mean(np.array(returns) > 0))
  return row


def _play(
  policies: Sequence[_Policy], episodes: int, seed: int, flights: bool = False
) -> List[List[recorder.Recording]]:
  """Plays episodes by several states of one agent."""
  agent, _, _, epsilon = policies[-1]
  evaluator = evaluator_lib.Evaluator(
    agent,
    episodes=episodes,
    seed=seed,
    first_environment=evaluator_lib.FIRST_ENVIRONMENT,
    epsilon=epsilon,
    flights=flights,
  )
  recordings = [
    recorder.record(evaluator, policy.variables, policy.statistics)
    for policy in policies
  ]
  evaluator.close()
  return recordings


def _summary(recordings: List[recorder.Recording]) -> Row:
  def mean(name: str) -> float:
    return float(np.mean([r.metrics[name] for r in recordings]))

  return {
    'solved': float(np.mean([r.is_solved for r in recordings])),
    'return': mean('episode_return'),
    'length': mean('episode_length'),
    'cells': float(np.mean([r.num_cells for r in recordings])),
    'extra_action': mean('greedy_extra_share'),
  }


def _visits(policy: _Policy, run: Run, seed: int) -> Dict[str, Any]:
  """How often a policy visits each cell of an environment."""
  agent = _agent_in(policy.agent, run.map_world)
  policy = policy._replace(agent=agent)
  (recordings,) = _play([policy], run.map_episodes, seed)
  columns, rows = environments.make(run.map_world, seed=0).grid_size()
  counts = np.zeros([rows, columns], np.int64)
  for recording in recordings:
    for x, y in recording.cells:
      counts[y, x] += 1
  return {'counts': counts.tolist(), 'cells': _summary(recordings)['cells']}
