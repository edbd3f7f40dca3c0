"""From no rewards to transfer, in minutes: the whole path on a small task.

Three runs of the real program, each with separate processes for replay server,
actors, learner, evaluator and coordinator:

1. NGU explores the worlds of the task without any reward; its policy is
   exported.
2. R2D2 learns the task.
3. R2D2 with Behavior Transfer learns the task within the same budget. It brings
   along the policy of run 1.

The task has another layout in each episode, so that a policy cannot find the
goal once by luck and then repeat its way. The first run leaves the goal out:
reaching the goal ends an episode, so that a policy that explores well would
learn to avoid it.

The demo ends with a table, learning curves, and a heat map of visited cells.
"""

import dataclasses
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time
from typing import Dict, Iterator, List, Tuple

import numpy as np
from absl import flags as absl_flags

from bt_acme import behaviors, environments
from bt_acme.cli import flags
from bt_acme.evaluation import evaluator as evaluator_lib
from bt_acme.evaluation import plots, tables

FLAGS = absl_flags.FLAGS
absl_flags.DEFINE_string('folder', 'runs/demo', 'Where everything goes.')
absl_flags.DEFINE_integer('seed', 0, 'Seed of all three runs.')

TASK = 'MiniGrid-FourRooms-v0'
WORLD = f'{TASK}:no_goal'
ONE_WORLD = f'{TASK}:fixed:no_goal'  # For the heat maps.
PRETRAINING_STEPS = 120_000
TASK_STEPS = 70_000
_EPISODES = 100  # Episodes behind each number of the table.
_MAP_EPISODES = 32  # Episodes behind each heat map.
_WINDOW = 100  # Episodes that a point of a learning curve averages.
_POLICIES = {'random policy': 1.0, 'pi_p (NGU)': 0.01}  # Label -> epsilon.

_ROOT = pathlib.Path(__file__).resolve().parent.parent
# Flights come more often than in the hour-long episodes of Atari, because
# episodes are short here.
_TRANSFER = ('--min_flight_probability=0.01',)

Row = Dict[str, float]


def _run(title: str, script: str, *arguments: str) -> None:
  """Runs a launch script; exits with its code if it fails."""
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
  """Runs NGU, R2D2 and R2D2 with Behavior Transfer."""
  common = (
    '--preset=minigrid',
    f'--env={TASK}',
    f'--max_actor_steps={TASK_STEPS}',
    f'--evaluation_episodes={_EPISODES}',
    f'--seed={seed}',
  )
  _run(
    '1 of 3: NGU explores without rewards',
    'run_ngu.py',
    *common,
    f'--env={WORLD}',
    f'--max_actor_steps={PRETRAINING_STEPS}',
    f'--workdir={folder / "ngu"}',
  )
  _run(
    '2 of 3: R2D2 learns the task',
    'run_r2d2.py',
    *common,
    f'--workdir={folder / "r2d2"}',
  )
  _run(
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
) -> Tuple[np.ndarray, List[Row]]:
  """Counts how often a policy visits each cell of the grid.

  Args:
    behavior: the policy.
    env: name of the environment.
    epsilon: of the policy; 1 makes it random.
    episodes: number of episodes to play.
    seed: of the episodes.

  Returns:
    Counts, int64 [rows, columns], and metrics of the episodes, with `cells`,
    the number of cells that the episode visited.
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


def _draw_visits(behavior: behaviors.Exported, path: str, seed: int) -> None:
  """Draws where a random policy and the behavior go in one world."""
  maps = {}
  for label, epsilon in _POLICIES.items():
    counts, episodes = visits(
      behavior, ONE_WORLD, epsilon=epsilon, episodes=_MAP_EPISODES, seed=seed
    )
    maps[f'{label}: {_mean(episodes, "cells"):.1f} cells an episode'] = counts
  world = environments.make(ONE_WORLD, seed=seed)
  world.reset()
  plots.heat_maps(
    path,
    maps,
    world.render_rgb(),
    title=f'Cells visited in {_MAP_EPISODES} episodes of one world',
  )


def _draw_curves(folder: pathlib.Path, path: str) -> None:
  """Draws the learning curves of both runs on the task."""
  curves = {}
  for name, label in (('r2d2', 'R2D2'), ('bt', 'R2D2 + BT')):
    log = plots.read_log(str(folder / name / 'logs' / 'actor' / 'logs.csv'))
    curves[label] = plots.smoothed_curve(log, 'episode_return', window=_WINDOW)
  plots.learning_curves(
    path, curves, title=TASK, ylabel=f'return (mean of {_WINDOW} episodes)'
  )


def _table(
  behavior: behaviors.Exported, folder: pathlib.Path, seed: int
) -> str:
  """Compares the policies on the task."""
  rows = []
  for name, epsilon in zip(
    ('random', 'pi_p zero-shot'), _POLICIES.values(), strict=True
  ):
    _, episodes = visits(
      behavior, TASK, epsilon=epsilon, episodes=_EPISODES, seed=seed
    )
    returns = np.array([row['episode_return'] for row in episodes])
    cells = f'{_mean(episodes, "cells"):.1f}'
    rows.append([name, *_summary(returns), cells])
  for name, workdir in (('R2D2', 'r2d2'), ('R2D2 + BT', 'bt')):
    rows.append([name, *_summary(_last_evaluation(folder / workdir)), ''])
  header = ('policy', 'return', 'solved', 'episodes', 'cells an episode')
  return tables.table(header, rows)


def _last_evaluation(workdir: pathlib.Path) -> np.ndarray:
  """Returns of the evaluation at the end of a run, float64 [episodes]."""
  columns = plots.read_log(str(workdir / 'logs' / 'evaluator' / 'logs.csv'))
  last = columns['actor_steps'] == columns['actor_steps'].max()
  return columns['episode_return'][last]


def _summary(returns: np.ndarray) -> Iterator[str]:
  yield f'{np.mean(returns):.3f}'
  yield f'{100 * np.mean(returns > 0):.0f}%'
  yield str(len(returns))


def _mean(rows: List[Row], name: str) -> float:
  return float(np.mean([row[name] for row in rows]))


def main(argv: List[str]) -> int:
  del argv
  start = time.monotonic()
  environments.validate(TASK)
  folder = pathlib.Path(FLAGS.folder).absolute()
  if folder.exists():
    shutil.rmtree(folder)
  _run_all(folder, FLAGS.seed)

  behavior = behaviors.Exported(str(folder / 'ngu' / 'behavior'))
  table = _table(behavior, folder, FLAGS.seed)
  heat_map = str(folder / 'visits.png')
  _draw_visits(behavior, heat_map, FLAGS.seed)
  curves = str(folder / 'curves.png')
  _draw_curves(folder, curves)
  print(f'\n{TASK}, {TASK_STEPS:,} actor steps of the task\n')
  print(table)
  print(f'\nLearning curves:  {os.path.relpath(curves)}')
  print(f'Cells visited:    {os.path.relpath(heat_map)}')
  print(f'Wall time:        {time.monotonic() - start:.0f} s')
  return 0


if __name__ == '__main__':
  flags.run_main(main)
