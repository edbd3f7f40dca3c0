"""Planted bugs, which show whether the simulation finds bugs.

.venv/bin/python -m tests.simulation.planted
"""

import contextlib
import os
import pathlib
import random
from typing import Any, Callable, Dict, Iterator, List, Optional
from unittest import mock

from bt_acme import files
from bt_acme.acting import flight_priorities
from bt_acme.runtime import (
  actor_node,
  coordinator,
  evaluator_node,
  learner_node,
  metrics,
  node_state,
  workdir_lock,
)
from tests.simulation import __main__ as simulation
from tests.simulation import session

_Patch = Callable[[contextlib.ExitStack], None]
_BUGS: Dict[str, _Patch] = {}


def _bug(name: str) -> Callable[[_Patch], _Patch]:
  def register(patch: _Patch) -> _Patch:
    _BUGS[name] = patch
    return patch

  return register


def _replace(
  stack: contextlib.ExitStack, where: Any, name: str, value: Any
) -> None:
  stack.enter_context(mock.patch.object(where, name, value))


@_bug('a lease is returned twice')
def _(stack: contextlib.ExitStack) -> None:
  real = coordinator.Coordinator._is_latest

  def is_latest(self: Any, actor: int, attempt: int) -> bool:
    if attempt > self._attempts.get(actor, attempt):
      self._leased -= self._left[actor]
    return real(self, actor, attempt)

  _replace(stack, coordinator.Coordinator, '_is_latest', is_latest)


@_bug('a lease is not returned')
def _(stack: contextlib.ExitStack) -> None:
  real = coordinator.Coordinator._is_latest

  def is_latest(self: Any, actor: int, attempt: int) -> bool:
    leased = self._leased
    latest = real(self, actor, attempt)
    self._leased = leased
    return latest

  _replace(stack, coordinator.Coordinator, '_is_latest', is_latest)


@_bug('steps of an old attempt are counted')
def _(stack: contextlib.ExitStack) -> None:
  _replace(stack, coordinator.Coordinator, '_is_latest', lambda *args: True)


@_bug('the lock of the workdir is not released')
def _(stack: contextlib.ExitStack) -> None:
  opened: List[int] = []

  @contextlib.contextmanager
  def held(workdir: str) -> Iterator[None]:
    path = pathlib.Path(workdir) / workdir_lock.FILE
    files.make_folder(path.parent)
    opened.append(workdir_lock._take(path, workdir))
    yield

  stack.callback(lambda: [os.close(descriptor) for descriptor in opened])
  _replace(stack, workdir_lock, 'held', held)


@_bug('log of the actors is not cut')
def _(stack: contextlib.ExitStack) -> None:
  real = metrics.MetricsLogger.cut

  def cut(self: Any, counts: Any) -> None:
    if self._folder.name != 'actor':
      real(self, counts)

  _replace(stack, metrics.MetricsLogger, 'cut', cut)


@_bug('rows are counted before they are synced')
def _(stack: contextlib.ExitStack) -> None:
  _replace(stack, metrics, 'sync', lambda workdir, labels: None)


@_bug('a part of a row stays on a full disk')
def _(stack: contextlib.ExitStack) -> None:
  fake = mock.Mock(wraps=os)
  fake.truncate = lambda path, size: None
  _replace(stack, metrics, 'os', fake)


@_bug('a restart is never forgotten')
def _(stack: contextlib.ExitStack) -> None:
  real = node_state.RestartBudget.acquire

  def acquire(self: Any, now: float) -> bool:
    with mock.patch.object(node_state, '_HOUR', float('inf')):
      return real(self, now)

  _replace(stack, node_state.RestartBudget, 'acquire', acquire)


@_bug('a heartbeat of the previous attempt counts')
def _(stack: contextlib.ExitStack) -> None:
  real = node_state.NodeState.mark_started

  def mark_started(self: Any, log: Any) -> None:
    heard = self.heard
    real(self, log)
    self.heard = heard

  _replace(stack, node_state.NodeState, 'mark_started', mark_started)


@_bug('a checkpoint is renamed before it is synced')
def _(stack: contextlib.ExitStack) -> None:
  _replace(stack, files, 'sync_tree', lambda folder: None)


@_bug('the name of a checkpoint is not synced')
def _(stack: contextlib.ExitStack) -> None:
  _replace(stack, files, 'sync_folder', lambda folder: None)


@_bug('an evaluation is removed before it is logged')
def _(stack: contextlib.ExitStack) -> None:
  real = evaluator_node.EvaluatorNode._evaluate

  def evaluate(self: Any, point: int, learned: Any) -> None:
    self._learner.evaluation_done(point)
    real(self, point, learned)

  _replace(stack, evaluator_node.EvaluatorNode, '_evaluate', evaluate)


@_bug('a failed final save is ignored')
def _(stack: contextlib.ExitStack) -> None:
  real = learner_node.LearnerNode._finish

  def finish(self: Any, seconds: Optional[float]) -> None:
    with contextlib.suppress(OSError):
      real(self, seconds)

  _replace(stack, learner_node.LearnerNode, '_finish', finish)


@_bug('a stopped learner reports that the run is over')
def _(stack: contextlib.ExitStack) -> None:
  real = learner_node.LearnerNode._end
  _replace(
    stack,
    learner_node.LearnerNode,
    '_end',
    lambda self, finished: real(self, True),
  )


@_bug('the scores of flights are not restored')
def _(stack: contextlib.ExitStack) -> None:
  store = flight_priorities.ScoreStore
  _replace(stack, store, 'restore', lambda self, saved: None)


@_bug('episodes are logged before they are scored')
def _(stack: contextlib.ExitStack) -> None:
  real = actor_node.ActorNode._report

  def report(self: Any) -> None:
    with mock.patch.object(self._agent, 'learns_priorities', False):
      real(self)
    self._pipeline.share_scores(self._learner.exchange_scores)

  _replace(stack, actor_node.ActorNode, '_report', report)


@_bug('scores are exchanged twice')
def _(stack: contextlib.ExitStack) -> None:
  _replace(
    stack,
    flight_priorities.FlightPriorities,
    'take',
    lambda self: list(self._new),
  )


NAMES = tuple(_BUGS)
# Bugs that need a rare sequence of failures, often more than 20,000 of them.
RARE = (
  'a restart is never forgotten',
  'a failed final save is ignored',
)


@contextlib.contextmanager
def planted(name: str) -> Iterator[None]:
  """Plants a bug within the block."""
  with contextlib.ExitStack() as stack:
    _BUGS[name](stack)
    yield


def failures_until_found(name: str, most: int) -> Optional[int]:
  """Returns the number of failures until a bug is found; None if it is not."""
  generator = random.Random(name)
  done = 0
  with planted(name):
    while done < most:
      history = session.draw(generator.randrange(1 << 31), simulation.FAULTS)
      played = simulation.play(history)
      done += played.num_faults
      if played.error is not None:
        return done
  return None


def main() -> None:
  for name in NAMES:
    found = failures_until_found(name, 10_000)
    print(f'| {name} | {"not found" if found is None else found} |', flush=True)


if __name__ == '__main__':
  main()
