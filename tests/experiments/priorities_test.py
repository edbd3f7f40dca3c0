"""Tests of the simulation of initial priorities."""

import numpy as np

from experiments import priorities

_SHORT = {'num_inserts': 8000, 'max_replay_size': 2000, 'seed': 0}


def test_at_the_papers_rate_only_actor_priorities_have_an_effect():
  results = {
    kind: priorities.simulate(kind, samples_per_insert=0.4, **_SHORT)
    for kind in priorities.KINDS
  }
  for kind in ('one', 'largest'):
    priority_over_uniform, first_visit_share, _ = results[kind]
    assert priority_over_uniform < 1.15 and first_visit_share > 0.95
  priority_over_uniform, first_visit_share, _ = results['actor']
  assert priority_over_uniform > 2.5 and first_visit_share < 0.85


def test_the_logged_estimate_is_accurate():
  for kind in priorities.KINDS:
    for rate in (0.4, 4.0):
      priority_over_uniform, _, estimate = priorities.simulate(
        kind, samples_per_insert=rate, **_SHORT
      )
      np.testing.assert_allclose(estimate, priority_over_uniform, rtol=0.1)
