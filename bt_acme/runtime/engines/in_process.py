"""A run in one process and one thread: reproducible, and without Reverb.

The same agent, acting and learning as the distributed program, in strict turn:
the environments' steps, then as many learner steps as `samples_per_insert`
allows. Runs wherever the core does.
"""

from typing import Any, Callable, Dict, List, NamedTuple, Optional

import jax
import numpy as np

from bt_acme import assembly, environments, learner_assembly
from bt_acme.acting import vector_actor
from bt_acme.core import data_parallel, epsilon
from bt_acme.core.intrinsic import reward as reward_lib
from bt_acme.replay import builder as builder_lib
from bt_acme.replay import in_process as in_process_replay
from bt_acme.replay import sinks

Row = Dict[str, float]


class Result(NamedTuple):
  """What a run ends with.

  Attributes:
    variables: parameters, NumPy.
    statistics: of the intrinsic reward, merged; None without.
    episodes: metrics of each finished episode, with `actor_steps`.
    learner: metrics of learner steps, with `learner_steps`, one in ten.
    actor_steps: taken.
  """

  variables: assembly.Variables
  statistics: Optional[reward_lib.IntrinsicStatistics]
  episodes: List[Row]
  learner: List[Row]
  actor_steps: int


def run(
  agent: assembly.Agent,
  *,
  num_environments: int,
  max_actor_steps: int,
  seed: int,
  initial_params: Any = None,
  on_episode: Callable[[Row], None] = lambda row: None,
) -> Result:
  """Trains an agent.

  Args:
    agent: R2D2, NGU or BT.
    num_environments: stepped at once.
    max_actor_steps: the budget, over all environments.
    seed: of everything; the same seed gives the same run.
    initial_params: of the Q-network, to start from instead of fresh ones.
    on_episode: called with each finished episode's metrics.

  Returns:
    What the run ends with.
  """
  config = agent.config
  core = learner_assembly.make_learner_core(agent)
  shardings = data_parallel.make_shardings(config.learner)
  state = core.init(jax.random.key(seed), initial_params)
  learn = data_parallel.jit_step(core.step, shardings)
  shapes = agent.replay_shapes
  replay = in_process_replay.InProcessReplay(config.replay, shapes, seed=seed)
  max_priority = 1.0
  actor = vector_actor.VectorActor(
    agent,
    epsilons=epsilon.ladder(
      num_environments,
      base=config.acting.epsilon_base,
      alpha=config.acting.epsilon_alpha,
    ),
    seed=seed,
    sinks=[
      sinks.SequenceSink(
        builder_lib.SequenceBuilder(config.replay, shapes),
        replay.writer(),
        initial_priority=sinks.make_initial_priority(
          config.replay, lambda: max_priority
        ),
      )
      for _ in range(num_environments)
    ],
  )

  def published() -> assembly.Variables:
    params = (state.params, state.intrinsic_params)
    return assembly.Variables(*jax.tree.map(np.array, params))

  environment = environments.make_vector(
    agent.spec.name,
    num_environments,
    seed=seed,
    num_stacked=agent.spec.num_stacked,
  )
  episodes: List[Row] = []
  metrics_rows: List[Row] = []
  actor_steps = turns = learner_steps = 0
  step = environment.reset()
  actor.update_variables(published())
  while actor_steps < max_actor_steps:
    environment.send(actor.select_actions(step))
    actor_steps += int(num_environments - step.is_last.sum())
    actor.digest()
    step = environment.recv()
    for row in actor.observe(step):
      episodes.append({'actor_steps': actor_steps, **row})
      on_episode(episodes[-1])
    turns += 1
    if turns % config.acting.variable_update_period == 0:
      actor.update_variables(published())
    while replay.can_sample():
      sample = replay.sample(config.learner.batch_size)
      state, priorities, metrics = learn(
        state, sample.batch, np.float32(sample.probabilities)
      )
      replay.update_priorities(sample.keys, np.asarray(priorities))
      max_priority = max(max_priority, float(np.max(priorities)))
      learner_steps += 1
      if learner_steps % 10 == 0:
        metrics_rows.append(
          {
            'learner_steps': learner_steps,
            **{name: float(value) for name, value in metrics.items()},
          }
        )
  environment.close()
  statistics = actor.statistics()
  return Result(
    variables=published(),
    statistics=None
    if statistics is None
    else reward_lib.merge_statistics(statistics),
    episodes=episodes,
    learner=metrics_rows,
    actor_steps=actor_steps,
  )
