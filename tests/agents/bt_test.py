"""Tests which arguments `BTBuilder` rejects."""

import pytest

from bt_acme import agents, behaviors
from bt_acme import config as config_lib
from tests.agents.external import peers, scripted


def test_external_agents_are_found_under_their_old_name():
  with pytest.warns(DeprecationWarning, match='agents.external'):
    from bt_acme.agents.foreign import actor, checks
  from bt_acme.agents.external import builder
  from bt_acme.agents.foreign.builder import WrappedBuilder

  assert WrappedBuilder is builder.WrappedBuilder
  assert actor.__name__ == 'bt_acme.agents.external.actor'
  assert checks.__name__ == 'bt_acme.agents.external.checks'


def test_elements_that_are_not_behaviors_are_rejected():
  with pytest.raises(ValueError, match='FromCallable'):
    peers.build(given=[lambda observation: 0])
  with pytest.raises(ValueError, match='is empty'):
    peers.build(given=[])


def test_a_single_behavior_is_rejected_and_a_generator_is_accepted():
  with pytest.raises(ValueError, match="single behavior 'uniform'. Pass a"):
    peers.build(given=behaviors.Uniform())
  builder = peers.build(given=(behaviors.Uniform() for _ in range(2)))
  assert builder.agent_spec.actions.num_values == scripted.NUM_ACTIONS + 2


def test_settings_of_a_whole_agent_are_rejected():
  with pytest.raises(ValueError, match='config is a BTConfig instead of a Tra'):
    agents.BTBuilder(
      peers.dqn_builder, [behaviors.Uniform()], config_lib.BTConfig(),
      environment_spec=scripted.discrete_spec(),
    )  # fmt: skip


@pytest.mark.parametrize(
  'settings, message',
  [
    ({'flight_law': 'triggered'}, "flight_law='triggered' needs the values"),
    ({'flight_law': 'jump_start'}, "flight_law='jump_start' needs a run"),
    ({'choice_rule': 'boltzmann'}, "choice_rule='boltzmann' needs the values"),
  ],
)
def test_settings_that_need_values_are_rejected(settings, message):
  with pytest.raises(ValueError, match=message):
    agents.BTBuilder(
      peers.dqn_builder,
      [behaviors.Uniform()],
      config_lib.TransferConfig(**settings),
      environment_spec=scripted.discrete_spec(),
    )


def test_environment_spec_is_needed():
  with pytest.raises(ValueError, match='make_environment_spec'):
    agents.BTBuilder(peers.dqn_builder, [behaviors.Uniform()])


def test_wrapping_twice_is_rejected():
  with pytest.raises(ValueError, match='all behaviors in a single call'):
    peers.build(peers.build())
