"""Tests that actors and learner agree on priorities with equal networks."""

import jax
import numpy as np
import pytest

from bt_acme.core import burn_in, frame_stacking, types
from bt_acme.core import loss as loss_lib
from bt_acme.replay import blocks, decoder, sinks
from tests.acting import runs
from tests.agents import fakes

pytestmark = pytest.mark.usefixtures('shared_functions')

UNKNOWN = 7.0  # The priority of a sequence without any known error.


class Recorder:
  """A writer that records sequences, their priorities and their ends."""

  def __init__(self):
    self.sequences, self.priorities, self.ends = [], [], []

  def write(self, block, priority):
    if not block.sequence:
      return
    self.sequences.append(block.sequence_data())
    self.priorities.append(priority)
    # 'truncated', or the discount of the last transition.
    discount = block.steps['discount'][-1]
    is_truncated = block.next_q_values is None and discount != 0
    self.ends.append('truncated' if is_truncated else f'{discount:.0f}')


def make_sink(agent, recorder):
  """Creates the sink of one environment, with the actor's priorities."""
  return sinks.make_sink(
    agent.config,
    agent.replay_shapes,
    recorder.write,
    num_actions=agent.spec.num_actions,
    largest_priority=lambda: UNKNOWN,
  )


def decoded(agent, recorders):
  """Returns all recorded sequences as one batch, with priorities and ends."""
  config, shapes = agent.config.replay, agent.replay_shapes
  sequences = [s for recorder in recorders for s in recorder.sequences]
  batch = blocks.empty_batch(config, shapes, len(sequences))
  sequence_decoder = decoder.SequenceDecoder(config, shapes)
  for index, sequence in enumerate(sequences):
    sequence_decoder.decode_into(*sequence, batch=batch, index=index)
  return (
    batch,
    np.array([p for recorder in recorders for p in recorder.priorities]),
    np.array([end for recorder in recorders for end in recorder.ends]),
  )


def learners_priorities(agent, variables, batch):
  """Computes priorities with the actor's network as online and target."""
  (_, (priorities, _)) = jax.jit(
    lambda params, batch, observations, probabilities: loss_lib.q_network_loss(
      params,
      params,
      batch,
      observations,
      probabilities,
      network=agent.network,
      learner=agent.config.learner,
      replay=agent.config.replay,
      hold_flights=agent.transfer is not None
      and agent.transfer.flight_recurrent_state == 'hold',
    )
  )(
    variables.agent,
    batch,
    frame_stacking.stack_frames(batch.frames, fakes.STACKED),
    np.ones(batch.valid.shape[1], np.float32),
  )
  return np.asarray(priorities)


def assert_priorities_are_the_learners(agent, variables, recorders):
  """Compares all priorities; returns the batch and the ends of sequences."""
  batch, priorities, ends = decoded(agent, recorders)
  # The values after the last step of a truncated episode are unknown.
  valid = batch.valid.copy()
  lengths = valid.sum(axis=0).astype(int)
  for index in np.flatnonzero(ends == 'truncated'):
    valid[lengths[index] - 1, index] = 0
  trained = burn_in.trained_steps(
    batch, burn_in_length=agent.config.replay.burn_in_length
  )
  unknown = (ends == 'truncated') & (np.sum(trained, axis=0) == 1)
  assert unknown.any() == ('truncated' in ends)
  assert (priorities[unknown] == UNKNOWN).all()
  expected = learners_priorities(agent, variables, batch._replace(valid=valid))
  np.testing.assert_allclose(
    priorities[~unknown], expected[~unknown], rtol=2e-4, atol=1e-6
  )
  assert len(set(priorities.tolist())) > 0.5 * len(priorities)
  return batch, ends


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
  recorders = [Recorder() for _ in range(runs.N)]
  runs.play(
    agent,
    range(runs.N),
    [variables] * 2,
    sinks=[make_sink(agent, recorder) for recorder in recorders],
  )
  batch, ends = assert_priorities_are_the_learners(agent, variables, recorders)
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
