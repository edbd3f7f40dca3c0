"""Does each part learn what it is for? Short runs on small worlds, over seeds.

Four claims, each a few algorithms on one world:

  memory     R2D2 recalls a sign, by Q(lambda) and by Retrace; the same
             agent without an LSTM does not.
  coverage   What NGU and RND learn without rewards visits more cells of an
             episode than a random policy and than what a constant reward gives.
  transfer   Behavior transfer of that NGU policy solves a task within a budget
             in which epsilon-greedy and ez-greedy do not find its reward.
  deceptive  Where the reward punishes what the behavior does, behavior transfer
             ends above the behavior and above fine-tuning it.

Each run is one process of one thread, repeated exactly by its seed. What has
been run lies in the folder, a file a run, and is not run again.
"""

import concurrent.futures
import dataclasses
import functools
import itertools
import json
import multiprocessing
import os
import pathlib
import re
import threading
import time
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple

from absl import flags as absl_flags

FLAGS = absl_flags.FLAGS
_ALL = ('memory', 'coverage', 'transfer', 'deceptive')
absl_flags.DEFINE_list('claims', list(_ALL), f'Of {_ALL}.')
absl_flags.DEFINE_integer('seeds', 5, 'Runs of each algorithm, two at least.')
absl_flags.DEFINE_integer('jobs', os.cpu_count() or 1, 'Runs at a time.')
absl_flags.DEFINE_string('folder', 'runs/learning', 'Where results go.')

_FLIGHTS = {'min_flight_probability': 0.01}  # Of all that transfer.
_ENVIRONMENTS = 16  # That one run steps at once.
_EPISODES = 64  # Of the evaluation behind each score.


@dataclasses.dataclass(frozen=True)
class Run:
  """One algorithm's run on one world.

  Attributes:
    claim: that it is for.
    algorithm: its name in the table.
    kind: `r2d2`, `ngu` or `bt`; `random` acts at random and `behavior` as the
      behavior does, without learning.
    world: name of the environment.
    actor_steps: of training.
    settings: groups of the configuration that differ from the preset.
    behavior: pre-training whose policy BT transfers and whose weights R2D2
      starts from. Without, BT transfers an action repeat.
  """

  claim: str
  algorithm: str
  kind: str
  world: str
  actor_steps: int = 0
  settings: Mapping[str, Mapping[str, Any]] = dataclasses.field(
    default_factory=dict
  )
  behavior: Optional['Run'] = None

  def name(self, seed: int) -> str:
    """Of the files that keep its result."""
    words = re.sub(r'\W+', '_', f'{self.claim} {self.world} {self.algorithm}')
    return f'{words}-{seed}'


def _transfers(
  claim: str,
  world: str,
  steps: int,
  behavior: Run,
  *,
  learner: Optional[Mapping[str, Any]] = None,
  only: Tuple[str, ...] = (),
) -> List[Run]:
  """A behavior zero-shot, and all that may be made of it.

  Args:
    claim: of the runs.
    world: of the runs.
    steps: actor steps of each.
    behavior: what pre-trained it.
    learner: settings of all of them.
    only: algorithms that are wanted; all if empty.

  Returns:
    The runs.
  """

  def run(
    algorithm: str, kind: str, transferred: Optional[Run] = None, **own: Any
  ) -> Run:
    settings = {
      'learner': learner or {},
      'transfer': {**_FLIGHTS, **own},
    }
    return Run(claim, algorithm, kind, world, steps, settings, transferred)

  zero_shot = Run(claim, 'pi_p zero-shot', 'behavior', world, behavior=behavior)
  runs = [
    run('R2D2', 'r2d2'),
    run('R2D2 ez-greedy', 'bt', extra_action=False),
    run('BT flights only', 'bt', behavior, extra_action=False),
    run('BT extra action only', 'bt', behavior, flights=False),
    run('BT', 'bt', behavior),
    run('fine-tuning', 'r2d2', behavior),
  ]
  return [zero_shot, *(r for r in runs if not only or r.algorithm in only)]


def _runs() -> List[Run]:
  from bt_acme.environments import worlds

  # Episodes have eight steps.
  sequences = {'trace_length': 8, 'sequence_period': 8}

  def memory(algorithm: str, **groups: Mapping[str, Any]) -> Run:
    return Run(
      'memory',
      algorithm,
      kind='r2d2',
      world=worlds.RECALL,
      actor_steps=12_000,
      settings={'replay': sequences, **groups},
    )

  coverage = functools.partial(Run, 'coverage', kind='ngu')
  rooms = functools.partial(coverage, world=f'{worlds.FOUR_ROOMS}:no_goal')
  pretraining = rooms('ngu 100k', actor_steps=100_000)
  chain = functools.partial(coverage, world=worlds.CHAIN)
  # RND's reward falls as its predictor learns, and what the replay holds of it
  # does not: a replay of a few thousand steps forgets the first, large ones.
  # And more of the environments explore by themselves.
  rnd: Mapping[str, Mapping[str, Any]] = {
    'intrinsic': {'intrinsic_reward': 'rnd'},
    'replay': {
      'min_replay_size': 20,
      'max_replay_size': 150,
      'samples_per_insert': 24.0,
    },
    'learner': {'discount': 0.97, 'target_update_period': 50},
    'acting': {'epsilon_alpha': 2.0},
  }
  constant = {'intrinsic': {'intrinsic_reward': 'constant'}}
  explored = chain('ngu 40k', actor_steps=40_000)
  return [
    memory('Q(lambda)'),
    memory('Retrace', learner={'loss': 'retrace'}),
    memory('Q(lambda) no LSTM', network={'lstm_size': 0}),
    chain('random policy', kind='random', behavior=explored),
    chain('constant 20k', actor_steps=20_000, settings=constant),
    chain('constant 40k', actor_steps=40_000, settings=constant),
    chain('rnd 20k', actor_steps=20_000, settings=rnd),
    chain('rnd 40k', actor_steps=40_000, settings=rnd),
    chain('ngu 20k', actor_steps=20_000),
    explored,
    rooms('random policy', kind='random', behavior=pretraining),
    rooms('constant 100k', actor_steps=100_000, settings=constant),
    pretraining,
    *_transfers(
      'transfer',
      worlds.FAR_GOAL,
      40_000,
      pretraining,
      learner={'discount': 0.97, 'target_update_period': 100},
    ),
    *_transfers(
      'deceptive',
      worlds.COSTLY,
      30_000,
      pretraining,
      only=('R2D2', 'BT', 'fine-tuning'),
    ),
  ]


def _behavior_folder(run: Run, seed: int, folder: str) -> str:
  return str(pathlib.Path(folder) / 'behaviors' / run.name(seed))


def _configuration(run: Run) -> Any:
  """The preset's, with the run's own settings."""
  from bt_acme import config as config_lib
  from bt_acme.config import presets

  config_class = {
    'r2d2': config_lib.R2D2Config,
    'ngu': config_lib.NGUConfig,
    'bt': config_lib.BTConfig,
  }[run.kind]
  preset = presets.get('minigrid')
  groups = {}
  for field in dataclasses.fields(config_class):
    default: Any = field.default
    own = dict(run.settings.get(field.name, {}))
    known = {f.name for f in dataclasses.fields(default)}
    values = {k: v for k, v in preset.items() if k in known}
    groups[field.name] = dataclasses.replace(default, **{**values, **own})
  return config_class(**groups)


def execute(run: Run, seed: int, folder: str) -> Dict[str, float]:
  """Trains and evaluates; scores of one run.

  Args:
    run: what to do.
    seed: of everything.
    folder: that holds the behaviors of runs that came before.

  Returns:
    Means over the evaluation's episodes: `return`, `solved`, `cells`; `seconds`
    and, where it trained, the mean return over all of training.
  """
  import jax
  import numpy as np

  from bt_acme import assembly, behaviors, environments
  from bt_acme.core import weight_transfer
  from bt_acme.environments import worlds
  from bt_acme.runtime.engines import in_process

  worlds.register()
  start = time.monotonic()
  scores: Dict[str, float] = {}
  behavior: Any = behaviors.ActionRepeat()
  if run.behavior:
    behavior = behaviors.Exported(_behavior_folder(run.behavior, seed, folder))
  epsilon: Optional[float] = None
  if run.kind in ('random', 'behavior'):
    agent = dataclasses.replace(
      behavior.agent, spec=behavior.agent.spec._replace(name=run.world)
    )
    variables, statistics = behavior.variables, behavior.statistics
    epsilon = 1.0 if run.kind == 'random' else None
  else:
    environment = environments.make(run.world, seed=0)
    agent = assembly.Agent(
      _configuration(run),
      assembly.spec_of(environment, run.world),
      (behavior,) if run.kind == 'bt' else (),
    )
    initial_params = None
    if run.kind == 'r2d2' and run.behavior:
      initial_params = weight_transfer.transfer(
        behavior.variables.agent,
        agent.network.init(jax.random.key(seed)),
        init='full',
      )
    result = in_process.run(
      agent,
      num_environments=_ENVIRONMENTS,
      max_actor_steps=run.actor_steps,
      seed=seed,
      initial_params=initial_params,
    )
    variables, statistics = result.variables, result.statistics
    returns = [row['episode_return'] for row in result.episodes]
    scores['training_return'] = float(np.mean(returns))
    if run.kind == 'ngu':
      behaviors.export(
        _behavior_folder(run, seed, folder),
        agent=agent,
        variables=variables,
        statistics=statistics,
        actor_steps=result.actor_steps,
      )
  rows = evaluate(agent, variables, statistics, epsilon=epsilon, seed=seed)
  for name, key in (
    ('return', 'episode_return'),
    ('cells', 'cells'),
    ('extra_action', 'greedy_extra_share'),
  ):
    scores[name] = float(np.mean([row[key] for row in rows]))
  scores['solved'] = float(np.mean([row['episode_return'] > 0 for row in rows]))
  scores['seconds'] = time.monotonic() - start
  return scores


def evaluate(
  agent: Any,
  variables: Any,
  statistics: Any,
  *,
  epsilon: Optional[float],
  seed: int,
) -> List[Dict[str, float]]:
  """Plays episodes; their metrics, with `cells`, the number visited (or 0)."""
  from bt_acme.evaluation import evaluator as evaluator_lib

  evaluator = evaluator_lib.Evaluator(
    agent,
    episodes=_EPISODES,
    seed=seed,
    first_environment=1_000_000,
    epsilon=epsilon,
  )
  worlds = evaluator.environment.environments
  visited: List[set] = [set() for _ in worlds]

  def on_step(step: Any, going: Any) -> None:
    del step
    for cells, world, goes_on in zip(visited, worlds, going, strict=True):
      if goes_on and hasattr(world, 'agent_cell'):
        cells.add(world.agent_cell())

  rows = evaluator.run(variables, statistics, on_step=on_step)
  evaluator.close()
  for row, cells in zip(rows, visited, strict=True):
    row['cells'] = len(cells)
  return rows


def _execute_to_file(run: Run, seed: int, folder: str) -> Dict[str, float]:
  scores = execute(run, seed, folder)
  path = pathlib.Path(folder) / f'{run.name(seed)}.json'
  temporary = path.with_suffix('.tmp')
  temporary.write_text(json.dumps(scores, indent=2) + '\n')
  os.replace(temporary, path)
  return scores


def _end_with_parent() -> None:
  """Lets no run go on behind a main process that was killed."""
  parent: Any = multiprocessing.parent_process()

  def wait() -> None:
    parent.join()
    os._exit(1)

  threading.Thread(target=wait, daemon=True).start()


def _complete(runs: List[Tuple[Run, int]], folder: str, jobs: int) -> None:
  """Executes what has no result yet, several at a time."""
  missing = [
    (run, seed)
    for run, seed in runs
    if not (pathlib.Path(folder) / f'{run.name(seed)}.json').exists()
  ]
  start = time.monotonic()
  with concurrent.futures.ProcessPoolExecutor(
    jobs,
    mp_context=multiprocessing.get_context('spawn'),
    initializer=_end_with_parent,
  ) as pool:
    futures = {
      pool.submit(_execute_to_file, run, seed, folder): (run, seed)
      for run, seed in missing
    }
    done = concurrent.futures.as_completed(futures)
    for count, future in enumerate(done, start=1):
      run, seed = futures[future]
      scores = future.result()
      print(
        f'{count} / {len(missing)}, {time.monotonic() - start:.0f} s: '
        f'{run.claim}, {run.algorithm}, seed {seed}: return '
        f'{scores["return"]:.3f}, {scores["cells"]:.1f} cells, '
        f'{scores["seconds"]:.0f} s',
        flush=True,
      )


def report(
  runs: List[Run], num_seeds: int, read: Callable[[Run, int], Mapping[str, Any]]
) -> str:
  """Markdown tables, one a claim and world.

  Args:
    runs: to report.
    num_seeds: of each.
    read: gives the scores of a run and seed.

  Returns:
    Interquartile means over the seeds, with 95 % bootstrap intervals.
  """
  import numpy as np

  from bt_acme.evaluation import statistics

  lines: List[str] = []
  columns = {
    'memory': ('return',),
    'coverage': ('cells',),
    'transfer': ('return', 'solved', 'training_return', 'extra_action'),
    'deceptive': ('return', 'solved', 'training_return', 'extra_action'),
  }
  for (claim, world), group in itertools.groupby(
    runs, lambda run: (run.claim, run.world)
  ):
    names = columns[claim]
    header = ('algorithm', 'actor steps', *names, 'seconds a run')
    lines += ['', f'**{claim}**, {world}', '']
    lines.append('| ' + ' | '.join(x.replace('_', ' ') for x in header) + ' |')
    lines.append('|' + '---|' * len(header))
    for run in group:
      results = [read(run, seed) for seed in range(num_seeds)]
      cells = [run.algorithm, f'{run.actor_steps:,}']
      for name in names:
        if name not in results[0]:
          cells.append('')
          continue
        values = np.array([[result[name]] for result in results])
        mean = statistics.bootstrap(statistics.interquartile_mean, values)
        digits = 1 if name == 'cells' else 2
        cells.append(
          f'{mean.value:.{digits}f} [{mean.low:.{digits}f}, '
          f'{mean.high:.{digits}f}]'
        )
      seconds = np.mean([result['seconds'] for result in results])
      lines.append('| ' + ' | '.join([*cells, f'{seconds:.0f}']) + ' |')
  return '\n'.join(lines)


def main(argv: List[str]) -> int:
  del argv
  unknown = sorted(set(FLAGS.claims) - set(_ALL))
  if unknown:
    raise ValueError(f'claims={unknown} are unknown: choose from {_ALL}.')
  if FLAGS.seeds < 2:
    raise ValueError(
      f'seeds={FLAGS.seeds} must be at least 2: nothing else '
      'says how far a result is from luck.'
    )
  if FLAGS.jobs < 1:
    raise ValueError(f'jobs={FLAGS.jobs} must be positive.')
  folder = str(pathlib.Path(FLAGS.folder).absolute())
  pathlib.Path(folder).mkdir(parents=True, exist_ok=True)
  # One thread a run, in the processes that are started.
  os.environ.update(
    JAX_PLATFORMS='cpu',
    OMP_NUM_THREADS='1',
    XLA_FLAGS='--xla_cpu_multi_thread_eigen=false '
    'intra_op_parallelism_threads=1',
  )
  runs = _runs()
  reported = [run for run in runs if run.claim in FLAGS.claims]
  behind = [run.behavior for run in reported if run.behavior]
  first = [run for run in runs if run in behind]
  seeds = range(FLAGS.seeds)
  for phase in (first, [run for run in reported if run not in first]):
    pairs = [(run, seed) for seed in seeds for run in phase]
    _complete(pairs, folder, FLAGS.jobs)

  def read(run: Run, seed: int) -> Mapping[str, Any]:
    path = pathlib.Path(folder) / f'{run.name(seed)}.json'
    scores: Mapping[str, Any] = json.loads(path.read_text())
    return scores

  text = report(reported, FLAGS.seeds, read)
  (pathlib.Path(folder) / 'report.md').write_text(text + '\n')
  print(text)
  return 0


if __name__ == '__main__':
  from bt_acme.cli import flags

  flags.run_main(main)
