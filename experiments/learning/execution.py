"""One run: trains in this process, evaluates, and returns a row of results."""

import dataclasses
import pathlib
import time
from typing import Any, Callable, Dict, List, NamedTuple, Optional

import jax
import numpy as np

from bt_acme import assembly, behaviors, environments
from bt_acme import config as config_lib
from bt_acme.config import names, presets
from bt_acme.core import weight_transfer
from bt_acme.evaluation import evaluator as evaluator_lib
from bt_acme.evaluation import recorder
from bt_acme.runtime import learned
from bt_acme.runtime.engines import in_process
from experiments.learning import claims

PRESET = 'minigrid'
NUM_EPISODES = 64  # Episodes of the evaluation behind each number.
# What explores is also evaluated during training, at these shares of it.
SHARES = (0.25, 0.5, 0.75)

_NUM_ENVIRONMENTS = 16  # Environments that a run steps at once.
_CONFIGS = {
  'r2d2': config_lib.R2D2Config,
  'ngu': config_lib.NGUConfig,
  'bt': config_lib.BTConfig,
}

Row = Dict[str, float]


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
  statistics: Any
  epsilon: Optional[float] = None


def configuration(run: claims.Run) -> Any:
  """The configuration of a run that learns: the preset's, with its own."""
  config_class = _CONFIGS[run.kind]
  settings = {**presets.get(PRESET, config_class), **run.settings}
  return names.build(config_class, settings)


def execute(
  run: claims.Run,
  seed: int,
  behaviors_folder: pathlib.Path,
  on_progress: Callable[[int], None] = lambda actor_steps: None,
) -> Row:
  """Trains and evaluates.

  Args:
    run: what to do.
    seed: of everything.
    behaviors_folder: holds the behaviors that earlier runs have learned, and
      receives that of this run.
    on_progress: is called with the actor steps taken, now and then.

  Returns:
    Means over the evaluation's episodes: `solved`, `return`, `length`, `cells`,
    and `extra_action`, the share of the agent's own decisions. If the run
    trained, `training_solved` and `training_return` are means over the episodes
    of training. If it explored, `cells_25`, `cells_50` and `cells_75` are cells
    at these percentages of training. `seconds` is the time that all took.
  """
  start = time.monotonic()
  if run.kind in ('random', 'behavior'):
    row = _evaluate([_untrained(run, seed, behaviors_folder)], seed)[0]
  else:
    row = _train(run, seed, behaviors_folder, on_progress)
  row['seconds'] = time.monotonic() - start
  return row


def behavior_path(
  run: claims.Run, seed: int, behaviors_folder: pathlib.Path
) -> pathlib.Path:
  """Where a run that explores leaves its behavior."""
  return behaviors_folder / run.name(seed)


def _untrained(
  run: claims.Run, seed: int, behaviors_folder: pathlib.Path
) -> _Policy:
  """The behavior as it is, or a random policy, which needs an agent as well."""
  assert run.behavior is not None
  behavior = _load(run, seed, behaviors_folder)
  agent = dataclasses.replace(
    behavior.agent, spec=behavior.agent.spec._replace(name=run.world)
  )
  epsilon = 1.0 if run.kind == 'random' else None
  return _Policy(agent, behavior.variables, behavior.statistics, epsilon)


def _load(
  run: claims.Run, seed: int, behaviors_folder: pathlib.Path
) -> behaviors.Exported:
  """Loads the behavior that a run transfers."""
  assert run.behavior is not None
  epsilon = 0.0
  if run.kind == 'bt':
    epsilon = configuration(run).transfer.behavior_epsilon
  path = behavior_path(run.behavior, seed, behaviors_folder)
  return behaviors.Exported(str(path), epsilon=epsilon)


def _train(
  run: claims.Run,
  seed: int,
  behaviors_folder: pathlib.Path,
  on_progress: Callable[[int], None],
) -> Row:
  """Trains an agent; what explores is exported for later runs."""
  behavior: Any = behaviors.ActionRepeat()
  if run.behavior is not None:
    behavior = _load(run, seed, behaviors_folder)
  agent = assembly.Agent(
    configuration(run),
    assembly.spec_of(environments.make(run.world, seed=0), run.world),
    (behavior,) if run.kind == 'bt' else (),
  )
  explores = run.kind == 'ngu'
  snapshots: List[learned.Learned] = []
  result = in_process.run(
    agent,
    num_environments=_NUM_ENVIRONMENTS,
    max_actor_steps=run.actor_steps,
    seed=seed,
    initial_params=_initial_params(run, agent, behavior, seed),
    on_turn=lambda row: on_progress(int(row['actor_steps'])),
    snapshot_period=_snapshot_period(run) if explores else None,
    on_snapshot=snapshots.append,
  )
  if explores:
    behaviors.export(
      str(behavior_path(run, seed, behaviors_folder)),
      agent=agent,
      variables=result.variables,
      statistics=result.statistics,
      actor_steps=result.actor_steps,
    )
  *earlier, row = _evaluate(
    [
      *(
        _Policy(agent, snapshot.variables, snapshot.statistics)
        for snapshot in snapshots[: len(SHARES)]
      ),
      _Policy(agent, result.variables, result.statistics),
    ],
    seed,
  )
  for share, earlier_row in zip(SHARES, earlier, strict=False):
    row[f'cells_{100 * share:.0f}'] = earlier_row['cells']
  returns = [episode['episode_return'] for episode in result.episodes]
  row['training_return'] = float(np.mean(returns))
  row['training_solved'] = float(np.mean(np.array(returns) > 0))
  return row


def _snapshot_period(run: claims.Run) -> int:
  return round(run.actor_steps * SHARES[0])


def _initial_params(
  run: claims.Run, agent: assembly.Agent, behavior: Any, seed: int
) -> Any:
  """The weights of the behavior; None to begin with fresh ones."""
  if not run.init:
    return None
  return weight_transfer.transfer(
    behavior.variables.agent,
    agent.network.init(jax.random.key(seed)),
    init=run.init,
  )


def _evaluate(policies: List[_Policy], seed: int) -> List[Row]:
  """Plays episodes by several states of one agent."""
  agent, epsilon = policies[-1].agent, policies[-1].epsilon
  evaluator = evaluator_lib.Evaluator(
    agent,
    episodes=NUM_EPISODES,
    seed=seed,
    first_environment=evaluator_lib.FIRST_ENVIRONMENT,
    epsilon=epsilon,
  )
  rows = [
    _summary(recorder.record(evaluator, policy.variables, policy.statistics))
    for policy in policies
  ]
  evaluator.close()
  return rows


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
