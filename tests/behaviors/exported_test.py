import hashlib
import json
import shutil

import jax
import numpy as np
import pytest

from bt_acme import assembly, behaviors
from bt_acme import config as config_lib
from bt_acme.acting import vector_actor
from bt_acme.core.intrinsic import features as features_lib
from bt_acme.core.intrinsic import host as host_reward
from bt_acme.environments import vector
from tests.agents import fakes

N, TURNS = 3, 40


def act(agent, variables, statistics, *, feed_first=0):
  """An evaluator's actions at epsilon 0, and its recurrent states."""
  environment = vector.VectorEnvironment(
    [fakes.MarkedEnvironment(i) for i in range(N)]
  )
  actor = vector_actor.VectorActor(
    agent, epsilons=[0.0] * N, seed=1, evaluation=True, statistics=statistics
  )
  actor.update_variables(variables)
  step, actions = environment.reset(), []
  for _ in range(TURNS):
    actions.append(actor.select_actions(step).copy())
    step = environment.step(actions[-1])
    actor.observe(step)
  return np.array(actions)


def under_behavior(behavior):
  """An agent whose every step is a flight of the behavior."""
  transfer = config_lib.TransferConfig(
    min_flight_probability=1.0, max_flight_probability=1.0
  )
  config = fakes.make_config(config_lib.BTConfig, transfer=transfer)
  agent = assembly.Agent(config, fakes.SPEC, (behavior,))
  environment = vector.VectorEnvironment(
    [fakes.MarkedEnvironment(i) for i in range(N)]
  )
  actor = vector_actor.VectorActor(agent, epsilons=[0.5] * N, seed=2)
  actor.update_variables(fakes.variables_of(agent, 8))
  step, actions = environment.reset(), []
  for _ in range(TURNS):
    actions.append(actor.select_actions(step).copy())
    step = environment.step(actions[-1])
    rows = actor.observe(step)
    assert all(row['flight_share'] == 1 for row in rows)
  return np.array(actions)


@pytest.mark.parametrize(
  'intrinsic',
  [
    {'intrinsic_reward': 'ngu'},
    {'intrinsic_reward': 'ngu', 'statistics_scope': 'episode'},
    {'intrinsic_reward': 'ngu', 'reward_observation': 'next'},
    {'intrinsic_reward': 'rnd'},
    {'intrinsic_reward': 'constant'},
  ],
)
def test_round_trip_acts_as_the_agent_did(tmp_path, intrinsic):
  agent, variables, statistics = fakes.export_behavior(
    tmp_path / 'b', **intrinsic
  )
  behavior = behaviors.Exported(str(tmp_path / 'b'), epsilon=0.0)
  assert behavior.agent.config == agent.config
  assert behavior.agent.spec == agent.spec
  assert behavior.actor_steps == 100 and behavior.name == 'b'
  assert behavior.statistics == statistics
  jax.tree.map(np.testing.assert_array_equal, behavior.variables, variables)
  expected = act(agent, variables, statistics)
  assert len(np.unique(expected)) > 1
  np.testing.assert_array_equal(under_behavior(behavior), expected)


@pytest.mark.parametrize('observation', ['current', 'next'])
def test_last_observations_count_as_they_did_in_training(tmp_path, observation):
  agent, _, statistics = fakes.export_behavior(
    tmp_path / 'b', reward_observation=observation
  )
  host = behaviors.Exported(str(tmp_path / 'b')).make_host(3, [0])
  reward = host_reward.HostReward(agent.config.intrinsic, 1, statistics)
  rng = np.random.default_rng(0)
  expected = np.zeros(1, np.float32)
  for t in range(30):
    is_first, is_last = (np.array([t % 5 == x]) for x in (0, 4))
    fed = host.feed(np.zeros([1, 5, 5, 2], np.uint8), [0], is_first, is_last)
    np.testing.assert_array_equal(fed, np.where(is_first, 0, expected))
    features = features_lib.Features(
      np.float32(rng.random([1, 8])), np.float32(rng.random(1))
    )
    host.digest(features)
    if observation == 'next' or not is_last[0]:
      expected = reward.step(features, is_first)


def test_zero_in_place_of_the_intrinsic_reward(tmp_path):
  agent, variables, _ = fakes.export_behavior(tmp_path / 'b')
  zero = behaviors.Exported(
    str(tmp_path / 'b'), epsilon=0.0, reward_input='zero'
  )
  # It is the Q-network alone, fed with zeros.
  constant = config_lib.IntrinsicConfig(
    **{
      **vars(agent.config.intrinsic),
      'intrinsic_reward': 'constant',
      'constant_reward': 0.0,
    }
  )
  plain = assembly.Agent(
    fakes.make_config(config_lib.NGUConfig, intrinsic=constant), fakes.SPEC
  )
  expected = act(plain, assembly.Variables(variables.agent, {}), None)
  np.testing.assert_array_equal(under_behavior(zero), expected)
  assert set(zero.params()) == set(variables.agent)


def test_an_r2d2_policy_can_be_exported_too(tmp_path):
  agent = fakes.make_agent('r2d2')
  variables = fakes.variables_of(agent)
  behaviors.export(
    str(tmp_path / 'b'),
    agent=agent,
    variables=variables,
    statistics=None,
    actor_steps=1,
  )
  behavior = behaviors.Exported(str(tmp_path / 'b'))
  assert behavior.statistics is None
  assert behavior.variables.intrinsic == {}
  jax.tree.map(
    np.testing.assert_array_equal, behavior.variables.agent, variables.agent
  )
  assert under_behavior(behavior).shape == (TURNS, N)


def test_export_replaces_what_was_there(tmp_path):
  for seed in (1, 2):
    _, variables, _ = fakes.export_behavior(tmp_path / 'b', seed=seed)
  jax.tree.map(
    np.testing.assert_array_equal,
    behaviors.Exported(str(tmp_path / 'b')).variables,
    variables,
  )
  assert [path.name for path in tmp_path.iterdir()] == ['b']


@pytest.fixture(name='whole', scope='module')
def export_once(tmp_path_factory):
  folder = tmp_path_factory.mktemp('behavior') / 'b'
  fakes.export_behavior(folder)
  return folder


def edit_card(folder, **changes):
  path = folder / 'behavior.json'
  path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def damage_card(folder):
  path = folder / 'behavior.json'
  path.write_text(path.read_text()[:-20])


def damage_params(folder):
  path = folder / 'params.npz'
  data = bytearray(path.read_bytes())
  data[len(data) // 2] ^= 1
  path.write_bytes(data)


def cut_params(folder):
  path = folder / 'params.npz'
  path.write_bytes(path.read_bytes()[:1000])


def edit_config(folder, group, **changes):
  config = json.loads((folder / 'behavior.json').read_text())['config']
  config[group].update(changes)
  edit_card(folder, config=config)


def edit_statistics(folder, **changes):
  path = folder / 'behavior.json'
  statistics = json.loads(path.read_text())['statistics']
  edit_card(folder, statistics={**statistics, **changes})


def become_r2d2(folder):
  config = json.loads((folder / 'behavior.json').read_text())['config']
  del config['intrinsic']
  edit_card(folder, agent='R2D2Config', config=config)


def drop_checksum(folder):
  path = folder / 'behavior.json'
  card = json.loads(path.read_text())
  del card['params_sha256']
  path.write_text(json.dumps(card))


def edit_params(folder, edit):
  """Changes what the file holds, (name, array) each; None drops it."""
  path = folder / 'params.npz'
  with np.load(path) as params:
    edited = {k: edit(k, v) for k, v in params.items()}
  np.savez(path, **{k: v for k, v in edited.items() if v is not None})
  checksum = hashlib.sha256(path.read_bytes()).hexdigest()
  edit_card(folder, params_sha256=checksum)


def without(part):
  return lambda f: edit_params(f, lambda k, v: None if part in k else v)


@pytest.mark.parametrize(
  'damage, message',
  [
    (lambda f: (f / 'params.npz').unlink(), 'has no params.npz'),
    (lambda f: (f / 'behavior.json').unlink(), 'has no behavior.json'),
    (damage_card, 'behavior.json is damaged'),
    (damage_params, 'params.npz is incomplete or damaged'),
    (cut_params, 'params.npz is incomplete or damaged'),
    (lambda f: edit_card(f, format=2), 'has format 2; this version reads 1'),
    (lambda f: edit_card(f, agent='DQN'), 'behavior.json is damaged'),
    (lambda f: edit_card(f, config={'x': 1}), 'no setting named'),
    (lambda f: edit_card(f, environment={}), 'behavior.json is damaged'),
    (lambda f: edit_card(f, environment=None), 'behavior.json is damaged'),
    (lambda f: edit_card(f, statistics=[3]), 'behavior.json is damaged'),
    (lambda f: edit_card(f, statistics={}), 'behavior.json is damaged'),
    (
      lambda f: edit_statistics(f, error_mean=[1, 2]),
      r'error_mean is \[1. 2.\], and must be a finite number',
    ),
    (
      lambda f: edit_statistics(f, error_mean=float('nan')),
      'error_mean is nan, and must be a finite number',
    ),
    (drop_checksum, "behavior.json is damaged .*'params_sha256'"),
    (become_r2d2, 'statistics of an agent without intrinsic reward'),
    (
      lambda f: edit_config(f, 'network', lstm_size=8),
      r'params.npz does not fit behavior.json: .*lstm/linear/w is \(36, 64\) '
      r'there and \(28, 32\) here.*: export it again',
    ),
    (
      lambda f: edit_config(f, 'intrinsic', embedding_size=4),
      r'intrinsic/embedding/.* is \(8,\) there and \(4,\) here',
    ),
    (without('lstm'), r'agent/lstm/linear/b is None there and \(64,\) here'),
    (without('intrinsic'), r'intrinsic/.* is None there and .*; and \d+ more'),
    (without('agent'), 'agent/head/.* is None there'),
    (
      lambda f: edit_params(f, lambda k, v: v.astype(np.float64)),
      'is float64 there and float32 here',
    ),
    (
      lambda f: edit_params(f, lambda k, v: np.full_like(v, np.inf)),
      'params.npz holds values that are not finite',
    ),
  ],
)
def test_a_broken_folder_is_one_clear_error(whole, tmp_path, damage, message):
  folder = shutil.copytree(whole, tmp_path / 'b')
  damage(folder)
  with pytest.raises(ValueError, match=message) as info:
    behaviors.Exported(str(folder), setting='init_from')
  assert f'init_from={str(folder)!r}' in str(info.value)


def test_a_missing_folder(tmp_path):
  with pytest.raises(ValueError, match="behavior='.*/b' has no behavior.json"):
    behaviors.Exported(str(tmp_path / 'b'))


@pytest.mark.parametrize(
  'change, message',
  [
    (
      {'observation_shape': (7, 7, 2)},
      r'\(5, 5, 2\) .* has \(7, 7, 2\)',
    ),
    ({'num_actions': 4}, r'actions 3 \(in fake\).*has 4'),
  ],
)
def test_another_environment(whole, change, message):
  behavior = behaviors.Exported(str(whole))
  config = fakes.make_config(config_lib.BTConfig)
  with pytest.raises(ValueError, match=message):
    assembly.Agent(config, fakes.SPEC._replace(**change), (behavior,))
