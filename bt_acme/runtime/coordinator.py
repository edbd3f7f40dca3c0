"""The coordinator: it keeps the counts, the budget, the phase and the logs.

It hands out the budget of actor steps in leases. An actor overshoots its last
lease by less than one turn of its environments. The run is over when the
coordinator's `run` returns. By then the learner and all evaluators have said
that they are done.
"""

import threading
from typing import Dict, List, Mapping, Optional, Tuple

import numpy as np

from bt_acme.config import run as run_config
from bt_acme.runtime import context as context_lib
from bt_acme.runtime import metrics
from bt_acme.runtime import progress as progress_lib
from bt_acme.runtime.phases import Phase

_POLL_SECONDS = 0.5
_RECENT = 100  # Episodes whose mean return the progress line shows.
_LEARNER_ENDS_SECONDS = 8.0  # What the learner gets to save when told to stop.


class Coordinator:
  """Counts, budget, phase, logs and progress of a run.

  All public methods except `run` are called by other nodes, from any thread.
  """

  def __init__(
    self, run: run_config.RunConfig, context: context_lib.Context
  ) -> None:
    """Begins with nothing counted.

    Args:
      run: the run.
      context: what says when to stop; its clients are not used.
    """
    self._run = run
    self._context = context
    self._learner_ended = threading.Event()
    # The lock guards everything below it.
    self._lock = threading.Lock()
    self._phase = Phase.STARTING
    self._counts: Dict[str, int] = {}
    self._leased = 0
    self._evaluations_done = 0
    self._status: Dict[str, float] = {}
    self._returns: List[float] = []
    self._logs: Dict[str, metrics.MetricsLogger] = {}

  def increment(self, **counts: int) -> Dict[str, int]:
    """Adds to counts and returns all, as `acme.utils.counting.Counter` does."""
    with self._lock:
      self._add(counts)
      return dict(self._counts)

  def get_counts(self) -> Dict[str, int]:
    """Returns all counts."""
    with self._lock:
      return dict(self._counts)

  def poll(self) -> Tuple[int, Dict[str, int]]:
    """Returns the phase of the run and all counts."""
    with self._lock:
      return self._phase, dict(self._counts)

  def poll_to_save(
    self, status: Mapping[str, float]
  ) -> Tuple[int, Dict[str, int], int]:
    """Returns the phase, all counts, and the rows of the actors' log by then.

    Args:
      status: the values that the caller adds to the progress line.
    """
    with self._lock:
      self._status.update(status)
      rows = self._logger('actor').num_rows
      return self._phase, dict(self._counts), rows

  def start(
    self, counts: Mapping[str, int], actor_rows: Optional[int] = None
  ) -> None:
    """Takes what a checkpoint holds; the learner is ready.

    Args:
      counts: all counts.
      actor_rows: the rows that the actors' log had by then, to which it is cut;
        None if this is not known.
    """
    with self._lock:
      self._add(counts)
      self._leased = counts.get('actor_steps', 0)
      if actor_rows is not None:
        self._logger('actor').cut(actor_rows, self._leased)
      self._advance_to(Phase.RUNNING)

  def lease(self, actor_steps: int) -> int:
    """Grants at most this many steps of the budget; 0 if it is used up."""
    with self._lock:
      left = max(0, self._run.max_actor_steps - self._leased)
      granted = min(actor_steps, left)
      self._leased += granted
      return granted

  def report_episodes(
    self,
    label: str,
    rows: List[Dict[str, float]],
    actor_steps: Optional[int] = None,
  ) -> None:
    """Logs finished episodes of an actor or an evaluator.

    Args:
      label: `actor` or `evaluator`.
      rows: the metrics of each episode.
      actor_steps: the number of steps that the evaluated parameters had learned
        from; by default the number of steps counted so far.
    """
    returns = [row['episode_return'] for row in rows]
    with self._lock:
      counts = dict(self._counts)
      if actor_steps is not None:
        counts['actor_steps'] = actor_steps
      for row in rows:
        self._logger(label).write({**counts, **row})
      if label == 'actor':
        self._returns = (self._returns + returns)[-_RECENT:]
      elif returns:
        self._status['evaluator_return'] = float(np.mean(returns))

  def learner_ended(self, finished: bool) -> None:
    """Notes that the learner will make no more calls.

    Args:
      finished: whether it has saved and exported the end of the whole run.
    """
    if finished:
      with self._lock:
        self._advance_to(Phase.EVALUATORS_FINISH)
    self._learner_ended.set()

  def evaluator_done(self) -> None:
    """Notes that an evaluator has evaluated the final parameters."""
    with self._lock:
      self._evaluations_done += 1

  def run(self) -> None:
    """Shows progress until the run is over or told to stop."""
    progress = progress_lib.Progress(self._run.max_actor_steps)
    phase = Phase.STARTING
    while phase != Phase.DONE:
      if self._context.wait_for_stop(_POLL_SECONDS):
        break
      phase = self._advance()
      # Before the start, a resumed run's counts are not known yet.
      if phase != Phase.STARTING:
        progress.update(self._progress())
    progress.update(self._progress())
    progress.close()
    with self._lock:
      for logger in self._logs.values():
        logger.close()
    if phase != Phase.DONE:
      # The learner was told to stop as well. If this process ended now, the
      # learner's next call would wait for an answer instead of letting it save.
      self._learner_ended.wait(_LEARNER_ENDS_SECONDS)

  def _advance(self) -> Phase:
    """Moves on to the next phase if it is time, and returns the phase."""
    with self._lock:
      steps = self._counts.get('actor_steps', 0)
      if self._phase == Phase.RUNNING and steps >= self._run.max_actor_steps:
        self._advance_to(Phase.LEARNER_FINISHES)
      if (
        self._phase == Phase.EVALUATORS_FINISH
        and self._evaluations_done >= self._run.num_evaluators
      ):
        self._advance_to(Phase.DONE)
      return self._phase

  def _progress(self) -> Dict[str, float]:
    """Returns what the progress line shows."""
    with self._lock:
      progress = {**self._counts, **self._status}
      if self._returns:
        progress['episode_return'] = float(np.mean(self._returns))
      return progress

  # The lock is held by whoever calls the methods below.

  def _add(self, counts: Mapping[str, int]) -> None:
    for name, count in counts.items():
      self._counts[name] = self._counts.get(name, 0) + count

  def _advance_to(self, phase: Phase) -> None:
    self._phase = max(self._phase, phase)

  def _logger(self, label: str) -> metrics.MetricsLogger:
    if label not in self._logs:
      self._logs[label] = metrics.make_logger(self._run.workdir, label)
    return self._logs[label]
