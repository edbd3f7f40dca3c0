"""The evaluator node, which runs the pending evaluations."""

import contextlib

from bt_acme import assembly, evaluation
from bt_acme.config import run as run_config
from bt_acme.runtime import evaluation_schedule, node, seeds


class EvaluatorNode(node.Node):
  """Runs one pending evaluation per iteration; evaluators share the queue."""

  def __init__(
    self,
    run: run_config.RunConfig,
    agent: assembly.Agent,
    index: int,
    context: node.Context,
  ):
    """Initializes an evaluator that has not started.

    Args:
      run: the run.
      agent: the agent that is evaluated.
      index: the index of this evaluator among the evaluators of the run.
      context: the context, with clients of the coordinator and the learner.
    """
    super().__init__(run, context)
    self._agent = agent
    self._index = index
    # The actor steps and rows of an evaluation, until they are on the disk.
    self._unlogged: tuple[int, list[dict[str, float]]] | None = None

  def iterate(self) -> float | None:
    """Runs the next evaluation, if one is pending."""
    if not self._log():
      return node.POLL_SECONDS
    phase, _ = self._coordinator.poll()
    if phase == node.Phase.STARTING:
      return node.POLL_SECONDS
    pending = self._learner.next_evaluation(self._index)
    if pending is not None:
      self._evaluate(*pending)
      return node.AT_ONCE
    # No evaluation becomes pending in the last phase.
    if phase >= node.Phase.EVALUATORS_FINISH:
      self._coordinator.evaluator_done(self._index)
      return None
    return node.POLL_SECONDS

  def _evaluate(self, point: int, learned: assembly.Learned) -> None:
    """Runs an evaluation, which stays pending if it is interrupted."""
    with contextlib.closing(self._make_evaluator(point)) as evaluator:
      rows = evaluator.run(learned, should_stop=self._should_stop)
    self.is_warm = True  # By now, all functions have been compiled.
    if rows:
      marked = [{evaluation_schedule.POINT: point, **row} for row in rows]
      self._unlogged = learned.actor_steps, marked
      self._log()

  def _make_evaluator(self, point: int) -> evaluation.Evaluator:
    """Makes the evaluator, with environment seeds that no actor uses.

    Its seeds depend on the point only, so that the evaluation stays the same if
    it is repeated, also by another evaluator, or if the run was resumed before.
    """
    run = self._run
    return evaluation.Evaluator(
      self._agent,
      episodes=run.evaluation_episodes,
      seed=seeds.for_evaluation(run.seed, point),
    )

  def _log(self) -> bool:
    """Logs the last evaluation, and removes it once its rows are on the disk.

    While the disk is full, the evaluation stays pending in case this process
    fails.

    Returns:
      Whether nothing is left to log.
    """
    if self._unlogged is not None:
      if not self._coordinator.report_evaluation(*self._unlogged):
        return False
      _, rows = self._unlogged
      self._learner.evaluation_done(rows[0][evaluation_schedule.POINT])
      self._unlogged = None
    return True

  def _should_stop(self) -> bool:
    """Sends a heartbeat during an evaluation; returns whether to stop."""
    self._context.send_heartbeat()
    return self._context.wait_for_stop(0)
