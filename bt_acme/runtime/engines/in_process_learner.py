"""The learner of a run in one process: it samples, steps, and sets priorities.

It takes its turns after the actor's, in the same thread.
"""

from typing import Any, Dict, List

import jax
import numpy as np

from bt_acme import assembly, learner_assembly
from bt_acme.core import data_parallel, learner_core, leaves
from bt_acme.replay import in_process as in_process_replay
from bt_acme.replay import initial_priority, sampling_metrics

_ROW_PERIOD = 10  # Learner steps between two rows of metrics.


class Learner:
  """The learner of a run in one process, with its replay.

  Attributes:
    replay: what the actor fills.
    largest_priority: the largest priority of its recent steps.
    rows: metrics of every tenth step.
  """

  def __init__(self, agent: assembly.Agent, seed: int, initial_params: Any):
    config = agent.config
    core = learner_assembly.make_learner_core(agent)
    self._shardings = data_parallel.make_shardings(config.learner)
    self._batch_size = config.learner.batch_size
    self._state = self._placed(core.init(jax.random.key(seed), initial_params))
    self._step = data_parallel.jit_step(core.step, self._shardings)
    self._num_steps = 0
    self.replay = in_process_replay.InProcessReplay(
      config.replay, agent.replay_shapes, seed=seed
    )
    self.largest_priority = initial_priority.LargestPriority()
    self._sampling = sampling_metrics.SamplingMetrics(
      config.replay.max_replay_size
    )
    self.rows: List[Dict[str, float]] = []

  def _placed(
    self, state: learner_core.LearnerState
  ) -> learner_core.LearnerState:
    """Puts a state where the step leaves its own, or JAX compiles it twice."""
    return jax.device_put(state, self._shardings.state)

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

  def state(self) -> Dict[str, Any]:
    """Returns all that the next steps depend on, in plain values."""
    return {
      'core': leaves.of(self._state),
      'num_steps': self._num_steps,
      'replay': self.replay.state(),
      'largest_priority': self.largest_priority.state(),
      'sampling': self._sampling.state(),
      'rows': list(self.rows),
    }

  def restore(self, state: Dict[str, Any]) -> None:
    """Goes on from a state."""
    self._state = self._placed(leaves.into(self._state, state['core']))
    self._num_steps = state['num_steps']
    self.replay.restore(state['replay'])
    self.largest_priority.restore(state['largest_priority'])
    self._sampling.restore(state['sampling'])
    self.rows = list(state['rows'])
