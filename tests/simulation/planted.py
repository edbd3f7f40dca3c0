"""Planted bugs, which show whether the simulation finds bugs.

.venv/bin/python -m tests.simulation.planted
"""

import contextlib
import os
import pathlib
import random
from unittest import mock

from bt_acme import files
from bt_acme.acting import behavior_scores
from bt_acme.runtime import (
  actor_node,
  coordinator,
  evaluator_node,
  learner_node,
  metrics_logger,
  supervised_nodes,
  workdir_lock,
)
from tests.simulation import __main__ as simulation
from tests.simulation import session

# The replaced object and its attribute, and the broken function, which gets the
# real one and its arguments, by bug.
_BUGS = {}


def _bug(name, where, attribute):
  def register(broken):
    _BUGS[name] = where, attribute, broken
    return broken

  return register


_IS_LATEST = coordinator.Coordinator, '_is_latest'
for name, *where in (
  ('rows are counted before they are synced', metrics_logger, 'sync'),
  ('a checkpoint is renamed before it is synced', files, 'sync_tree'),
  ('the name of a checkpoint is not synced', files, 'sync_folder'),
  (
    'the scores of flights are not restored',
    *(behavior_scores.ScoreStore, 'restore'),
  ),
):
  _bug(name, *where)(lambda *args: None)
_bug('scores are exchanged twice', behavior_scores.GroupPriorities, 'take')(
  lambda real, self: list(self._new)
)
_bug('steps of an old attempt are counted', *_IS_LATEST)(lambda *args: True)


@_bug('a lease is returned twice', *_IS_LATEST)
def _(real, self, actor, attempt):
  if attempt > self._attempts.get(actor, attempt):
    self._leased -= self._left[actor]
  return real(self, actor, attempt)


@_bug('a lease is not returned', *_IS_LATEST)
def _(real, self, actor, attempt):
  leased = self._leased
  latest = real(self, actor, attempt)
  self._leased = leased
  return latest


_opened = []  # Until the bug is no longer planted.


@_bug('the lock of the workdir is not released', workdir_lock, 'held')
@contextlib.contextmanager
def _(real, workdir):
  path = pathlib.Path(workdir) / workdir_lock.FILE
  files.make_folder(path.parent)
  _opened.append(workdir_lock._take(path, workdir))
  yield


@_bug('log of the actors is not cut', metrics_logger.MetricsLogger, 'cut')
def _(real, self, counts):
  if self._folder.name != 'actor':
    real(self, counts)


@_bug('a part of a row stays on a full disk', os, 'truncate')
def _(real, path, size):
  if isinstance(path, str):  # The simulation itself, but no log.
    real(path, size)


@_bug('a restart is never forgotten', supervised_nodes.RestartBudget, 'acquire')
def _(real, self, now):
  with mock.patch.object(supervised_nodes, '_HOUR', float('inf')):
    return real(self, now)


@_bug(
  'a heartbeat of the previous attempt counts',
  *(supervised_nodes.NodeState, 'mark_started'),
)
def _(real, self, log):
  heard = self.heard
  real(self, log)
  self.heard = heard


@_bug(
  'an evaluation is removed before it is logged',
  *(evaluator_node.EvaluatorNode, '_evaluate'),
)
def _(real, self, point, learned):
  self._learner.evaluation_done(point)
  real(self, point, learned)


@_bug('a failed final save is ignored', learner_node.LearnerNode, '_finish')
def _(real, self, seconds):
  with contextlib.suppress(OSError):
    return real(self, seconds)
  return True


_bug(
  'a stopped learner reports that the run is over',
  *(learner_node.LearnerNode, '_end'),
)(lambda real, self, finished: real(self, True))


@_bug(
  'episodes are logged before they are scored',
  *(actor_node.ActorNode, '_report'),
)
def _(real, self):
  with mock.patch.object(self._agent, 'learns_priorities', False):
    real(self)
  self._pipeline.share_scores(self._learner.exchange_scores)


NAMES = tuple(_BUGS)
# Bugs that need a rare sequence of failures, often more than 20,000 of them.
RARE = ('a restart is never forgotten', 'a failed final save is ignored')


@contextlib.contextmanager
def planted(name):
  """Plants a bug within the block."""
  where, attribute, broken = _BUGS[name]
  real = getattr(where, attribute)
  try:
    with mock.patch.object(where, attribute, lambda *args: broken(real, *args)):
      yield
  finally:
    while _opened:
      _opened.pop().close()


def failures_until_found(name, most):
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


def main():
  for name in NAMES:
    found = failures_until_found(name, 10_000)
    print(f'| {name} | {"not found" if found is None else found} |', flush=True)


if __name__ == '__main__':
  main()
