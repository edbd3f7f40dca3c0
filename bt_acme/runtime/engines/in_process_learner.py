"""The learner of an in-process run: samples, steps, and sets priorities.

Learner steps are computed while the environments step. Counts alone determine
when each of them is computed, so the seed still determines the run (on one
processor type with one set of package versions).
"""

import math
from collections.abc import Callable, Mapping
from typing import Any

import jax
import numpy as np

from bt_acme import assembly
from bt_acme import learner as learner_lib
from bt_acme.core import types
from bt_acme.replay import in_process as in_process_replay
from bt_acme.runtime import metrics_logger

_ROW_PERIOD = 10  # Learner steps between two rows of metrics.


class InProcessLearner(learner_lib.Learner):
  """The learner of an in-process run, with its replay.

  Attributes:
    replay: the replay that the actor fills.
  """

  def __init__(
    self,
    agent: assembly.Agent,
    seed: int,
    initial_params: types.Params | None,
    *,
    logger: metrics_logger.MetricsLogger,
    increment: Callable[..., Mapping[str, int]],
  ):
    """Initializes the parameters and an empty replay.

    Args:
      agent: the agent that learns.
      seed: random seed of the learner and its replay.
      initial_params: initial parameters of the Q-network; None for random ones.
      logger: the logger for the metrics of every tenth step.
      increment: adds to the counts of the run, and returns all counts.
    """
    super().__init__(agent, jax.random.key(seed), initial_params)
    config = agent.config
    self._batch_size = config.learner.batch_size
    self._sequence_period = config.replay.sequence_period
    self._allowed = 0  # Steps that the replay allowed after the last iteration.
    self._spacing = 1  # Iterations between two starts of steps.
    self._idle_iterations = 0  # Iterations since steps were last started.
    self._logger = logger
    self._increment = increment
    self.replay = in_process_replay.InProcessReplay(
      agent.replay_layout, seed=seed
    )

  @property
  def replay_size(self) -> int:
    """The number of sequences in the replay."""
    return len(self.replay)

  def flush(self) -> None:
    """Does nothing: pending steps finish when they would in a longer run."""

  def advance(self, seconds: float = 0.0) -> bool:
    """Starts the learner steps that are due, after finishing pending ones.

    Called once per iteration. Does not wait for the results of the new steps,
    which may take several iterations. All environments finish their sequences
    at the same time. The steps that these allow are spread over the iterations
    until the next sequences, so that each iteration has some steps to compute.

    Args:
      seconds: unused, because counts alone determine when steps start.

    Returns:
      Whether a step has been started, so that the step is compiled.
    """
    del seconds
    allowed = self.replay.num_allowed(self._batch_size)
    if allowed > self._allowed:  # There are new sequences.
      self._spacing = max(self._sequence_period // allowed, 1)
    self._allowed = allowed
    self._idle_iterations += 1
    if allowed and self._idle_iterations >= self._spacing:
      self._idle_iterations = 0
      self._finish()
      for _ in range(math.ceil(allowed / self._sequence_period)):
        self.start(self.replay.sample(self._batch_size))
      self._allowed = self.replay.num_allowed(self._batch_size)
    return bool(self.num_finished or self.pending)

  def _finish(self) -> None:
    """Waits for the pending steps, and sets the priorities.

    Raises:
      FloatingPointError: if the learner has diverged.
    """
    while self.pending:
      step = self.finish()
      self.replay.update_priorities(step.keys, step.priorities)
      counts = self._increment(learner_steps=1)
      if self.learner_steps % _ROW_PERIOD == 0:
        self._logger.write({**counts, **step.row()})

  def state(self) -> dict[str, Any]:
    """Returns the state that `save` omits but the next steps depend on."""
    return {
      'under_way': [
        jax.tree.map(np.asarray, tuple(step)) for step in self.pending
      ],
      'schedule': (self._allowed, self._spacing, self._idle_iterations),
      'replay': self.replay.state(),
      'largest_priority': self.largest_priority.value,
      'sampling': self.sampling.state(),
    }

  def restore_state(self, state: Mapping[str, Any]) -> None:
    """Restores a state returned by `state`; must be called after `restore`."""
    self.pending.extend(
      learner_lib.LearnerStep(*step) for step in state['under_way']
    )
    self._allowed, self._spacing, self._idle_iterations = state['schedule']
    self.replay.restore(state['replay'])
    self.largest_priority.value = state['largest_priority']
    self.sampling.restore(state['sampling'])
