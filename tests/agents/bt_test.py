"""Tests which arguments `BTBuilder` rejects."""

import pytest

from bt_acme import agents, behaviors
from bt_acme import config as config_lib
from tests.agents import fakes
from tests.agents.external import peers, scripted

_CONTINUOUS = {
  'base': lambda spec: peers.td3_builder(),
  'spec': scripted.vector_spec(),
}
_VECTORS = [behaviors.FromCallable(scripted.Recorder([[0, 0]]))]


def test_external_agents_are_found_under_their_old_name():
  with pytest.warns(DeprecationWarning, match='agents.external'):
    from bt_acme.agents.foreign import actor, checks
  from bt_acme.agents.external import builder
  from bt_acme.agents.foreign.builder import WrappedBuilder

  assert WrappedBuilder is builder.WrappedBuilder
  assert actor.__name__ == 'bt_acme.agents.external.actor'
  assert checks.__name__ == 'bt_acme.agents.external.checks'


@pytest.mark.parametrize(
  'arguments, message',
  [
    ({'given': [lambda observation: 0]}, 'FromCallable'),
    ({'given': []}, 'is empty'),
    ({'given': behaviors.Uniform()}, "single behavior 'uniform'. Pass a"),
    ({'flight_law': 'triggered'}, "triggered' needs an agents.R2D2Builder"),
    ({'flight_law': 'jump_start'}, "flight_law='jump_start' needs a run"),
    ({'choice_rule': 'boltzmann'}, "boltzmann' needs an agents.R2D2Builder"),
    ({'extra_action_margin': 0.5}, 'margin=0.5 needs an agents.R2D2Builder'),
    ({'flight_recurrent_state': 'hold'}, "flight_recurrent_state='hold' needs"),
    ({'behavior_epsilon': 0.3}, r'Exported\(FOLDER, epsilon=0.3\)'),
    ({'behavior_reward_input': 'zero'}, "behavior_reward_input='zero' applies"),
    ({'flight_probability': 'epsilon'}, "flight_probability='epsilon' needs"),
    ({'base': peers.dqn_builder(None)}, 'DQNBuilder already exists.*lambda'),
    ({'base': 7}, 'base_builder=7 is neither a builder of dm-acme'),
    ({'base': lambda spec: None}, 'nor a function that returns such a'),
    (_CONTINUOUS, 'extra_action=True needs discrete.*extra_action=False'),
    ({**_CONTINUOUS, 'extra_action': False}, "'uniform'.*FromCallable"),
    (
      {**_CONTINUOUS, 'extra_action': False, 'flight_epsilon': 0.3}
      | {'given': _VECTORS},
      r'flight_epsilon=0\.3 needs discrete actions.* Set flight_epsilon=0',
    ),
    ({'base': peers.build()}, 'all behaviors in a single call'),
  ],
)
def test_arguments_that_do_not_fit_are_rejected(arguments, message):
  with pytest.raises(ValueError, match=message):
    peers.build(**arguments)


@pytest.mark.parametrize(
  'arguments, message',
  [
    ({'base': agents.BTBuilder}, "missing 1 required .*'behaviors'"),
    ({'given': [fakes.Proposing(2.7)]}, "behavior 'mine' returns float32"),
  ],
)
def test_arguments_of_another_type_are_rejected(arguments, message):
  with pytest.raises(TypeError, match=message):
    peers.build(**arguments)


def test_a_generator_of_behaviors_is_accepted():
  builder = peers.build(given=(behaviors.Uniform() for _ in range(2)))
  assert builder.agent_spec.actions.num_values == scripted.NUM_ACTIONS + 2


def test_without_extra_actions_the_builder_may_exist():
  builder = peers.build(peers.dqn_builder(None), extra_action=False)
  assert builder.agent_spec.actions.num_values == scripted.NUM_ACTIONS


def test_settings_of_a_whole_agent_are_rejected():
  with pytest.raises(ValueError, match='config is a BTConfig instead of a Tra'):
    agents.BTBuilder(
      peers.dqn_builder, [behaviors.Uniform()], config_lib.BTConfig(),
      environment_spec=scripted.discrete_spec(),
    )  # fmt: skip


def test_environment_spec_is_needed():
  with pytest.raises(ValueError, match='make_environment_spec'):
    agents.BTBuilder(peers.dqn_builder, [behaviors.Uniform()])
