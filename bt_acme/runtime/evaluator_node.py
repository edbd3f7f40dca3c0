"""An evaluator's process: it plays the evaluations that are due."""

from bt_acme import assembly, evaluation
from bt_acme.config import run as run_config
from bt_acme.runtime import context as context_lib
from bt_acme.runtime import evaluation_schedule, seeds
from bt_acme.runtime.phases import Phase

_POLL_SECONDS = 0.5


class EvaluatorNode:
  """Plays evaluations; several evaluators share them."""

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
    self._has_compiled = False

  def run(self) -> None:
    """Evaluates until the last evaluation of the run is over."""
    run = self._run
    evaluator = evaluation.Evaluator(
      self._agent,
      episodes=run.evaluation_episodes,
      seed=seeds.of_node(run.seed, self._context.life),
      first_environment=(
        evaluation.FIRST_ENVIRONMENT + self._index * run.evaluation_episodes
      ),
    )
    while not self._context.wait_for_stop(_POLL_SECONDS):
      if self._has_compiled:
        self._context.alive()
      phase, _ = self._coordinator.poll()
      if phase == Phase.STARTING:
        continue
      while self._evaluate_next(evaluator):
        pass
      # Nothing becomes due in the last phase.
      if phase == Phase.EVALUATORS_FINISH:
        if not self._context.wait_for_stop(0):
          self._coordinator.evaluator_done(self._index)
        break

  def _evaluate_next(self, evaluator: evaluation.Evaluator) -> bool:
    """Plays the next evaluation that is due; returns whether there was one."""
    due = self._learner.next_evaluation(self._index)
    if due is None:
      return False
    rows = evaluator.run(
      due.variables, due.statistics, should_stop=self._should_stop
    )
    if not rows:  # It was told to stop, and will be due again.
      return False
    rows = [{evaluation_schedule.POINT: due.point, **row} for row in rows]
    self._coordinator.report_evaluation(due.actor_steps, rows)
    # On a full disk it stays due, should this process die meanwhile.
    while not self._coordinator.evaluations_are_logged():
      if self._context.wait_for_stop(_POLL_SECONDS):
        return False
      self._context.alive()
    self._learner.evaluation_done(due.point)
    return not self._should_stop()

  def _should_stop(self) -> bool:
    """Is asked while it plays, so that all it needs has been compiled."""
    self._has_compiled = True
    self._context.alive()
    return self._context.wait_for_stop(0)
