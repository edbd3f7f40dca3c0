"""An evaluator's process: it plays episodes with the newest parameters."""

import functools
from typing import Optional

from bt_acme import assembly, evaluation
from bt_acme.acting import variables
from bt_acme.config import run as run_config
from bt_acme.runtime import context as context_lib
from bt_acme.runtime.phases import Phase

_POLL_SECONDS = 0.5


class EvaluatorNode:
  """Evaluates at intervals, and once more when the learner has finished."""

  def __init__(
    self,
    run: run_config.RunConfig,
    agent: assembly.Agent,
    index: int,
    context: context_lib.Context,
  ):
    """Builds nothing yet.

    Args:
      run: the run.
      agent: the agent that is evaluated.
      index: this evaluator's index among those of the run.
      context: has clients of the coordinator and the learner.
    """
    assert context.coordinator is not None and context.learner is not None
    self._run = run
    self._agent = agent
    self._index = index
    self._context = context
    self._coordinator = context.coordinator
    self._learner = context.learner

  def run(self) -> None:
    """Evaluates until the final parameters have been evaluated."""
    run = self._run
    evaluator = evaluation.Evaluator(
      self._agent,
      episodes=run.evaluation_episodes,
      seed=run.seed,
      first_environment=(
        evaluation.FIRST_ENVIRONMENT + self._index * run.evaluation_episodes
      ),
    )
    # Actor steps at the last evaluation. There is none at the beginning of a
    # run, resumed or not, so the steps that it begins with stand in for it.
    evaluated: Optional[int] = None
    while not self._context.wait_for_stop(_POLL_SECONDS):
      phase, counts = self._coordinator.poll()
      actor_steps = counts.get('actor_steps', 0)
      is_last = phase == Phase.EVALUATORS_FINISH
      is_due = False
      if phase == Phase.RUNNING:
        if evaluated is None:
          evaluated = actor_steps
        is_due = actor_steps - evaluated >= run.evaluation_period
      if not (is_last or is_due):
        continue
      evaluated = actor_steps
      rows = evaluator.run(
        variables.fetch(self._learner),
        self._learner.get_merged_statistics(),
        should_stop=functools.partial(self._should_stop, is_last),
      )
      self._coordinator.report_episodes('evaluator', rows, actor_steps)
      if is_last:
        self._coordinator.evaluator_done()
        break

  def _should_stop(self, is_last: bool) -> bool:
    """Returns whether the evaluation under way has become useless."""
    if self._context.wait_for_stop(0):
      return True
    if is_last:
      return False
    return self._coordinator.poll()[0] >= Phase.LEARNER_FINISHES
