"""Tests that actors and learner agree on priorities with equal networks."""

import pytest

from bt_acme.core import types
from tests.acting import new_sequences, runs
from tests.agents import fakes

pytestmark = pytest.mark.usefixtures('shared_functions')


@pytest.mark.parametrize(
  'kind, groups',
  [
    ('r2d2', {'replay': {'burn_in_length': 4, 'trace_length': 4}}),
    ('ngu:reward_observation=next', {}),
    ('bt', {'learner': {'loss': 'retrace', 'trace_decay': 0.95}}),
    ('bt:flight_recurrent_state=hold', {}),
    ('bt:extra_action=False', {'acting': {'bootstrap_truncations': False}}),
  ],
)
def test_a_new_sequence_has_the_same_priority_as_in_the_learner(
  agents, kind, groups
):
  agent, (variables, _) = agents(kind)
  agent = fakes.changed(agent, **groups)
  recorders = [
    new_sequences.Recorder(agent.config.replay) for _ in range(runs.N)
  ]
  runs.play(
    agent,
    range(runs.N),
    [variables] * 2,
    sinks=[new_sequences.make_sink(agent, recorder) for recorder in recorders],
  )
  batch, ends = new_sequences.assert_priorities_are_the_learners(
    agent, variables, recorders
  )
  # All kinds of sequences occurred.
  lengths = batch.valid.sum(axis=0)
  assert (lengths == fakes.T).sum() > 5 and (lengths < fakes.T).sum() > 5
  wanted = {'0', '1'}
  if agent.config.acting.bootstrap_truncations:
    wanted |= {'truncated'}
  assert set(ends) == wanted
  if kind == 'bt':
    assert {types.EXTRA, types.FLIGHT} < set(
      batch.source[batch.valid > 0].tolist()
    )
