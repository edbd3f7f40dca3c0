"""Restart budgets, and the seeds of restarted nodes."""

import pytest

pytest.importorskip('launchpad', reason='needs the full environment')

from bt_acme.runtime import restarts, seeds


def test_a_budget_limits_restarts_per_hour():
  now = [0.0]
  allowance = restarts.RestartBudget(2, clock=lambda: now[0])
  assert allowance.acquire()
  now[0] = 1800
  assert allowance.acquire()
  assert str(allowance) == 'restart 2 of 2 allowed per hour'
  assert not allowance.acquire()
  now[0] = 3601  # More than an hour after the first; refusals do not count.
  assert allowance.acquire() and not allowance.acquire()
  now[0] = 5401
  assert allowance.acquire()
  assert not restarts.RestartBudget(0).acquire()


def test_each_attempt_has_a_seed_of_its_own():
  drawn = {seeds.for_node(seed, i) for seed in range(20) for i in range(5)}
  assert len(drawn) == 100 and 0 <= min(drawn) <= max(drawn) < 2**32
  # A node's second attempt and a run's second session use different seeds.
  assert len({f(7, 1) for f in (seeds.for_node, seeds.for_run)}) == 2
  # A first attempt uses the seed of the run.
  assert seeds.for_node(7, 0) == 7 and seeds.for_node(7, 1) != 7
