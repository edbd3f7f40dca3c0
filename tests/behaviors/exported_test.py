"""Tests behaviors that act with an exported policy."""

import pathlib

import chex
import numpy as np
import pytest

from bt_acme import assembly, behaviors, environments
from bt_acme import config as config_lib
from bt_acme.core.intrinsic import features as features_lib
from bt_acme.core.intrinsic import host_reward
from tests.acting import runs
from tests.agents import fakes

pytestmark = pytest.mark.usefixtures('shared_functions')

N, TURNS = 3, 40


def play(agent, variables, *, games=None, epsilon=0.0, **settings):
  """Returns the actions and the episode metrics of an actor."""
  games = games or runs.marked(range(N))
  settings['epsilons'] = [epsilon] * len(games)
  player = runs.Player(agent, games, **settings)
  player.play(TURNS, variables)
  return np.array(player.actions), player.rows


def act(agent, variables, statistics):
  """Returns the actions of an evaluator with epsilon 0."""
  settings = {'seed': 1, 'evaluation': True, 'statistics': statistics}
  return play(agent, variables, **settings)[0]


def always_flying(*transferred, spec=fakes.SPEC):
  """Returns an agent for which every step is part of a flight."""
  transfer = config_lib.TransferConfig(
    min_flight_probability=1.0, max_flight_probability=1.0
  )
  config = fakes.make_config(config_lib.BTConfig, transfer=transfer)
  return assembly.Agent(config, spec, transferred)


def under_behavior(*transferred):
  """Returns the actions of an agent that always flies with the behaviors."""
  agent = always_flying(*transferred)
  variables = fakes.variables_of(agent, 8)
  actions, rows = play(agent, variables, epsilon=0.5, seed=2)
  assert rows and all(row['flight_share'] == 1 for row in rows)
  return actions


@pytest.mark.parametrize(
  'intrinsic',
  [
    {'intrinsic_reward': 'ngu', 'reward_observation': 'next'},
    {'intrinsic_reward': 'rnd', 'statistics_scope': 'episode'},
    {'intrinsic_reward': 'constant'},
  ],
)
def test_an_exported_policy_acts_like_its_agent(tmp_path, intrinsic):
  agent, variables, statistics = fakes.export_behavior(
    tmp_path / 'b', **intrinsic
  )
  behavior = behaviors.Exported(str(tmp_path / 'b'), epsilon=0.0)
  assert behavior.agent.config == agent.config
  assert behavior.agent.spec == agent.spec
  assert behavior.actor_steps == 100 and behavior.name == 'b'
  assert behavior.statistics == statistics
  chex.assert_trees_all_equal(behavior.variables, variables)
  expected = act(agent, variables, statistics)
  assert len(np.unique(expected)) > 1
  np.testing.assert_array_equal(under_behavior(behavior), expected)


@pytest.mark.parametrize('reward_input', ['recompute', 'zero'])
def test_a_policy_that_has_learned_a_task_receives_its_rewards(
  tmp_path, reward_input
):
  agent = fakes.make_agent('r2d2')
  variables, _ = fakes.export_agent(tmp_path / 'b', agent)
  settings = {'epsilon': 0.0, 'reward_input': reward_input}
  behavior = behaviors.Exported(str(tmp_path / 'b'), **settings)
  np.testing.assert_array_equal(
    under_behavior(behavior), act(agent, variables, None)
  )


@pytest.mark.parametrize('observation', ['current', 'next'])
def test_rewards_are_those_of_training_after_a_restart_too(
  tmp_path, observation
):
  agent, _, statistics = fakes.export_behavior(
    tmp_path / 'b', reward_observation=observation
  )
  behavior = behaviors.Exported(str(tmp_path / 'b'))
  host = behavior.make_host(3, range(N))
  reward = host_reward.HostReward(agent.config.intrinsic, N, statistics)
  rng = np.random.default_rng(0)
  nothing = np.zeros(N, bool)
  expected = np.zeros(N, np.float32)
  for t in range(40):
    if t == 15:
      state, host = host.state(), behavior.make_host(3, range(N))
      host.restore(state)
    is_first, is_last = (np.full(N, t % 10 == x) for x in (0, 9))
    fed = host.inputs(nothing, nothing, is_first, is_last)
    np.testing.assert_array_equal(fed, np.where(is_first, 0, expected))
    features = features_lib.Features(
      np.float32(rng.random([N, 8])), np.float32(rng.random(N))
    )
    host.update(features)
    if observation == 'next' or not is_last[0]:
      expected = reward.take(features, is_first, nothing)
  assert len(np.unique(expected)) == N


def test_a_relative_directory_has_its_name(exported, monkeypatch):
  monkeypatch.chdir(exported)
  name = pathlib.Path(exported).name
  assert behaviors.Exported('.').name == name
  assert behaviors.Exported(f'../{name}/').name == name


def test_zero_instead_of_the_intrinsic_reward(exported):
  behavior = behaviors.Exported(exported, epsilon=0.2)
  zero = behaviors.Exported(exported, epsilon=0.0, reward_input='zero')
  # The expected policy is the Q-network alone, with zeros as an input.
  constant = {'intrinsic_reward': 'constant', 'constant_reward': 0.0}
  plain = fakes.changed(behavior.agent, intrinsic=constant)
  agent_params = behavior.variables.agent
  expected = act(plain, assembly.Variables(agent_params, {}), None)
  assert set(zero.params()) == set(agent_params)
  # Other settings of a behavior share its parameters.
  other = behavior.acting(epsilon=0.0, reward_input='zero')
  assert other.variables is behavior.variables
  assert other.intrinsic() is None and behavior.intrinsic() is not None
  np.testing.assert_array_equal(under_behavior(zero, other), expected)


@pytest.mark.parametrize(
  'change, message',
  [
    ({'observation_shape': (7, 7, 2)}, r'\(5, 5, 2\) .* has \(7, 7, 2\)'),
    ({'num_actions': 4}, r'actions 3 \(in fake\).*has 4'),
  ],
)
def test_another_environment(exported, change, message):
  behavior = behaviors.Exported(exported)
  config = fakes.make_config(config_lib.BTConfig)
  with pytest.raises(ValueError, match=message):
    assembly.Agent(config, fakes.SPEC._replace(**change), (behavior,))


def test_a_behavior_exported_by_an_earlier_version_acts():
  """Reads a directory from before the modules were reorganized."""
  folder = pathlib.Path(__file__).parents[1] / 'data/run_of_0_1_0/behavior'
  behavior = behaviors.Exported(str(folder), epsilon=0.0)
  spec = behavior.agent.spec
  assert spec.name == 'MiniGrid-Empty-5x5-v0'
  assert behavior.actor_steps == 600
  assert behavior.statistics.error_count == 600
  agent = always_flying(behavior, spec=spec)

  def actions_of(agent, variables, statistics=None):
    games = environments.make_vector(spec.name, 2, seed=3)
    settings = {'games': games, 'seed': 1, 'statistics': statistics}
    return play(agent, variables, **settings)[0]

  flown = actions_of(agent, fakes.variables_of(agent))
  assert set(np.unique(flown)) <= set(range(spec.num_actions))
  # The behavior acts like the trained policy, with its intrinsic reward.
  np.testing.assert_array_equal(
    flown, actions_of(behavior.agent, behavior.variables, behavior.statistics)
  )
