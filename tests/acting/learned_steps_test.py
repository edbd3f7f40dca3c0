"""Tests every step of acting, through the replay to the learner's loss."""

import jax
import numpy as np
import pytest

from bt_acme import assembly, environments, learner_assembly
from bt_acme.acting import vector_actor
from bt_acme.core import frame_stacking, types
from bt_acme.environments import vector
from bt_acme.replay import in_process as in_process_replay
from bt_acme.replay import sequence_builder
from bt_acme.replay import sinks as adder
from tests.acting import runs
from tests.agents import fakes
from tests.reference import intrinsic as reference
from tests.reference import losses, returns
from tests.reference import network as network_reference

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
  replay = in_process_replay.InProcessReplay(
    agent.config.replay, agent.replay_shapes, seed=0
  )
  sinks = [
    adder.SequenceSink(
      sequence_builder.SequenceBuilder(
        agent.config.replay, agent.replay_shapes
      ),
      replay.writer().write,
    )
    for _ in range(runs.N)
  ]
  return sinks, lambda: (replay.sample(400).batch, replay.num_inserts)


def assert_learned_from(batch, agent, variables, log):
  """Compares a learner step on a batch with a float64 reference of the log."""
  config = agent.config
  columns = np.argsort(batch.valid.sum(axis=0), kind='stable')
  columns = np.concatenate([columns[:3], columns[-5:]])
  steps = runs.of_log(batch, log, columns, fakes.STACKED)
  real = steps.valid > 0

  core = learner_assembly.make_learner_core(agent)
  state = jax.tree.map(
    lambda x: np.zeros(x.shape, x.dtype),
    learner_assembly.state_shapes(agent, workdir=''),
  )._replace(
    params=variables[1].agent,
    target_params=variables[0].agent,
    intrinsic_params=variables[1].intrinsic,
    key=jax.random.key(0),
  )
  drawn = jax.tree.map(lambda x: x[:, columns], batch[:-1])
  drawn = types.SequenceBatch(
    *drawn, jax.tree.map(lambda x: x[columns], batch.recurrent_state)
  )
  _, priorities, metrics = jax.jit(core.step)(
    state, drawn, np.ones(len(columns), np.float32)
  )

  observations = np.concatenate(
    [steps.frames[i : i + fakes.T + 1] for i in range(fakes.STACKED)], axis=-1
  )
  scale = {'strides': (1, 2), 'divisor': 10.0}
  hold = np.zeros([fakes.T + 1, len(columns)], bool)
  if agent.transfer is not None:
    if agent.transfer.flight_recurrent_state == 'hold':
      hold[:-1] = steps.source == types.FLIGHT
  q_online, q_target = (
    np.stack(
      [
        network_reference.q_values(
          params,
          observations[:, i],
          steps.prev_action[:, i],
          steps.prev_reward[:, i],
          num_actions=fakes.ACTIONS,
          state=[x[i] for x in steps.recurrent_state],
          hold=hold[:, i],
          **scale,
        )
        for i in range(len(columns))
      ],
      axis=1,
    )
    for params in (variables[1].agent, variables[0].agent)
  )
  learner = config.learner
  common = {
    'trace_decay': learner.trace_decay,
    'epsilon': learner.value_rescaling_epsilon,
  }
  discount_t = learner.discount * steps.discount
  if learner.loss == 'retrace':
    targets = returns.retrace_targets(
      q_online,
      q_target,
      steps.choice,
      steps.probability,
      steps.reward,
      discount_t,
      steps.valid,
      target_policy_epsilon=learner.target_policy_epsilon,
      **common,
    )
  else:
    targets = returns.q_lambda_targets(
      q_online, q_target, steps.reward, discount_t, steps.valid, **common
    )
  loss, _, expected = losses.loss_gradient_priorities(
    q_online,
    targets,
    steps.choice,
    steps.action,
    steps.source,
    real,
    num_actions=fakes.ACTIONS,
    duplicate_flights=learner.duplicate_flights,
    max_weight=config.replay.max_priority_weight,
  )
  np.testing.assert_allclose(metrics['loss'], loss, rtol=1e-3)
  np.testing.assert_allclose(priorities, expected, rtol=1e-3, atol=1e-5)
  if 'inverse_dynamics_loss' in metrics:
    inverse, rnd, *_ = reference.sequence_losses(
      variables[1].intrinsic,
      observations,
      steps.action,
      steps.valid,
      frame_channels=1,
      num_steps=config.intrinsic.intrinsic_steps,
      **scale,
    )
    np.testing.assert_allclose(
      metrics['inverse_dynamics_loss'], inverse, rtol=1e-3
    )
    np.testing.assert_allclose(metrics['rnd_loss'], rnd, rtol=1e-3)


# The tests of the replay compare this replay with Reverb.
@pytest.mark.parametrize('kind', KINDS)
def test_each_step_is_learned_from_unchanged(agents, kind):
  """Follows every step from the environments to the learner's loss."""
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
  assert_learned_from(batch, agent, variables, log)
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
