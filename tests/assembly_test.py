"""Tests assembling agents from their configuration."""

import dataclasses
import pickle

import jax.numpy as jnp
import pytest

from bt_acme import assembly, behaviors
from bt_acme import config as config_lib
from tests.agents import fakes


def test_behaviors_require_bt_config():
  with pytest.raises(
    ValueError, match='R2D2Config does not fit.* behaviors, 1'
  ):
    assembly.Agent(fakes.make_config(), fakes.SPEC, (behaviors.Uniform(),))


def test_kickstarting_without_flights_has_one_behavior():
  config = fakes.make_config(
    config_lib.BTConfig,
    transfer=config_lib.TransferConfig(flights=False, kickstarting=0.1),
  )
  assembly.Agent(config, fakes.SPEC, (behaviors.Uniform(),))
  with pytest.raises(ValueError, match='one behavior, but there are 2'):
    assembly.Agent(config, fakes.SPEC, (behaviors.Uniform(),) * 2)


def test_a_jitted_behavior_is_checked():
  def returning(state):
    changed = fakes.Proposing(1)
    core = changed.make_core(3)
    changed.make_core = lambda n: core._replace(
      init=lambda key: jnp.int32(0), step=lambda _, inputs, own: (1, state(own))
    )
    return changed

  for behavior, message in (
    (returning(lambda own: (own,)), "turns a state of .*'int32'.* into"),
    (returning(lambda own: own * 0.5), "into .*'float32'"),
    (returning(lambda own: None), r'into .*None\), \[\]'),
  ):
    config = fakes.make_config(config_lib.BTConfig)
    with pytest.raises(TypeError, match=message):
      assembly.Agent(config, fakes.SPEC, (behavior,))


def test_a_renamed_agent_is_not_validated_again():
  validated = []

  class Counting(behaviors.Uniform):
    def validate(self, observation_shape, action_spec):
      validated.append(observation_shape)

  agent = assembly.Agent(
    fakes.make_config(config_lib.BTConfig), fakes.SPEC, (Counting(),)
  )
  assert 'network' not in vars(agent)  # The slowest part is created lazily.
  renamed = agent.named('other')
  assert renamed.network is not None and renamed != agent
  assert renamed.spec == agent.spec._replace(name='other')
  assert renamed.named('') == agent.named('') and len(validated) == 1
  assert hash(renamed.named('')) == hash(agent.named(''))
  dataclasses.replace(agent, spec=agent.spec._replace(name='other'))
  assert len(validated) == 2


def test_reward_specs(tmp_path):
  assert fakes.make_agent('r2d2').reward_specs == ()
  pre_trained = fakes.make_agent('ngu')
  (own,) = pre_trained.reward_specs
  assert own.config == pre_trained.config.intrinsic
  assert not any(own.statistics)
  transferring = fakes.make_agent('bt', tmp_path / 'behavior')
  *others, exported = transferring.reward_specs
  assert others == [None] * (len(transferring.behaviors) - 1)
  assert exported.config == transferring.behaviors[-1].agent.config.intrinsic
  assert exported.statistics == transferring.behaviors[-1].statistics


def test_networks_are_not_pickled():
  agent = fakes.make_agent('ngu')
  assert agent.intrinsic is agent.intrinsic
  copy = pickle.loads(pickle.dumps(agent))
  assert copy == agent
  assert 'intrinsic' not in vars(copy) and 'network' not in vars(copy)
