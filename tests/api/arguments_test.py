"""Tests how the Python API interprets its arguments, without any training."""

import pytest

import bt_acme
from bt_acme.api import runs


@pytest.fixture(name='started')
def record_started_runs(monkeypatch):
  """Returns a list to which each run that would start adds its agent."""
  started = []
  monkeypatch.setattr(
    runs.Run, 'start', lambda agent, run, **options: started.append(agent)
  )
  return started


@pytest.mark.parametrize(
  'given', ['action_repeat,uniform', ['action_repeat, uniform']]
)
def test_a_text_may_list_behaviors(given, started):
  bt_acme.transfer('Chain-5', given, max_actor_steps=5_000)
  (agent,) = started
  assert [each.name for each in agent.behaviors] == ['action_repeat', 'uniform']
