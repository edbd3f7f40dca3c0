"""A run in one process and one thread: reproducible, and without Reverb.

Acting and learning are those of the distributed program, but they take strict
turns: one step of the environments, then as many learner steps as
`samples_per_insert` allows. This engine runs wherever the core does.
"""

from typing import Any, Callable, Dict, List, NamedTuple, Optional

import jax
import numpy as np

from bt_acme import assembly, environments, learner_assembly
from bt_acme.acting import vector_actor
from bt_acme.core import data_parallel, epsilon
from bt_acme.core.intrinsic import reward as reward_lib
from bt_acme.replay import in_process as in_process_replay
from bt_acme.replay import initial_priority, sampling_metrics, sinks

Row = Dict[str, float]

_ROW_PERIOD = 10  # Learner steps between two rows of metrics.


class Result(NamedTuple):
  """The end of a run.

  Attributes:
    variables: the parameters, as NumPy arrays.
    statistics: the statistics of the intrinsic reward, merged over the
      environments; None for an agent without one.
    episodes: metrics of every finished episode, with `actor_steps`.
    learner: metrics of every tenth learner step, with `learner_steps`.
    actor_steps: the number of steps taken.
  """

  variables: assembly.Variables
  statistics: Optional[reward_lib.IntrinsicStatistics]
  episodes: List[Row]
  learner: List[Row]
  actor_steps: int


class Snapshot(NamedTuple):
  """What a run has learned so far.

  Attributes:
    actor_steps: the number of steps taken.
    variables: the parameters, as NumPy arrays.
    statistics: as in `Result`.
  """

  actor_steps: int
  variables: assembly.Variables
  statistics: Optional[reward_lib.IntrinsicStatistics]


def run(
  agent: assembly.Agent,
  *,
  num_environments: int,
  max_actor_steps: int,
  seed: int,
  initial_params: Any = None,
  on_episode: Callable[[Row], None] = lambda row: None,
  snapshot_period: Optional[int] = None,
  on_snapshot: Callable[[Snapshot], None] = lambda snapshot: None,
) -> Result:
  """Trains an agent.

  Args:
    agent: R2D2, NGU or BT.
    num_environments: environments that are stepped at once.
    max_actor_steps: the budget, over all environments.
    seed: decides everything; the same seed gives the same run.
    initial_params: parameters of the Q-network to start from, instead of fresh
      ones.
    on_episode: is called with the metrics of each finished episode.
    snapshot_period: the number of actor steps from one snapshot to the next;
      None takes no snapshots.
    on_snapshot: is called with each snapshot, at the first turn at or after
      each multiple of the period. It does not change the run.

  Returns:
    What the run ends with.

  Raises:
    ValueError: if the period is not positive.
  """
  if snapshot_period is not None and snapshot_period < 1:
    raise ValueError(f'snapshot_period={snapshot_period} must be positive.')
  learner = _Learner(agent, seed, initial_params)
  actor = _make_actor(agent, learner, num_environments, seed)
  environment = environments.make_vector(
    agent.spec.name,
    num_environments,
    seed=seed,
    num_stacked=agent.spec.num_stacked,
  )
  episodes: List[Row] = []
  actor_steps = turns = snapshots = 0
  step = environment.reset()
  actor.update_variables(learner.variables())
  while actor_steps < max_actor_steps:
    environment.send(actor.select_actions(step))
    actor_steps += int(num_environments - step.is_last.sum())
    actor.digest()
    step = environment.recv()
    for row in actor.observe(step):
      episodes.append({'actor_steps': actor_steps, **row})
      on_episode(episodes[-1])
    turns += 1
    if turns % agent.config.acting.variable_update_period == 0:
      actor.update_variables(learner.variables())
    learner.learn()
    if snapshot_period and actor_steps // snapshot_period > snapshots:
      snapshots = actor_steps // snapshot_period
      on_snapshot(
        Snapshot(actor_steps, learner.variables(), _statistics(actor))
      )
  environment.close()
  return Result(
    learner.variables(), _statistics(actor), episodes, learner.rows, actor_steps
  )


def _statistics(
  actor: vector_actor.VectorActor,
) -> Optional[reward_lib.IntrinsicStatistics]:
  """Merges the statistics of the environments."""
  statistics = actor.statistics()
  return None if statistics is None else statistics.merged()


class _Learner:
  """The learner's state and its replay.

  Attributes:
    replay: what the actor fills.
    largest_priority: the largest priority of its recent steps.
    rows: metrics of every tenth step.
  """

  def __init__(self, agent: assembly.Agent, seed: int, initial_params: Any):
    config = agent.config
    core = learner_assembly.make_learner_core(agent)
    shardings = data_parallel.make_shardings(config.learner)
    self._batch_size = config.learner.batch_size
    # Where the step leaves its state; elsewhere it would be compiled twice.
    self._state = jax.device_put(
      core.init(jax.random.key(seed), initial_params), shardings.state
    )
    self._step = data_parallel.jit_step(core.step, shardings)
    self._num_steps = 0
    self.replay = in_process_replay.InProcessReplay(
      config.replay, agent.replay_shapes, seed=seed
    )
    self.largest_priority = initial_priority.LargestPriority()
    self._sampling = sampling_metrics.SamplingMetrics(
      config.replay.max_replay_size
    )
    self.rows: List[Row] = []

  def variables(self) -> assembly.Variables:
    """Copies the parameters."""
    params = (self._state.params, self._state.intrinsic_params)
    return assembly.Variables(*jax.tree.map(np.array, params))

  def learn(self) -> None:
    """Takes all steps that the replay allows by now."""
    while self.replay.can_sample():
      sample = self.replay.sample(self._batch_size)
      self._state, priorities, metrics = self._step(
        self._state, sample.batch, np.float32(sample.probabilities)
      )
      values = np.asarray(priorities)
      self.replay.update_priorities(sample.keys, values)
      self.largest_priority.update(values)
      sampling = self._sampling.of(sample, values)
      self._num_steps += 1
      if self._num_steps % _ROW_PERIOD == 0:
        row = {name: float(value) for name, value in metrics.items()}
        self.rows.append({'learner_steps': self._num_steps, **row, **sampling})


def _make_actor(
  agent: assembly.Agent, learner: _Learner, num_environments: int, seed: int
) -> vector_actor.VectorActor:
  """Makes an actor that writes into the learner's replay."""
  config = agent.config
  return vector_actor.VectorActor(
    agent,
    epsilons=epsilon.ladder(
      num_environments,
      base=config.acting.epsilon_base,
      alpha=config.acting.epsilon_alpha,
    ),
    seed=seed,
    sinks=[
      sinks.make_sink(
        config,
        agent.replay_shapes,
        learner.replay.writer(),
        num_actions=agent.spec.num_actions,
        largest_priority=learner.largest_priority,
      )
      for _ in range(num_environments)
    ],
  )
