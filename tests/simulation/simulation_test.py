"""Whole runs with failures: simulated time, processes, disks and networks.

A failing test prints the command that repeats its history.
"""

import gc
import statistics
import sys

import pytest

from tests.simulation import __main__ as simulation
from tests.simulation import planted, session

# A killed launcher does not close its files.
pytestmark = [
  pytest.mark.filterwarnings('ignore::ResourceWarning'),
  pytest.mark.filterwarnings('ignore::pytest.PytestUnraisableExceptionWarning'),
]
_FAILURES, _START = 10_000, 5
_PLANTED_FAILURES = 20_000


@pytest.fixture(autouse=True, scope='module')
def collect_open_files():
  """Collects the open files here, where their warnings are ignored."""
  yield
  gc.collect()


def test_ten_thousand_failures():
  # `make simulate` draws other histories.
  history = simulation.play_many(_FAILURES, _START)
  assert history is None, simulation.report(history)


def test_a_seed_determines_everything():
  history = session.draw(5, 30)
  first, second = simulation.play(history), simulation.play(history)
  assert first.events == second.events and len(first.events) > 30
  assert first.error is second.error is None
  assert first.recoveries == second.recoveries
  assert first.num_faults == second.num_faults
  assert simulation.play(session.draw(6, 30)).events != first.events


def test_recovery_does_not_take_longer_with_each_failure():
  early, late = [], []
  for seed in range(3):
    # The run recovers from each failure before the next.
    history = session.draw(seed, 60)
    kinds = ('killed', 'fails', 'told to stop')
    faults = [
      f._replace(what=kinds[i % 3], after=1.0)
      for i, f in enumerate(history.faults)
    ]
    played = simulation.play(history._replace(faults=tuple(faults)))
    assert played.error is None, played.error
    third = len(played.recoveries) // 3
    early += played.recoveries[:third]
    late += played.recoveries[-third:]
  assert statistics.mean(late) < 1.5 * statistics.mean(early)


def test_a_failing_history_is_shrunk():
  with planted.planted('log of the actors is not cut'):
    history = next(
      history
      for history in (session.draw(seed, 20) for seed in range(1, 1000))
      if simulation.fails(history) is not None
    )
    text = simulation.report(history)
  assert '--faults=' in text and f'--seed={history.seed}' in text
  assert int(text.split(' of 20 failures suffice')[0].split()[-1]) <= 3


def test_a_command_repeats_a_history(monkeypatch, capsys):
  monkeypatch.setattr(sys, 'argv', ['simulation', '--seed=3', '--faults=1'])
  assert simulation.main() == 0
  assert 'All invariants hold.' in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize('name', sorted({*planted.NAMES} - {*planted.RARE}))
def test_a_planted_bug_is_found(name):
  found = planted.failures_until_found(name, _PLANTED_FAILURES)
  assert found is not None
  print(f'{name}: after {found} failures')
