"""Tests behavior transfer with unmodified dm-acme builders and real Reverb."""

import acme
import jax
import numpy as np
import reverb
from acme import wrappers
from acme.agents.jax import dqn, r2d2, td3
from acme.jax.layouts import local_layout
from acme.utils import loggers

from bt_acme import agents, behaviors, environments
from bt_acme.environments import gymnasium
from tests.agents.external import peers, scripted

_OFTEN = {'min_flight_probability': 0.5, 'max_flight_probability': 0.5}


def play_episode(environment, actor):
  loop = acme.EnvironmentLoop(environment, actor, logger=loggers.NoOpLogger())
  loop.run_episode()


def run(builder, networks, policy, environment, *, learns=True):
  """Runs a local Acme agent for 60 steps; if it learns, parameters change."""
  agent = local_layout.LocalLayout(
    0,
    builder.agent_spec,
    builder,
    networks,
    policy,
    workdir=None,
    min_replay_size=32 if learns else 1_000,
    batch_size=16,
    samples_per_insert=1.0,
  )
  environment = wrappers.StepLimitWrapper(environment, 60)
  before = jax.tree.leaves(agent.get_variables(['policy'])[0])
  before = [np.array(x) for x in before]
  play_episode(environment, agent)
  after = jax.tree.leaves(agent.get_variables(['policy'])[0])
  changed = any(np.any(x != y) for x, y in zip(before, after, strict=True))
  assert changed == learns
  return agent


def replayed(agent):
  client = reverb.Client(f'localhost:{agent._replay_server.port}')
  table = next(iter(client.server_info()))
  whole = {'emit_timesteps': False, 'unpack_as_table_signature': True}
  return [sample.data for sample in client.sample(table, 200, **whole)]


class Executed(wrappers.base.EnvironmentWrapper):
  """Records the actions that the environment receives."""

  def __init__(self, environment):
    super().__init__(environment)
    self.actions = []

  def step(self, action):
    self.action_spec().validate(np.asarray(action))
    self.actions.append(action)
    return super().step(action)


def test_dqn_on_minigrid():
  environment = Executed(environments.make('MiniGrid-Empty-5x5-v0', seed=0))
  num_actions = environment.action_spec().num_values
  builder = peers.build(
    peers.dqn_builder,
    acme.make_environment_spec(environment),
    [behaviors.FromCallable(lambda seed: lambda *_: 2, 'forward')],
    **_OFTEN,
  )
  networks = builder.make_networks(agents.scale_images(peers.dqn_networks))
  agent = run(builder, networks, dqn.behavior_policy(networks), environment)
  labels = np.array([transition.action for transition in replayed(agent)])
  assert (labels == num_actions).mean() > 0.5
  assert (labels <= num_actions).all()
  assert np.mean(np.array(environment.actions) == 2) > 0.5
  assert builder.agent_spec.actions.num_values == num_actions + 1


def make_r2d2(given, **config):
  """Returns an environment, a builder with R2D2 and its networks."""
  environment = Executed(
    wrappers.ObservationActionRewardWrapper(
      environments.make('MiniGrid-Empty-5x5-v0', seed=0)
    )
  )
  make_networks = agents.scale_images(peers.r2d2_networks)
  builder = peers.build(
    lambda spec: peers.r2d2_builder(make_networks(spec)),
    acme.make_environment_spec(environment),
    given,
    **config,
  )
  return environment, builder, builder.make_networks(make_networks)


def test_sequences_of_r2d2_are_marked():
  environment, builder, networks = make_r2d2(
    [behaviors.FromCallable(lambda seed: lambda *_: 3), behaviors.Uniform()],
    min_flight_probability=0.3,
    max_flight_probability=0.3,
  )
  policy = r2d2.make_behavior_policy(networks, peers.R2D2_CONFIG)
  # `learner_test` trains dm-acme's R2D2.
  agent = run(builder, networks, policy, environment, learns=False)
  num_actions = environment.action_spec().num_values
  seen = set()
  for sequence in replayed(agent):
    assert sequence.action.shape == (4,)
    assert sequence.observation.observation.dtype == np.uint8
    # The choices that the agent observes, and the executed actions, which are
    # part of the next observation.
    labels, executed = sequence.action[:-1], sequence.observation.action[1:]
    real = sequence.discount[:-1] > 0
    own = (labels < num_actions) & real
    np.testing.assert_array_equal(labels[own], executed[own])
    np.testing.assert_array_equal(executed[(labels == num_actions) & real], 3)
    assert (executed[real] < num_actions).all()
    seen |= set(labels[real].tolist())
  assert {num_actions, num_actions + 1} <= seen


def test_evaluators_of_r2d2_do_not_fly():
  environment, builder, networks = make_r2d2(
    [behaviors.ActionRepeat()], **scripted.ALWAYS_FLY
  )
  learner = builder.make_learner(jax.random.PRNGKey(0), networks, iter(()))
  policy = r2d2.make_behavior_policy(
    networks, peers.R2D2_CONFIG, evaluation=True
  )
  shares = []
  for chosen in (policy, builder.make_evaluation_policy(policy)):
    actor = builder.make_actor(
      jax.random.PRNGKey(1), chosen, variable_source=learner
    )
    play_episode(wrappers.StepLimitWrapper(environment, 5), actor)
    shares.append(actor.metrics()['flight_share'])
  assert shares == [1, 0]


def test_td3_learns_from_flights_of_vectors():
  environment = Executed(
    gymnasium.Gymnasium('MountainCarContinuous-v0', seed=0)
  )
  spec = acme.make_environment_spec(environment)
  builder = peers.build(
    peers.td3_builder(),
    spec,
    [behaviors.FromCallable(lambda seed: lambda *_: [0.625])],
    extra_action=False,
    **_OFTEN,
  )
  networks = builder.make_networks(lambda spec: td3.make_networks(spec, (8, 8)))
  policy = td3.get_default_behavior_policy(networks, spec.actions, sigma=0.1)
  agent = run(builder, networks, policy, environment)
  executed = np.array(environment.actions)
  assert executed.shape == (60, 1)
  assert 0.3 < np.mean(executed == 0.625) < 1
  labels = np.array([transition.action for transition in replayed(agent)])
  assert 0.3 < np.mean(labels == 0.625) < 1
  assert np.isin(labels, executed).all()
