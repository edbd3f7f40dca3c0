"""From no rewards to transfer, in minutes: the whole path on a small task.

Three runs of the real program, each with separate processes for replay server,
actors, learner, evaluator and coordinator:

1. NGU explores the worlds of the task, in which nothing is to be achieved; its
   policy is exported.
2. R2D2 learns the task.
3. R2D2 with Behavior Transfer learns it, at the same budget, bringing along the
   policy of 1.

The task has another layout in each episode: a policy cannot find the goal by
luck once and then repeat it. Without rewards the goal itself is left out.
Reaching it ends an episode, and with it all that was left to explore: a policy
that explores well comes to avoid it.

It ends with a table, learning curves, and a heat map of the cells visited.
"""

import dataclasses
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time
from typing import Dict, List, Tuple

import numpy as np
from absl import flags as absl_flags

from bt_acme import behaviors, environments
from bt_acme.cli import flags
from bt_acme.evaluation import evaluator as evaluator_lib
from bt_acme.evaluation import plots

FLAGS = absl_flags.FLAGS
absl_flags.DEFINE_string('folder', 'runs/demo', 'Where everything goes.')
absl_flags.DEFINE_integer('seed', 0, 'Of all three runs.')

TASK = 'MiniGrid-FourRooms-v0'
WORLD = f'{TASK}:no_goal'
PRETRAINING_STEPS = 120_000
TASK_STEPS = 70_000
_EPISODES = 100  # Behind each number of the table.
_MAP_EPISODES = 32  # Behind each heat map.
_WINDOW = 100  # Episodes that a point of a learning curve averages.

_ROOT = pathlib.Path(__file__).resolve().parent.parent
# Episodes are short here: flights come more often than in the hour-long ones of
# Atari.
_TRANSFER = ('--min_flight_probability=0.01',)


def _launch(title: str, script: str, *arguments: str) -> None:
  print(f'\n== {title}', flush=True)
  command = [sys.executable, str(_ROOT / 'launch' / script), *arguments]
  with subprocess.Popen(command, cwd=_ROOT) as process:
    # Ctrl-C reaches the script as well as this process, SIGTERM does not.
    handlers = {
      signal.SIGINT: lambda *_: None,
      signal.SIGTERM: lambda signum, _: process.send_signal(signum),
    }
    before = {s: signal.signal(s, handle) for s, handle in handlers.items()}
    code = process.wait()
    for signum, handler in before.items():
      signal.signal(signum, handler)
  if code:
    sys.exit(code)


def _run_all(folder: pathlib.Path, seed: int) -> None:
  common = (
    '--preset=minigrid',
    f'--env={TASK}',
    f'--max_actor_steps={TASK_STEPS}',
    f'--evaluation_episodes={_EPISODES}',
    f'--seed={seed}',
  )
  _launch(
    '1 of 3: NGU explores without rewards',
    'run_ngu.py',
    *common,
    f'--env={WORLD}',
    f'--max_actor_steps={PRETRAINING_STEPS}',
    f'--workdir={folder / "ngu"}',
  )
  _launch(
    '2 of 3: R2D2 learns the task',
    'run_r2d2.py',
    *common,
    f'--workdir={folder / "r2d2"}',
  )
  _launch(
    '3 of 3: R2D2 + Behavior Transfer learns the task',
    'run_bt.py',
    *common,
    *_TRANSFER,
    f'--behavior={folder / "ngu" / "behavior"}',
    f'--workdir={folder / "bt"}',
  )


def visits(
  behavior: behaviors.Exported,
  env: str,
  *,
  epsilon: float,
  episodes: int,
  seed: int,
) -> Tuple[np.ndarray, List[Dict[str, float]]]:
  """How often a policy visits each cell of the grid.

  Args:
    behavior: of the policy.
    env: where.
    epsilon: 1 for a random policy.
    episodes: to play.
    seed: of the episodes.

  Returns:
    Counts, int64 [rows, columns], and metrics of the episodes, with `cells`,
    the number that one episode visited.
  """
  agent = dataclasses.replace(
    behavior.agent, spec=behavior.agent.spec._replace(name=env)
  )
  evaluator = evaluator_lib.Evaluator(
    agent, episodes=episodes, seed=seed, epsilon=epsilon
  )
  worlds = evaluator.environment.environments
  columns, rows = worlds[0].grid_size()
  counts = np.zeros([episodes, rows, columns], np.int64)

  def on_step(step: object, going: np.ndarray) -> None:
    del step
    for i in np.flatnonzero(going):
      x, y = worlds[i].agent_cell()
      counts[i, y, x] += 1

  metrics = evaluator.run(
    behavior.variables, behavior.statistics, on_step=on_step
  )
  evaluator.close()
  for row, episode_counts in zip(metrics, counts, strict=True):
    row['cells'] = np.count_nonzero(episode_counts)
  return counts.sum(axis=0), metrics


def _last_evaluation(workdir: pathlib.Path) -> np.ndarray:
  """Returns of the evaluation that ended a run."""
  columns = plots.read_log(str(workdir / 'logs' / 'evaluator' / 'logs.csv'))
  last = columns['actor_steps'] == columns['actor_steps'].max()
  return columns['episode_return'][last]


def _mean(rows: List[Dict[str, float]], name: str) -> float:
  return float(np.mean([row[name] for row in rows]))


def _summary(
  name: str, returns: np.ndarray, cells: str = ''
) -> Tuple[str, ...]:
  return (
    name,
    f'{np.mean(returns):.3f}',
    f'{100 * np.mean(returns > 0):.0f}%',
    str(len(returns)),
    cells,
  )


def main(argv: List[str]) -> int:
  del argv
  start = time.monotonic()
  environments.validate(TASK)
  folder = pathlib.Path(FLAGS.folder).absolute()
  if folder.exists():
    shutil.rmtree(folder)
  _run_all(folder, FLAGS.seed)

  behavior = behaviors.Exported(str(folder / 'ngu' / 'behavior'))
  policies = {'random policy': 1.0, 'pi_p (NGU)': 0.01}
  random_episodes, zero_shot = (
    visits(
      behavior, TASK, epsilon=epsilon, episodes=_EPISODES, seed=FLAGS.seed
    )[1]
    for epsilon in policies.values()
  )
  one_world = f'{TASK}:fixed:no_goal'
  maps = {}
  for name, epsilon in policies.items():
    counts, episodes = visits(
      behavior,
      one_world,
      epsilon=epsilon,
      episodes=_MAP_EPISODES,
      seed=FLAGS.seed,
    )
    maps[f'{name}: {_mean(episodes, "cells"):.1f} cells an episode'] = counts
  world = environments.make(one_world, seed=FLAGS.seed)
  world.reset()
  heat_map = str(folder / 'visits.png')
  plots.heat_maps(
    heat_map,
    maps,
    world.render_rgb(),
    title=f'Cells visited in {_MAP_EPISODES} episodes of one world',
  )
  curves = str(folder / 'curves.png')
  plots.learning_curves(
    curves,
    {
      label: plots.smoothed_curve(
        plots.read_log(str(folder / name / 'logs' / 'actor' / 'logs.csv')),
        'episode_return',
        window=_WINDOW,
      )
      for name, label in (('r2d2', 'R2D2'), ('bt', 'R2D2 + BT'))
    },
    title=TASK,
    ylabel=f'return (mean of {_WINDOW} episodes)',
  )

  def returns(rows: List[Dict[str, float]]) -> np.ndarray:
    return np.array([row['episode_return'] for row in rows])

  print(f'\n{TASK}, {TASK_STEPS:,} actor steps of the task\n')
  print(
    plots.table(
      ('policy', 'return', 'solved', 'episodes', 'cells an episode'),
      (
        *(
          _summary(name, returns(rows), f'{_mean(rows, "cells"):.1f}')
          for name, rows in (
            ('random', random_episodes),
            ('pi_p zero-shot', zero_shot),
          )
        ),
        _summary('R2D2', _last_evaluation(folder / 'r2d2')),
        _summary('R2D2 + BT', _last_evaluation(folder / 'bt')),
      ),
    )
  )
  print(f'\nLearning curves:  {os.path.relpath(curves)}')
  print(f'Cells visited:    {os.path.relpath(heat_map)}')
  print(f'Wall time:        {time.monotonic() - start:.0f} s')
  return 0


if __name__ == '__main__':
  flags.run_main(main)
