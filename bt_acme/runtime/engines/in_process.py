"""Runs all nodes in one thread: reproducible, and without Acme's stack.

On one processor type with one set of package versions, the seed determines
every number.

The nodes are the same as on every other engine, but here they take turns and
call each other directly. While the environments step, JAX computes the learner
steps that `samples_per_insert` allows. This engine runs wherever the core does.

All nodes can be saved between two iterations. A run that resumes from such a
checkpoint continues exactly as it would have without the interruption.
"""

import contextlib
import dataclasses
import functools
import io
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from bt_acme import assembly
from bt_acme.config import run as run_config
from bt_acme.core import types
from bt_acme.runtime import (
  actor_node,
  checkpoints,
  coordinator,
  evaluator_node,
  freed_memory,
  learner_node,
  metrics_logger,
  node,
  old_checkpoints,
  saved_nodes,
  saver,
  serialization,
)
from bt_acme.runtime.engines import in_process_learner

_FULL_DISK_SECONDS = 0.5  # Between two checks for disk space.

# Called after each iteration with the values of `progress.Progress.update`.
# Returning True stops the run.
Callback = Callable[[Mapping[str, Any]], Any]


class InProcess:
  """The nodes of one run, which take turns in this thread."""

  def __init__(
    self,
    run: run_config.RunConfig,
    agent: assembly.Agent,
    *,
    make_display: coordinator.MakeDisplay,
    initial_params: types.Params | None = None,
    should_stop: Callable[[], bool] = lambda: False,
  ):
    """Initializes the nodes without starting them.

    Args:
      run: the run.
      agent: R2D2, NGU or BT.
      make_display: makes the display, given the budget of actor steps.
      initial_params: initial parameters of the Q-network; None for random ones.
      should_stop: returns whether to stop the run after this iteration.
    """
    # One actor steps all environments.
    run = dataclasses.replace(
      run, num_actors=1, envs_per_actor=run.num_environments
    )
    self._run = run
    self._agent = agent
    self._initial_params = initial_params
    self._should_stop = should_stop
    self._states: Mapping[str, Any] | None = None  # Until they are restored.
    self.has_started = False  # Whether all nodes have started.
    context = node.Context(
      lambda seconds: should_stop(),
      lambda handler: None,
      call_with_timeout=lambda function, seconds: function(),
    )
    self.coordinator = coordinator.Coordinator(run, make_display, context)
    self._context = dataclasses.replace(context, coordinator=self.coordinator)
    self.learner = learner_node.LearnerNode(
      run, agent, self._make_learner, self._context
    )

  def run(self, callbacks: Sequence[Callback] = ()) -> bool:
    """Runs all nodes, from the last checkpoint if there is one.

    Args:
      callbacks: functions called after each iteration; when any of them returns
        True, the run is saved and stops.

    Returns:
      True if the run has used up its budget; False if it was stopped before.

    Raises:
      ValueError: if the checkpoint does not fit this run.
    """
    with contextlib.ExitStack() as stack:
      stack.enter_context(freed_memory.kept())
      self._start(stack)
      self.has_started = True
      while True:
        for evaluator in self._evaluators:
          while not self._should_stop() and evaluator.iterate() == node.AT_ONCE:
            pass
        is_over = self.coordinator.iterate() is None
        values = self.coordinator.progress()
        answers = [callback(values) for callback in callbacks]
        if is_over:
          return True
        # Other results, such as those of `list.append`, mean nothing.
        asks = any(isinstance(x, (bool, np.bool_)) and x for x in answers)
        if asks or self._should_stop():
          self.learner.stop()
          return False
        if self._actor.iterate() is None:
          # The budget is used up, but evaluations are waiting for disk space.
          time.sleep(_FULL_DISK_SECONDS)
        if not values['actor_steps']:
          # A user's state() that cannot be saved should not cost the steps
          # until the first checkpoint.
          serialization.dump(self._actor.state(), io.BytesIO())
        self.learner.iterate()

  def _start(self, stack: contextlib.ExitStack) -> None:
    """Starts the nodes and restores their states."""
    run = self._run

    def start(started: node.Node) -> None:
      stack.callback(started.close)
      started.start()

    start(self.coordinator)
    start(self.learner)
    context = dataclasses.replace(
      self._context, learner=self.learner, replay=self._learner.replay
    )
    self._actor = actor_node.ActorNode(
      run, self._agent, 0, lambda replay, layout, on_wait: replay, context
    )
    start(self._actor)
    if self._states is not None:
      steps = self.coordinator.get_counts()['actor_steps']
      # The file is intact, so the previous checkpoint would not fit either.
      advice = 'Use the environments and behaviors that saved them, or choose'
      with saved_nodes.refusals(run, advice):
        self._actor.restore(self._states['actor'], steps)
        self._learner.restore_state(self._states['learner'])
      self._states = None  # It contains a whole replay.
    self._evaluators = [
      evaluator_node.EvaluatorNode(run, self._agent, i, context)
      for i in range(run.num_evaluators)
    ]
    for evaluator in self._evaluators:
      start(evaluator)

  def _make_learner(
    self,
    run: run_config.RunConfig,
    context: node.Context,
    logger: metrics_logger.MetricsLogger,
    stack: contextlib.ExitStack,
  ) -> Any:
    """Makes the learner and its saver; see `learner_node.MakeLearner`."""
    del stack
    self._learner = in_process_learner.InProcessLearner(
      self._agent,
      run.seed,
      self._initial_params,
      logger=logger,
      increment=context.coordinator.increment,
    )
    old_checkpoints.upgrade(run, self._agent, self._learner.template)
    # States that do not fit are refused before the logs are cut.
    self._states = saved_nodes.read(run, self._agent)
    return self._learner, saver.Saver(
      run.checkpoint_folder,
      self._write_states,
      functools.partial(saved_nodes.clear, run),
      start=lambda work: work(),
      reuses_replay=False,
    )

  def _write_states(self) -> checkpoints.Replay:
    """Writes the states of the nodes, which replace the replay."""
    states = {'actor': self._actor.state(), 'learner': self._learner.state()}
    return saved_nodes.write(self._run, self._agent, states)
