"""Tests every step of acting, from the environments to the learner's batch."""

import numpy as np
import pytest

from bt_acme import assembly, environments
from bt_acme.acting import vector_actor
from bt_acme.core import frame_stacking, types
from bt_acme.environments import vector
from bt_acme.replay import in_process as in_process_replay
from bt_acme.replay import sinks as sinks_lib
from tests.acting import runs
from tests.agents import fakes

pytestmark = pytest.mark.usefixtures('shared_functions')

# Agents, and combinations of behavior transfer and rewards.
KINDS = (
  *('r2d2', 'ngu', 'bt'),
  'bt:flights=False',
  'bt:extra_action=False,flight_recurrent_state=hold',
  'ngu:intrinsic_reward=constant',
  'ngu:intrinsic_reward=rnd,reward_observation=next',
)


def make_replay(agent):
  """Returns the sinks of a replay, and a function that samples from it."""
  config, shapes = agent.config.replay, agent.replay_shapes
  replay = in_process_replay.InProcessReplay(config, shapes, seed=0)
  sinks = [
    sinks_lib.SequenceSink(config, shapes, replay.write, lambda block: 1.0)
    for _ in range(runs.N)
  ]
  return sinks, lambda: (replay.sample(400).batch, replay.num_inserts)


# The tests of the replay compare this replay with Reverb.
@pytest.mark.parametrize('kind', KINDS)
def test_each_step_is_learned_from_unchanged(agents, kind):
  agent, variables = agents(kind)
  holds = kind.endswith('hold')
  sinks, sample = make_replay(agent)
  recorders = runs.recorders()
  actor, _ = runs.play(
    agent,
    range(runs.N),
    variables,
    sinks=[runs.Both(*x) for x in zip(recorders, sinks, strict=True)],
  )
  log, num_steps = {}, 0
  for i, recorder in enumerate(recorders):
    one = runs.Log(agent, variables, i)
    one.follow(
      [int(x.action) for x in recorder.transitions],
      [holds and x.source == types.FLIGHT for x in recorder.transitions],
    )
    log.update(one.steps)
    num_steps += len(recorder.transitions)
    if kind == 'ngu':
      # Only valid steps count, and statistics persist across episodes.
      assert actor.statistics().error_count[i] == len(recorder.transitions)
      for mine, theirs in zip(actor.statistics(), one.statistics, strict=True):
        np.testing.assert_allclose(mine[i], theirs[0], rtol=1e-4)
  batch, num_inserts = sample()
  seen = runs.assert_matches_log(batch, agent, log, runs.EPSILONS)
  # Steps of unfinished blocks and steps that were not sampled are missing.
  assert num_inserts > 20
  assert num_steps - runs.N * fakes.P - 10 < len(seen) <= num_steps
  kinds_seen = set(batch.source[batch.valid > 0].tolist())
  wanted = {types.OWN}
  if kind.startswith('bt'):
    transfer = agent.config.transfer
    wanted |= {types.EXTRA} if transfer.extra_action else set()
    wanted |= {types.FLIGHT} if transfer.flights else set()
  assert kinds_seen == wanted


@pytest.mark.parametrize('num_stacked', [4, 1])
def test_the_replay_preserves_stacked_frames_of_a_game(num_stacked):
  environment = environments.make(
    'montezuma_revenge', seed=0, num_stacked=num_stacked, max_frames=100
  )
  spec = assembly.spec_of(environment, 'montezuma_revenge')
  assert (spec.num_stacked, spec.frame_channels) == (num_stacked, 1)
  agent = assembly.Agent(fakes.make_config(), spec)
  assert agent.replay_shapes.frame == (84, 84, 1)
  variables = fakes.variables_of(agent)
  sinks, sample = make_replay(agent)
  recorder = runs.Recorder()
  actor = vector_actor.VectorActor(
    agent, epsilons=[0.5], seed=0, sinks=[runs.Both(recorder, sinks[0])]
  )
  actor.update_variables(variables)
  vectorized = vector.VectorEnvironment([environment])
  step = vectorized.reset()
  for _ in range(60):
    step = vectorized.step(actor.select_actions(step))
    actor.observe(step)
  assert len(recorder.ends) == 2
  batch, _ = sample()
  assert batch.frames.shape[-1] == 1
  stacks = np.asarray(frame_stacking.stack_frames(batch.frames, num_stacked))
  seen = {t.observation.tobytes() for t in recorder.transitions}
  found = {
    stacks[t, i].tobytes() for t, i in np.argwhere(np.asarray(batch.valid) > 0)
  }
  assert found <= seen and len(found) > 10
