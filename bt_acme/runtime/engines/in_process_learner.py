"""The learner of a run in one process: it samples, steps, and sets priorities.

It computes its steps while the environments take theirs. What is computed when
is decided by counts alone, so that the seed still decides everything.
"""

import functools
import math
from typing import Any, Dict, List, NamedTuple, Tuple

import jax
import numpy as np

from bt_acme import assembly, learner_assembly
from bt_acme.core import data_parallel, learner_core, leaves
from bt_acme.replay import in_process as in_process_replay
from bt_acme.replay import initial_priority, sampling_metrics

_ROW_PERIOD = 10  # Learner steps between two rows of metrics.


class _Step(NamedTuple):
  """A step under way, whose results JAX is computing.

  Attributes:
    keys: those of its batch, uint64 [B].
    probabilities: with which they were drawn, float64 [B].
    priorities: float32 [B].
    metrics: by name.
  """

  keys: np.ndarray
  probabilities: np.ndarray
  priorities: Any
  metrics: Any


@functools.lru_cache(maxsize=8)
def _compiled(
  agent: assembly.Agent,
) -> Tuple[learner_core.LearnerCore, data_parallel.Shardings, Any]:
  """Makes the functions once for all equal agents, so that JAX does as well."""
  core = learner_assembly.make_learner_core(agent)
  shardings = data_parallel.make_shardings(agent.config.learner)
  return core, shardings, data_parallel.jit_step(core.step, shardings)


class Learner:
  """The learner of a run in one process, with its replay.

  Attributes:
    replay: what the actor fills.
    largest_priority: the largest priority of its recent steps.
    num_steps: the number of finished steps.
    rows: metrics of every tenth of these.
  """

  def __init__(self, agent: assembly.Agent, seed: int, initial_params: Any):
    config = agent.config
    core, self._shardings, self._step = _compiled(agent.nameless)
    self._batch_size = config.learner.batch_size
    self._sequence_period = config.replay.sequence_period
    self._state = self._placed(core.init(jax.random.key(seed), initial_params))
    self.num_steps = 0
    self._under_way: List[_Step] = []
    self._allowed = 0  # The steps that the replay allowed a turn ago.
    self._spacing = 1  # The turns from one start of steps to the next.
    self._idle_turns = 0  # The turns since steps were started.
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
    """Copies the parameters, when the steps under way are computed."""
    params = (self._state.params, self._state.intrinsic_params)
    return assembly.Variables(*jax.tree.map(np.array, params))

  def advance(self) -> None:
    """Starts the steps that are due, after the end of those under way.

    It is called once a turn, and does not wait for the results of what it
    starts. A step may take several turns. Environments finish sequences at
    once, and the steps that these allow are spread over the turns until the
    next sequences, so that each turn has some to compute meanwhile.
    """
    allowed = self.replay.num_allowed(self._batch_size)
    if allowed > self._allowed:  # There are new sequences.
      self._spacing = max(self._sequence_period // allowed, 1)
    self._allowed = allowed
    self._idle_turns += 1
    if not allowed or self._idle_turns < self._spacing:
      return
    self._idle_turns = 0
    self.finish()
    for _ in range(math.ceil(allowed / self._sequence_period)):
      self._start()
    self._allowed = self.replay.num_allowed(self._batch_size)

  def _start(self) -> None:
    sample = self.replay.sample(self._batch_size)
    self._state, priorities, metrics = self._step(
      self._state, sample.batch, np.float32(sample.probabilities)
    )
    self._under_way.append(
      _Step(sample.keys, sample.probabilities, priorities, metrics)
    )

  def finish(self) -> None:
    """Waits for the steps under way, and sets the priorities."""
    for step in self._under_way:
      values = np.asarray(step.priorities)
      self.replay.update_priorities(step.keys, values)
      self.largest_priority.update(values)
      sampling = self._sampling.compute(step.keys, step.probabilities, values)
      self.num_steps += 1
      if self.num_steps % _ROW_PERIOD == 0:
        row = {name: float(value) for name, value in step.metrics.items()}
        self.rows.append({'learner_steps': self.num_steps, **row, **sampling})
    self._under_way = []

  def state(self) -> Dict[str, Any]:
    """Returns all that the next steps depend on, in plain values."""
    return {
      'core': leaves.tree_leaves(self._state),
      'num_steps': self.num_steps,
      'under_way': [
        jax.tree.map(np.asarray, tuple(step)) for step in self._under_way
      ],
      'schedule': (self._allowed, self._spacing, self._idle_turns),
      'replay': self.replay.state(),
      'largest_priority': self.largest_priority.state(),
      'sampling': self._sampling.state(),
      'rows': list(self.rows),
    }

  def restore(self, state: Dict[str, Any]) -> None:
    """Goes on from a state."""
    self._state = self._placed(
      leaves.restore_leaves(self._state, state['core'])
    )
    self.num_steps = state['num_steps']
    self._under_way = [_Step(*step) for step in state['under_way']]
    self._allowed, self._spacing, self._idle_turns = state['schedule']
    self.replay.restore(state['replay'])
    self.largest_priority.restore(state['largest_priority'])
    self._sampling.restore(state['sampling'])
    self.rows = list(state['rows'])
