"""One run: trains in this process, evaluates, and returns scores."""

import dataclasses
import pathlib
import time
from typing import Any, Dict, List, NamedTuple, Optional, Set

import jax
import numpy as np

from bt_acme import assembly, behaviors, environments
from bt_acme import config as config_lib
from bt_acme.config import presets
from bt_acme.core import weight_transfer
from bt_acme.evaluation import evaluator as evaluator_lib
from bt_acme.runtime.engines import in_process
from experiments.learning import claims

_ENVIRONMENTS = 16  # Environments that a run steps at once.
_EPISODES = 64  # Episodes of the evaluation behind each score.
_FIRST_ENVIRONMENT = 1_000_000  # Seeds evaluation apart from training.
_CONFIGS = {
  'r2d2': config_lib.R2D2Config,
  'ngu': config_lib.NGUConfig,
  'bt': config_lib.BTConfig,
}

Row = Dict[str, float]


class _Policy(NamedTuple):
  """What is evaluated, and what its training left."""

  agent: assembly.Agent
  variables: Any
  statistics: Any
  epsilon: Optional[float] = None  # None: the configuration's.
  training_returns: Optional[List[float]] = None  # None without training.


def execute(run: claims.Run, seed: int, folder: str) -> Row:
  """Trains and evaluates.

  Args:
    run: what to do.
    seed: of everything.
    folder: holds the behaviors of earlier runs, and receives that of this run.

  Returns:
    Means over the evaluation's episodes: `return`, `cells`, `extra_action` and
    `solved`; `seconds`; and, if the run trained, `training_return`, the mean
    over all episodes of training.
  """
  start = time.monotonic()
  if run.kind in ('random', 'behavior'):
    policy = _untrained(run, seed, folder)
  else:
    policy = _train(run, seed, folder)
  scores: Row = {}
  if policy.training_returns is not None:
    scores['training_return'] = float(np.mean(policy.training_returns))
  rows = evaluate(
    policy.agent,
    policy.variables,
    policy.statistics,
    epsilon=policy.epsilon,
    seed=seed,
  )
  for name, key in (
    ('return', 'episode_return'),
    ('cells', 'cells'),
    ('extra_action', 'greedy_extra_share'),
  ):
    scores[name] = float(np.mean([row[key] for row in rows]))
  scores['solved'] = float(np.mean([row['episode_return'] > 0 for row in rows]))
  scores['seconds'] = time.monotonic() - start
  return scores


def _untrained(run: claims.Run, seed: int, folder: str) -> _Policy:
  """The behavior as it is, or a random policy, which needs an agent as well."""
  assert run.behavior is not None
  behavior = _exported(run.behavior, seed, folder)
  agent = dataclasses.replace(
    behavior.agent, spec=behavior.agent.spec._replace(name=run.world)
  )
  epsilon = 1.0 if run.kind == 'random' else None
  return _Policy(agent, behavior.variables, behavior.statistics, epsilon)


def _train(run: claims.Run, seed: int, folder: str) -> _Policy:
  """Trains an agent; what NGU learned is exported for later runs."""
  behavior: Any = behaviors.ActionRepeat()
  if run.behavior:
    behavior = _exported(run.behavior, seed, folder)
  agent = assembly.Agent(
    configuration(run),
    assembly.spec_of(environments.make(run.world, seed=0), run.world),
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
  if run.kind == 'ngu':
    behaviors.export(
      _behavior_folder(run, seed, folder),
      agent=agent,
      variables=result.variables,
      statistics=result.statistics,
      actor_steps=result.actor_steps,
    )
  return _Policy(
    agent,
    result.variables,
    result.statistics,
    training_returns=[row['episode_return'] for row in result.episodes],
  )


def configuration(run: claims.Run) -> Any:
  """The configuration of a run that learns: the preset's, with its own."""
  config_class = _CONFIGS[run.kind]
  preset = presets.get('minigrid', config_class)
  groups = {}
  for field in dataclasses.fields(config_class):
    default: Any = field.default
    known = {f.name for f in dataclasses.fields(default)}
    values = {k: v for k, v in preset.items() if k in known}
    own = run.settings.get(field.name, {})
    groups[field.name] = dataclasses.replace(default, **{**values, **own})
  return config_class(**groups)


def _exported(run: claims.Run, seed: int, folder: str) -> Any:
  return behaviors.Exported(_behavior_folder(run, seed, folder))


def _behavior_folder(run: claims.Run, seed: int, folder: str) -> str:
  return str(pathlib.Path(folder) / 'behaviors' / run.name(seed))


def evaluate(
  agent: assembly.Agent,
  variables: Any,
  statistics: Any,
  *,
  epsilon: Optional[float],
  seed: int,
) -> List[Row]:
  """Plays episodes.

  Returns:
    Metrics of each episode, with `cells`, the number of cells visited; 0 where
    the environment has no cells.
  """
  evaluator = evaluator_lib.Evaluator(
    agent,
    episodes=_EPISODES,
    seed=seed,
    first_environment=_FIRST_ENVIRONMENT,
    epsilon=epsilon,
  )
  worlds: Any = evaluator.environment.environments
  visited: List[Set[Any]] = [set() for _ in worlds]

  def on_step(step: Any, going: np.ndarray) -> None:
    del step
    for cells, world, goes_on in zip(visited, worlds, going, strict=True):
      if goes_on and hasattr(world, 'agent_cell'):
        cells.add(world.agent_cell())

  rows = evaluator.run(variables, statistics, on_step=on_step)
  evaluator.close()
  for row, cells in zip(rows, visited, strict=True):
    row['cells'] = len(cells)
  return rows
