"""Tests the initial weights of a run."""

import dataclasses

import jax
import numpy as np
import pytest

from bt_acme import behaviors
from bt_acme import config as config_lib
from bt_acme.launching import initial_weights, recorded_agent
from tests.agents import fakes


def agent_with(**network):
  sizes = {'torso_size': 16, 'lstm_size': 16, 'head_size': 16, **network}
  return fakes.make_agent('r2d2', network=config_lib.NetworkConfig(**sizes))


def test_settings_without_an_effect_are_refused():
  for name, value in (('init', 'partial'), ('extra_init', 'mean')):
    message = f"^{name}='{value}' has no effect with init_from=''"
    with pytest.raises(ValueError, match=message):
      initial_weights.WeightsConfig(**{name: value})


def load(weights, agent):
  options = recorded_agent.start_options(agent, 0, weights)
  return options['initial_params']


@pytest.mark.parametrize('init', ['full', 'partial'])
def test_loaded_weights(exported, init):
  # Without an extra action, extra_init has no effect.
  weights = initial_weights.WeightsConfig(exported, init, 'mean')
  params = load(weights, agent_with())
  source = behaviors.Exported(exported).variables.agent
  same = jax.tree.map(np.array_equal, params, source)
  head = [same[module] for module in same if module.startswith('head')]
  torso = [same[module] for module in same if not module.startswith('head')]
  assert all(jax.tree.leaves(torso))
  assert all(jax.tree.leaves(head)) == (init == 'full')


@pytest.mark.parametrize(
  'network, message',
  [
    (
      {'reward_input': 'raw'},
      "trained with reward_input='tanh'.*Set --reward_input=tanh",
    ),
    (
      {'lstm_size': 8},
      r"='full' needs the same architecture: .* \(16, 16\), expected \(8, 16\)",
    ),
    ({'head_size': 8}, 'Use the same network sizes, or --init=par'),
  ],
)
def test_weights_of_a_different_architecture(exported, network, message):
  weights = initial_weights.WeightsConfig(exported)
  with pytest.raises(ValueError, match=message) as error:
    load(weights, agent_with(**network))
  partial = dataclasses.replace(weights, init='partial')
  if 'lstm_size' in network:
    with pytest.raises(ValueError, match='Use the same network sizes.$'):
      load(partial, agent_with(**network))
  assert str(error.value).startswith(f'init_from={exported!r}')
