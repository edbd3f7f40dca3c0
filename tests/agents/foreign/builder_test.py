"""Behavior transfer around builders of dm-acme, unchanged, with real Reverb."""

import bt_acme  # noqa: F401  (before Acme: it makes the versions agree)

# isort: split
import acme
import dm_env
import haiku as hk
import jax
import numpy as np
import pytest
import reverb
from acme import specs, wrappers
from acme.agents.jax import dqn, r2d2, td3
from acme.jax import networks as networks_lib
from acme.jax import utils
from acme.jax.layouts import local_layout

from bt_acme import (
  agents,
  assembly,
  behaviors,
  environments,
  learner_assembly,
)
from bt_acme import config as config_lib
from bt_acme.agents.foreign import builder as foreign
from bt_acme.core import types
from bt_acme.core.intrinsic import host
from bt_acme.environments import gymnasium
from tests.agents import fakes

NUM_ACTIONS = 3
ALWAYS_FLY = {'min_flight_probability': 1.0, 'max_flight_probability': 1.0}


@pytest.fixture(autouse=True)
def _home(tmp_path, monkeypatch):
  """Acme's default loggers write into the home folder."""
  monkeypatch.setenv('HOME', str(tmp_path))


def discrete_spec(num_actions=NUM_ACTIONS):
  return specs.EnvironmentSpec(
    observations=specs.Array((2,), np.float32),
    actions=specs.DiscreteArray(num_actions, dtype=np.int32),
    rewards=specs.Array((), np.float32),
    discounts=specs.BoundedArray((), np.float32, 0, 1),
  )


def vector_spec():
  return discrete_spec()._replace(
    actions=specs.BoundedArray((2,), np.float32, -1, [1, 2])
  )


class ScriptedActor(acme.Actor):
  """Plays given choices, and keeps what it is told."""

  def __init__(self, choices):
    self.choices = list(choices)
    self.told = []
    self.updates = 0

  def select_action(self, observation):
    return self.choices.pop(0)

  def observe_first(self, timestep):
    self.told.append(None)

  def observe(self, action, next_timestep):
    self.told.append(action)

  def update(self, wait=False):
    self.updates += 1


class Recorder:
  """Makes a policy that plays given actions, and keeps what it sees."""

  def __init__(self, actions):
    self.actions = list(actions)
    self.seen = []

  def __call__(self, seed):
    return self._act

  def _act(self, observation, prev_action, is_first):
    self.seen.append((observation.tolist(), np.copy(prev_action), is_first))
    return self.actions[(len(self.seen) - 1) % len(self.actions)]


def make_actor(choices, policies, spec, weights=(), evaluation=False, **config):
  inner = ScriptedActor(choices)
  actor = foreign.BTActor(
    inner,
    [behaviors.FromCallable(policy, name='policy') for policy in policies],
    config_lib.TransferConfig(**config),
    environment_spec=spec,
    random_key=jax.random.PRNGKey(0),
    behavior_weights=weights,
    evaluation=evaluation,
  )
  return actor, inner


def play(actor, num_steps, first=True):
  """Executed actions; step t shows the observation (t, t)."""
  executed = []
  observation = np.zeros(2, np.float32)
  if first:
    actor.observe_first(dm_env.restart(observation))
  for t in range(num_steps):
    executed.append(actor.select_action(observation))
    observation = np.full(2, t + 1, np.float32)
    actor.observe(executed[-1], dm_env.transition(0.0, observation))
    actor.update()
  return np.array(executed)


def int32s(*values):
  return np.array(values, np.int32)


def test_without_flight_or_delegation_it_is_the_agent():
  choices = int32s(0, 2, 1, 1, 0)
  actor, inner = make_actor(
    choices, [Recorder([0])], discrete_spec(), flights=False
  )
  executed = play(actor, 5)
  np.testing.assert_array_equal(executed, choices)
  assert executed.dtype == np.int32
  np.testing.assert_array_equal(inner.told[1:], choices)
  assert inner.updates == 5
  assert actor.metrics()['behavior_share'] == 0


def test_extra_action_is_executed_by_its_behavior_and_told_as_a_choice():
  choices = int32s(3, 0, 4, 4, 3)  # Behaviors 0, -, 1, 1, 0.
  policies = [Recorder([0, 1, 2]), Recorder([2, 2, 1])]
  actor, inner = make_actor(choices, policies, discrete_spec(), flights=False)
  executed = play(actor, 5)
  np.testing.assert_array_equal(executed, [0, 0, 1, 2, 1])
  np.testing.assert_array_equal(inner.told[1:], choices)
  assert all(told.dtype == np.int32 for told in inner.told[1:])
  assert actor.metrics()['behavior_share'] == pytest.approx(4 / 5)
  # Both see every step, with what was executed.
  for policy in policies:
    observations, actions, is_first = zip(*policy.seen, strict=True)
    np.testing.assert_array_equal(observations, [[t, t] for t in range(5)])
    np.testing.assert_array_equal(actions, [types.NO_ACTION, 0, 0, 1, 2])
    assert is_first == (True, False, False, False, False)


@pytest.mark.parametrize('extra_action', (True, False))
def test_flights_execute_the_behavior(extra_action):
  actor, inner = make_actor(
    int32s(0, 0, 0, 0),
    [Recorder([2, 1])],
    discrete_spec(),
    extra_action=extra_action,
    **ALWAYS_FLY,
  )
  np.testing.assert_array_equal(play(actor, 4), [2, 1, 2, 1])
  expected = [NUM_ACTIONS] * 4 if extra_action else [2, 1, 2, 1]
  np.testing.assert_array_equal(inner.told[1:], expected)
  assert actor.metrics()['flight_share'] == 1
  assert actor.metrics()['flights'] >= 1


def test_flights_draw_behaviors_by_their_weights():
  policies = [Recorder([1]), Recorder([2])]
  actor, inner = make_actor(
    int32s(*[0] * 20), policies, discrete_spec(), weights=(0, 1), **ALWAYS_FLY
  )
  np.testing.assert_array_equal(play(actor, 20), [2] * 20)
  np.testing.assert_array_equal(inner.told[1:], [NUM_ACTIONS + 1] * 20)


def test_evaluation_leaves_flights_out_and_keeps_the_extra_action():
  actor, _ = make_actor(
    int32s(0, 3, 1), [Recorder([2])], discrete_spec(), evaluation=True,
    **ALWAYS_FLY
  )  # fmt: skip
  np.testing.assert_array_equal(play(actor, 3), [0, 2, 1])


def test_each_episode_starts_anew():
  policy = Recorder([1])
  actor, inner = make_actor(
    int32s(0, 0, 0, 3), [policy], discrete_spec(), flights=False
  )
  play(actor, 3)
  play(actor, 1)
  assert [is_first for *_, is_first in policy.seen] == [
    True,
    False,
    False,
    True,
  ]
  assert policy.seen[3][1] == types.NO_ACTION
  starts = [told is None for told in inner.told]
  assert starts == [True, False, False, False, True, False]
  assert actor.metrics()['behavior_share'] == 1  # Of the second episode.


def test_a_flight_of_vectors():
  chosen = np.zeros((4, 2), np.float32)
  actions = [[1.0, 2.0], [-1, 0]]  # Lists and integers will do.
  policy = Recorder(actions)
  actor, inner = make_actor(
    chosen, [policy], vector_spec(), extra_action=False, **ALWAYS_FLY
  )
  executed = play(actor, 4)
  assert executed.dtype == np.float32
  np.testing.assert_array_equal(executed, actions * 2)
  np.testing.assert_array_equal(inner.told[1:], actions * 2)
  np.testing.assert_array_equal(
    [prev_action for _, prev_action, _ in policy.seen], [[0, 0], *executed[:3]]
  )


def test_vectors_without_a_flight_are_the_agents():
  chosen = np.random.default_rng(0).uniform(-1, 1, (4, 2)).astype(np.float32)
  actor, inner = make_actor(
    chosen, [Recorder([[1, 1]])], vector_spec(), extra_action=False,
    evaluation=True, **ALWAYS_FLY
  )  # fmt: skip
  np.testing.assert_array_equal(play(actor, 4), chosen)
  np.testing.assert_array_equal(inner.told[1:], chosen)


@pytest.mark.parametrize(
  'action, error, message',
  (
    ([1.5, 0], ValueError, r'out of range.*\[-1'),
    ([0, float('nan')], ValueError, 'nan.*out of range'),
    ([0], TypeError, r'shape \(2,\)'),
    (0.5, TypeError, r'shape \(2,\)'),
    ([[0], [0, 1]], TypeError, r'shape \(2,\)'),
    (['a', 'b'], TypeError, 'float32'),
    (None, TypeError, 'None'),
  ),
)
def test_bad_vectors_name_behavior_and_step(action, error, message):
  actor, _ = make_actor(
    np.zeros((3, 2), np.float32), [Recorder([[0, 0], action])], vector_spec(),
    extra_action=False
  )  # fmt: skip
  with pytest.raises(error, match=message) as caught:
    play(actor, 3)
  assert "behavior 'policy'" in str(caught.value)
  assert 'actor step 1' in str(caught.value)


def test_behaviors_do_not_see_what_the_oar_wrapper_adds():
  policy = Recorder([1])
  actor, _ = make_actor(int32s(0), [policy], discrete_spec())
  observation = wrappers.observation_action_reward.OAR(
    np.ones(2, np.float32), np.int32(0), np.float32(0)
  )
  actor.observe_first(dm_env.restart(observation))
  actor.select_action(observation)
  assert policy.seen[0][0] == [1, 1]


def test_a_choice_beyond_the_behaviors_is_an_error():
  actor, _ = make_actor(int32s(5), [Recorder([0])], discrete_spec())
  with pytest.raises(ValueError, match='chose 5, of 4 choices'):
    play(actor, 1)


def structured_spec():
  shown = {'image': specs.Array((2,), np.float32)}
  return discrete_spec()._replace(observations=shown)


def change_observation(observation, action, is_first):
  del action, is_first
  for array in jax.tree.leaves(observation):
    array += 5
  return 0


def change_action(observation, action, is_first):
  del observation, is_first
  action += 5
  return action


@pytest.mark.parametrize(
  'spec, policy',
  (
    (discrete_spec(), change_observation),
    (structured_spec(), change_observation),
    (vector_spec(), change_observation),
    (vector_spec(), change_action),
  ),
)
def test_a_policy_cannot_change_what_it_is_given(spec, policy):
  discrete = isinstance(spec.actions, specs.DiscreteArray)
  actor, _ = make_actor(
    int32s(0) if discrete else np.zeros((1, 2), np.float32),
    [lambda seed: policy],
    spec,
    extra_action=discrete,
  )
  observation = np.zeros(2, np.float32)
  if isinstance(spec.observations, dict):
    observation = {'image': observation}
  actor.observe_first(dm_env.restart(observation))
  with pytest.raises(RuntimeError, match='raised ValueError: .*read-only') as e:
    actor.select_action(observation)
  assert "behavior 'policy'" in str(e.value)
  assert 'at actor step 0 of environment 0' in str(e.value)


def test_a_jitted_behavior_acts_in_range():
  actor = foreign.BTActor(
    ScriptedActor(int32s(0)),
    [behaviors.Uniform(), fakes.Proposing(9)],
    config_lib.TransferConfig(),
    environment_spec=discrete_spec(),
    random_key=jax.random.PRNGKey(0),
  )
  with pytest.raises(ValueError, match="'mine' returned 9 at actor step 0 of"):
    play(actor, 1)


@pytest.mark.parametrize('choice', (int32s(1), np.float32(1), np.array(1.0)))
def test_a_choice_that_is_no_integer_is_an_error(choice):
  actor, _ = make_actor([choice], [Recorder([0])], discrete_spec())
  with pytest.raises(TypeError, match='chose .* takes one integer: give a pol'):
    play(actor, 1)


# Builders.


def dqn_config():
  return dqn.DQNConfig(
    batch_size=4,
    n_step=1,
    min_replay_size=1,
    samples_per_insert_tolerance_rate=float('inf'),
    epsilon=0.5,
  )


def dqn_builder(spec):
  del spec
  return dqn.DQNBuilder(dqn_config(), dqn.PrioritizedDoubleQLearning())


def dqn_networks(spec):
  network = hk.without_apply_rng(
    hk.transform(
      lambda x: hk.nets.MLP([8, spec.actions.num_values])(hk.Flatten()(x))
    )
  )
  dummy = utils.add_batch_dim(utils.zeros_like(spec.observations))
  return networks_lib.FeedForwardNetwork(
    lambda key: network.init(key, dummy), network.apply
  )


class _Recurrent(hk.RNNCore):
  """A small recurrent Q-network on Acme's OAR observations."""

  def __init__(self, num_values):
    super().__init__(name='recurrent')
    self._torso = hk.nets.MLP([8], activate_final=True)
    self._lstm = hk.LSTM(8)
    self._head = hk.Linear(num_values)

  def __call__(self, inputs, state):
    hidden, state = self._lstm(
      self._torso(hk.Flatten()(inputs.observation)), state
    )
    return self._head(hidden), state

  def initial_state(self, batch_size):
    return self._lstm.initial_state(batch_size)

  def unroll(self, inputs, state):
    return hk.static_unroll(self, inputs, state)


def r2d2_networks(spec):
  def network():
    return _Recurrent(spec.actions.num_values)

  return r2d2.make_networks(
    spec,
    forward_fn=lambda x, state: network()(x, state),
    initial_state_fn=lambda batch_size=None: network().initial_state(
      batch_size
    ),
    unroll_fn=lambda x, state: network().unroll(x, state),
    batch_size=2,
  )


R2D2_CONFIG = r2d2.R2D2Config(
  burn_in_length=0,
  trace_length=3,
  sequence_period=4,
  batch_size=2,
  samples_per_insert=0.0,
  min_replay_size=1,
)


def td3_config():
  return td3.TD3Config(
    batch_size=4,
    min_replay_size=1,
    samples_per_insert_tolerance_rate=float('inf'),
  )


def run(builder, networks, policy, environment, num_steps):
  """Runs a local agent of Acme: its actor, what replay holds, its learner."""
  agent = local_layout.LocalLayout(
    0,
    builder.agent_spec,
    builder,
    networks,
    policy,
    workdir=None,
    min_replay_size=32,
    batch_size=16,
    samples_per_insert=1.0,
  )
  environment = wrappers.StepLimitWrapper(environment, num_steps)
  before = jax.tree.leaves(agent.get_variables(['policy'])[0])
  before = [np.array(x) for x in before]
  acme.EnvironmentLoop(environment, agent).run(num_episodes=1)
  after = jax.tree.leaves(agent.get_variables(['policy'])[0])
  assert any(np.any(x != y) for x, y in zip(before, after, strict=True))
  return agent


def replayed(agent, num_samples=200):
  port = agent._replay_server.port
  client = reverb.Client(f'localhost:{port}')
  table = next(iter(client.server_info()))
  return [
    sample.data
    for sample in client.sample(
      table, num_samples, emit_timesteps=False, unpack_as_table_signature=True
    )
  ]


class Executed(wrappers.base.EnvironmentWrapper):
  """Keeps the actions that the environment receives."""

  def __init__(self, environment):
    super().__init__(environment)
    self.actions = []

  def step(self, action):
    self.action_spec().validate(np.asarray(action))
    self.actions.append(action)
    return super().step(action)


@pytest.mark.parametrize('extra_action', (True, False))
def test_dqn_on_minigrid(extra_action):
  environment = Executed(environments.make('MiniGrid-Empty-5x5-v0', seed=0))
  num_actions = environment.action_spec().num_values
  builder = agents.BTBuilder(
    dqn_builder if extra_action else dqn_builder(None),
    [behaviors.FromCallable(lambda seed: lambda *_: 2, 'forward')],
    config_lib.TransferConfig(
      extra_action=extra_action,
      max_flight_probability=0.5,
      min_flight_probability=0.5,
    ),  # fmt: skip
    environment_spec=acme.make_environment_spec(environment),
  )
  networks = builder.make_networks(agents.scale_images(dqn_networks))
  agent = run(builder, networks, dqn.behavior_policy(networks), environment, 60)
  labels = np.array([transition.action for transition in replayed(agent)])
  forward = num_actions if extra_action else 2
  assert (labels == forward).mean() > 0.5
  assert (labels < builder.agent_spec.actions.num_values).all()
  assert np.mean(np.array(environment.actions) == 2) > 0.5
  assert builder.agent_spec.actions.num_values == num_actions + extra_action


def test_r2d2_on_atari_marks_sequences():
  environment = Executed(
    wrappers.ObservationActionRewardWrapper(
      environments.make('breakout', seed=0)
    )
  )
  make_networks = agents.scale_images(r2d2_networks)
  builder = agents.BTBuilder(
    lambda spec: r2d2.R2D2Builder(make_networks(spec), R2D2_CONFIG),
    [behaviors.FromCallable(lambda seed: lambda *_: 3), behaviors.Uniform()],
    config_lib.TransferConfig(
      max_flight_probability=0.3, min_flight_probability=0.3
    ),
    environment_spec=acme.make_environment_spec(environment),
  )
  networks = builder.make_networks(make_networks)
  policy = r2d2.make_behavior_policy(networks, R2D2_CONFIG)
  agent = run(builder, networks, policy, environment, 60)
  num_actions = environment.action_spec().num_values
  seen = set()
  for sequence in replayed(agent):
    assert sequence.action.shape == (4,)
    assert sequence.observation.observation.dtype == np.uint8
    # What the agent is told at a step, and what it sees executed at the next.
    told, executed = sequence.action[:-1], sequence.observation.action[1:]
    real = sequence.discount[:-1] > 0
    own = (told < num_actions) & real
    np.testing.assert_array_equal(told[own], executed[own])
    np.testing.assert_array_equal(executed[(told == num_actions) & real], 3)
    assert (executed[real] < num_actions).all()
    seen |= set(told[real].tolist())
  assert {num_actions, num_actions + 1} <= seen


def test_evaluators_of_r2d2_do_not_fly():
  environment = wrappers.ObservationActionRewardWrapper(
    environments.make('MiniGrid-Empty-5x5-v0', seed=0)
  )
  make_networks = agents.scale_images(r2d2_networks)
  builder = agents.BTBuilder(
    lambda spec: r2d2.R2D2Builder(make_networks(spec), R2D2_CONFIG),
    [behaviors.ActionRepeat()],
    config_lib.TransferConfig(**ALWAYS_FLY),
    environment_spec=acme.make_environment_spec(environment),
  )
  networks = builder.make_networks(make_networks)
  learner = builder.make_learner(jax.random.PRNGKey(0), networks, iter(()))
  policy = r2d2.make_behavior_policy(networks, R2D2_CONFIG, evaluation=True)
  shares = []
  for chosen in (policy, builder.make_evaluation_policy(policy)):
    actor = builder.make_actor(
      jax.random.PRNGKey(1), chosen, variable_source=learner
    )
    loop = acme.EnvironmentLoop(
      wrappers.StepLimitWrapper(environment, 5), actor
    )
    loop.run(num_episodes=1)
    shares.append(actor.metrics()['flight_share'])
  assert shares == [1, 0]


def test_td3_learns_from_flights_of_vectors():
  environment = Executed(
    gymnasium.Gymnasium('MountainCarContinuous-v0', seed=0)
  )
  spec = acme.make_environment_spec(environment)
  builder = agents.BTBuilder(
    td3.TD3Builder(td3_config()),
    [behaviors.FromCallable(lambda seed: lambda *_: [0.625])],
    config_lib.TransferConfig(
      extra_action=False, min_flight_probability=0.5, max_flight_probability=0.5
    ),
    environment_spec=spec,
  )
  networks = builder.make_networks(lambda spec: td3.make_networks(spec, (8, 8)))
  policy = td3.get_default_behavior_policy(networks, spec.actions, sigma=0.1)
  agent = run(builder, networks, policy, environment, 60)
  executed = np.array(environment.actions)
  assert executed.shape == (60, 1)
  assert 0.3 < np.mean(executed == 0.625) < 1
  told = np.array([transition.action for transition in replayed(agent)])
  assert 0.3 < np.mean(told == 0.625) < 1
  assert np.isin(told, executed).all()


# What is refused when built.


def build(base=dqn_builder, spec=None, given=None, **config):
  return agents.BTBuilder(
    base,
    [behaviors.Uniform()] if given is None else given,
    config_lib.TransferConfig(**config),
    environment_spec=spec or discrete_spec(),
  )


def test_extra_action_of_a_continuous_agent_is_refused():
  with pytest.raises(ValueError, match=r'extra_action=False'):
    build(lambda spec: td3.TD3Builder(td3_config()), vector_spec())


def test_holding_the_state_of_an_agent_of_dm_acme_is_refused():
  with pytest.raises(ValueError, match="flight_recurrent_state='hold' needs"):
    build(flight_recurrent_state='hold')


def test_flights_by_the_epsilon_of_an_agent_of_dm_acme_are_refused():
  with pytest.raises(ValueError, match="flight_probability='epsilon' needs"):
    build(flight_probability='epsilon')


def test_extra_action_around_a_finished_builder_is_refused():
  with pytest.raises(ValueError, match='DQNBuilder is made already.*lambda'):
    build(dqn_builder(None))


@pytest.mark.parametrize(
  'base',
  (7, lambda spec: None, agents.BTBuilder),
  ids=('number', 'makes nothing', 'BTBuilder'),
)
def test_other_things_than_builders_are_refused(base):
  with pytest.raises((ValueError, TypeError)):
    build(base)


def test_what_is_no_behavior_is_refused():
  with pytest.raises(ValueError, match='FromCallable'):
    build(given=[lambda observation: 0])
  with pytest.raises(ValueError, match='nothing to transfer'):
    build(given=[])


def test_what_is_no_list_of_behaviors_is_refused():
  with pytest.raises(ValueError, match="single behavior 'uniform': put it"):
    build(given=behaviors.Uniform())
  builder = build(given=(behaviors.Uniform() for _ in range(2)))
  assert builder.agent_spec.actions.num_values == NUM_ACTIONS + 2


def test_settings_of_a_whole_agent_are_refused():
  with pytest.raises(ValueError, match='config is a BTConfig: give the Transf'):
    agents.BTBuilder(
      dqn_builder, [behaviors.Uniform()], config_lib.BTConfig(),
      environment_spec=discrete_spec(),
    )  # fmt: skip


def test_a_jitted_behavior_that_returns_no_integer_is_refused():
  with pytest.raises(TypeError, match="behavior 'mine' returns float32"):
    build(given=[fakes.Proposing(2.7)])


def test_discrete_behavior_of_a_continuous_agent_is_refused():
  with pytest.raises(ValueError, match="behavior 'uniform'.*FromCallable"):
    build(td3.TD3Builder(td3_config()), vector_spec(), extra_action=False)


def test_environment_spec_is_needed():
  with pytest.raises(ValueError, match='make_environment_spec'):
    agents.BTBuilder(dqn_builder, [behaviors.Uniform()])


def test_wrapping_twice_is_refused():
  with pytest.raises(ValueError, match='all behaviors at once'):
    build(build())


@pytest.mark.parametrize('factory', (dqn_networks, r2d2_networks))
def test_network_of_another_size_is_refused_with_both_shapes(factory):
  spec = discrete_spec()._replace(
    observations=wrappers.observation_action_reward.OAR(
      specs.Array((2,), np.float32),
      specs.DiscreteArray(NUM_ACTIONS),
      specs.Array((), np.float32),
    )
    if factory is r2d2_networks
    else specs.Array((2,), np.float32)
  )
  builder = build(spec=spec)
  builder.make_networks(factory)  # This one fits.
  with pytest.raises(ValueError, match=r'\(3,\).*\(4,\)'):
    builder.make_networks(lambda agent_spec: factory(spec))
  with pytest.raises(ValueError, match=r'\(3,\).*\(4,\)'):
    builder.make_learner(jax.random.PRNGKey(0), factory(spec), iter(()))


def exported(folder, observation_shape):
  """A small NGU policy, as pre-training exports it, with random parameters."""
  agent = assembly.Agent(
    config_lib.NGUConfig(
      network=config_lib.NetworkConfig(torso_size=8, lstm_size=8, head_size=8),
      intrinsic=config_lib.IntrinsicConfig(memory_capacity=50),
    ),
    assembly.EnvironmentSpec('task', observation_shape, 1, NUM_ACTIONS),
  )
  state = learner_assembly.make_learner_core(agent).init(jax.random.PRNGKey(0))
  variables = assembly.Variables(state.params, state.intrinsic_params)
  behaviors.export(
    str(folder),
    agent=agent,
    variables=jax.tree.map(np.array, variables),
    statistics=host.HostReward(agent.config.intrinsic, 1).statistics().merged(),
    actor_steps=1,
  )
  return behaviors.Exported(str(folder))


def test_an_exported_policy_around_a_black_box(tmp_path):
  behavior = exported(tmp_path / 'behavior', (7, 7, 3))
  before = jax.tree.map(np.copy, behavior.params())
  spec = discrete_spec()._replace(observations=specs.Array((7, 7, 3), np.uint8))
  inner = ScriptedActor(int32s(*[0] * 12))
  actor = foreign.BTActor(
    inner,
    [behavior],
    config_lib.TransferConfig(**ALWAYS_FLY),
    environment_spec=spec,
    random_key=jax.random.PRNGKey(0),
  )
  images = np.random.default_rng(0).integers(
    0, 256, (12, 7, 7, 3), dtype=np.uint8
  )
  actor.observe_first(dm_env.restart(images[0]))
  for image in images:
    assert actor.select_action(image) in range(NUM_ACTIONS)
    actor.observe(None, dm_env.transition(0.0, image))
  np.testing.assert_array_equal(inner.told[1:], [NUM_ACTIONS] * 12)
  jax.tree.map(np.testing.assert_array_equal, behavior.params(), before)


def test_an_exported_policy_needs_the_images_it_was_made_for(tmp_path):
  behavior = exported(tmp_path / 'behavior', (7, 7, 3))
  for shape, dtype, message in (
    ((8, 8, 3), np.uint8, r'\(7, 7, 3\).*\(8, 8, 3\)'),
    ((7, 7, 3), np.float32, 'scale_images'),
  ):
    spec = discrete_spec()._replace(observations=specs.Array(shape, dtype))
    with pytest.raises(ValueError, match=message):
      build(spec=spec, given=[behavior])
  with pytest.raises(
    ValueError, match=r"\(7, 7, 3\).* shows \{'image': \(2,\)"
  ):
    build(spec=structured_spec(), given=[behavior])
