"""Tests every step of acting, from the environments to the learner's batch."""

import numpy as np
import pytest

from bt_acme.core import types
from bt_acme.replay import in_process as in_process_replay
from bt_acme.replay import sequence_sinks
from tests.acting import runs
from tests.agents import fakes

pytestmark = pytest.mark.usefixtures('shared_functions')

# Agents, and combinations of behavior transfer and rewards.
KINDS = (
  *('r2d2', 'ngu', 'bt'),
  'bt:extra_action=False,flight_recurrent_state=hold',
  'ngu:intrinsic_reward=constant',
  'ngu:intrinsic_reward=rnd,reward_observation=next',
)


# The tests of the replay compare this replay with Reverb.
@pytest.mark.parametrize('kind', KINDS)
def test_each_step_is_learned_from_unchanged(agents, kind):
  agent, variables = agents(kind)
  holds = kind.endswith('hold')
  replay = in_process_replay.InProcessReplay(
    agent.config.replay, agent.replay_shapes, seed=0
  )
  recorders = [
    runs.Recorder(
      sequence_sinks.SequenceSink(
        agent.config,
        agent.replay_shapes,
        replay.write,
        num_actions=fakes.ACTIONS,
      )
    )
    for _ in range(runs.N)
  ]
  actor, _ = runs.play(agent, range(runs.N), variables, sinks=recorders)
  log, num_steps = {}, 0
  for i, recorder in enumerate(recorders):
    one = runs.Log(agent, variables, i)
    one.follow(
      [int(x.action) for x in recorder.transitions],
      [holds and x.source == types.FLIGHT for x in recorder.transitions],
    )
    for x in recorder.transitions:  # Priorities depend on these values.
      logged = one.steps[fakes.marks(x.observation[..., -1:])]['q_values']
      np.testing.assert_allclose(x.q_values, logged, rtol=1e-4, atol=1e-5)
    log.update(one.steps)
    num_steps += len(recorder.transitions)
    if kind == 'ngu':
      # Only valid steps count, and statistics persist across episodes.
      assert actor.statistics().error_count[i] == len(recorder.transitions)
      for mine, theirs in zip(actor.statistics(), one.statistics, strict=True):
        np.testing.assert_allclose(mine[i], theirs[0], rtol=1e-4)
  batch = replay.sample(400).batch
  seen = runs.assert_matches_log(batch, agent, log, runs.EPSILONS)
  # Steps of unfinished blocks and steps that were not sampled are missing.
  assert replay.num_inserts > 20
  assert num_steps - runs.N * fakes.P - 10 < len(seen) <= num_steps
  kinds_seen = set(batch.source[batch.valid > 0].tolist())
  wanted = {types.OWN}
  if kind.startswith('bt'):
    transfer = agent.config.transfer
    wanted |= {types.EXTRA} if transfer.extra_action else set()
    wanted |= {types.FLIGHT} if transfer.flights else set()
  assert kinds_seen == wanted
