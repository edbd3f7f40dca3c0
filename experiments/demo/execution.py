"""One run: what its process does, and what it leaves as a file."""

import dataclasses
import json
import math
import pathlib
import time
from typing import Any, Callable, Dict, List, Mapping, Optional

import jax
import numpy as np

from bt_acme import assembly, behaviors, environments, files
from bt_acme import config as config_lib
from bt_acme.core import weight_transfer
from bt_acme.evaluation import evaluator as evaluator_lib
from bt_acme.evaluation import recorder
from bt_acme.runtime.engines import in_process
from experiments.demo import film, program
from experiments.demo import plan as plan_lib

_ENVIRONMENTS = 16  # Environments that a run steps at once.
_FIRST_ENVIRONMENT = 1_000_000  # Seeds evaluation apart from training.
# What stands for a policy that acts at random, and for pi_p, in evaluation.
EPSILONS = {'random': 1.0, plan_lib.BEHAVIOR: 0.01}

Result = Dict[str, Any]
OnProgress = Callable[[int, float], None]  # Actor steps, recent return.


def identity(
  job: plan_lib.Job, plan: plan_lib.Plan, folder: pathlib.Path
) -> Dict[str, Any]:
  """What a result depends on; a result of another identity is not kept.

  Raises:
    OSError: if the behavior that it depends on is not there.
  """
  return {
    'task': plan_lib.TASK,
    'settings': dict(plan.settings),
    'steps': plan.steps(job),
    'episodes': [plan.episodes, plan.map_episodes],
    'configuration': config_lib.to_dict(_configuration(job, plan)),
    'behavior': _checksum(plan.pretraining_of(job), plan, folder),
  }


def _checksum(
  pretraining: Optional[plan_lib.Job], plan: plan_lib.Plan, folder: pathlib.Path
) -> str:
  if pretraining is None:
    return ''
  card = plan.behavior_folder(pretraining.seed, folder) / 'behavior.json'
  return str(json.loads(card.read_text())['params_sha256'])


def read(
  job: plan_lib.Job, plan: plan_lib.Plan, folder: pathlib.Path
) -> Optional[Result]:
  """Reads the result of a job; None if it has not been run like this."""
  try:
    result: Result = json.loads(_path(job, folder).read_text())
    expected = json.loads(json.dumps(identity(job, plan, folder)))
    if job.kind == plan_lib.PRETRAINING:
      _checksum(job, plan, folder)
  except (OSError, ValueError):
    return None
  return result if result.get('identity') == expected else None


def execute(
  job: plan_lib.Job,
  plan: plan_lib.Plan,
  folder: pathlib.Path,
  on_progress: OnProgress,
) -> None:
  """Runs a job and writes its result, whole or not at all.

  The job that is launched as a program must have been; it is only played here.
  """
  start = time.monotonic()
  if job.kind == plan_lib.PRETRAINING:
    result = _pretrain(job, plan, folder, on_progress)
  elif job.kind == plan_lib.BEHAVIOR:
    result = _evaluate_behavior(_load(job, plan, folder), plan, job.seed)
  elif job.kind == plan_lib.MAPS:
    result = _map(_load(job, plan, folder), plan, job.seed)
  elif job == plan.launched:
    result = _play_all(job, plan, program.read(plan, folder))
  else:
    result = _play_all(job, plan, _learn(job, plan, folder, on_progress))
  result['seconds'] = time.monotonic() - start
  result['identity'] = identity(job, plan, folder)
  files.write_text(_path(job, folder), json.dumps(result) + '\n')


def _load(
  job: plan_lib.Job, plan: plan_lib.Plan, folder: pathlib.Path
) -> behaviors.Exported:
  bt = plan.configuration(config_lib.BTConfig)
  return behaviors.Exported(
    str(plan.behavior_folder(job.seed, folder)),
    epsilon=bt.transfer.behavior_epsilon,
  )


def _path(job: plan_lib.Job, folder: pathlib.Path) -> pathlib.Path:
  return folder / f'{job.name}.json'


def _configuration(job: plan_lib.Job, plan: plan_lib.Plan) -> Any:
  classes = {
    plan_lib.PRETRAINING: config_lib.NGUConfig,
    'bt': config_lib.BTConfig,
  }
  return plan.configuration(classes.get(job.kind, config_lib.R2D2Config))


def _pretrain(
  job: plan_lib.Job,
  plan: plan_lib.Plan,
  folder: pathlib.Path,
  on_progress: OnProgress,
) -> Result:
  """Explores without rewards, and exports the policy as a behavior."""
  agent = assembly.Agent(
    _configuration(job, plan), assembly.spec_by_name(plan_lib.WORLD)
  )
  trained = in_process.run(
    agent,
    num_environments=_ENVIRONMENTS,
    max_actor_steps=plan.pretraining_steps,
    seed=job.seed,
    on_turn=lambda row: on_progress(int(row['actor_steps']), math.nan),
  )
  behaviors.export(
    str(plan.behavior_folder(job.seed, folder)),
    agent=agent,
    variables=trained.variables,
    statistics=trained.statistics,
    actor_steps=trained.actor_steps,
  )
  return {}


def _learn(
  job: plan_lib.Job,
  plan: plan_lib.Plan,
  folder: pathlib.Path,
  on_progress: OnProgress,
) -> program.Learned:
  """Learns the task."""
  transferred = None
  if plan.pretraining_of(job) is not None:
    transferred = _load(job, plan, folder)
  agent = assembly.Agent(
    _configuration(job, plan),
    assembly.spec_by_name(plan_lib.TASK),
    (transferred,) if transferred and job.kind == 'bt' else (),
  )

  def on_turn(values: Mapping[str, Any]) -> None:
    recent = float(values.get('episode_return', math.nan))
    on_progress(int(values['actor_steps']), recent)

  trained = in_process.run(
    agent,
    num_environments=_ENVIRONMENTS,
    max_actor_steps=plan.task_steps,
    seed=job.seed,
    initial_params=_initial_params(job, agent, transferred),
    on_turn=on_turn,
  )
  return program.Learned(agent, trained.variables, trained.episodes)


def _play_all(
  job: plan_lib.Job, plan: plan_lib.Plan, learned: program.Learned
) -> Result:
  """Plays the task after learning it."""
  agent, variables, episodes = learned
  result = {
    'episodes': {
      name: [row[name] for row in episodes]
      for name in ('actor_steps', 'episode_return')
    },
    'evaluation': _summary(_play(agent, variables, plan.episodes, job.seed)),
  }
  if job.kind == 'bt':
    filmed = _play(agent, variables, plan.episodes, job.seed, flights=True)
    result['film'] = film.choose(filmed)._asdict()
  return result


def _initial_params(
  job: plan_lib.Job,
  agent: assembly.Agent,
  behavior: Optional[behaviors.Exported],
) -> Any:
  """The weights of pi_p for fine-tuning; None to begin with fresh ones."""
  if job.kind != 'finetuning':
    return None
  assert behavior is not None
  return weight_transfer.transfer(
    behavior.variables.agent,
    agent.network.init(jax.random.key(job.seed)),
    init='full',
  )


def _evaluate_behavior(
  behavior: behaviors.Exported, plan: plan_lib.Plan, seed: int
) -> Result:
  """Plays the task by pi_p."""
  epsilon = EPSILONS[plan_lib.BEHAVIOR]
  recordings = _play_policy(
    behavior, plan_lib.TASK, plan.episodes, seed, epsilon=epsilon
  )
  return {'evaluation': _summary(recordings)}


def _map(
  behavior: behaviors.Exported, plan: plan_lib.Plan, seed: int
) -> Result:
  """Plays the task at random, and counts where both policies go."""
  return {
    'evaluation': _summary(
      _play_policy(behavior, plan_lib.TASK, plan.episodes, seed, epsilon=1.0)
    ),
    'visits': {
      name: _visits(
        _play_policy(
          behavior, plan_lib.MAP_WORLD, plan.map_episodes, seed, epsilon=epsilon
        )
      )
      for name, epsilon in EPSILONS.items()
    },
  }


def _play_policy(
  behavior: behaviors.Exported,
  world: str,
  episodes: int,
  seed: int,
  *,
  epsilon: float,
) -> List[recorder.Recording]:
  """Plays a world by pi_p, or at random, which needs an agent as well."""
  agent = dataclasses.replace(
    behavior.agent, spec=behavior.agent.spec._replace(name=world)
  )
  return _play(
    agent,
    behavior.variables,
    episodes,
    seed,
    epsilon=epsilon,
    statistics=behavior.statistics,
  )


def _play(
  agent: assembly.Agent,
  variables: Any,
  episodes: int,
  seed: int,
  *,
  epsilon: Optional[float] = None,
  statistics: Any = None,
  flights: bool = False,
) -> List[recorder.Recording]:
  evaluator = evaluator_lib.Evaluator(
    agent,
    episodes=episodes,
    seed=seed,
    first_environment=_FIRST_ENVIRONMENT,
    epsilon=epsilon,
    flights=flights,
  )
  recordings = recorder.record(evaluator, variables, statistics)
  evaluator.close()
  return recordings


def _summary(recordings: List[recorder.Recording]) -> Dict[str, float]:
  """A line of the table."""
  return {
    'solved': float(np.mean([r.is_solved for r in recordings])),
    'return': float(np.mean([r.metrics['episode_return'] for r in recordings])),
    'episodes': len(recordings),
    'cells': float(np.mean([r.num_cells for r in recordings])),
  }


def _visits(recordings: List[recorder.Recording]) -> Result:
  """How often each cell of the world was visited."""
  columns, rows = environments.make(plan_lib.MAP_WORLD, seed=0).grid_size()
  counts = np.zeros([rows, columns], np.int64)
  for recording in recordings:
    for x, y in recording.cells:
      counts[y, x] += 1
  return {'counts': counts.tolist(), 'cells': _summary(recordings)['cells']}
