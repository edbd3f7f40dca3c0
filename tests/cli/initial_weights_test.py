"""Which weights a run starts from, and which it refuses."""

import pytest

pytest.importorskip('launchpad', reason='needs the full environment')

# isort: split
import jax
import numpy as np

from bt_acme import assembly, behaviors
from bt_acme import config as config_lib
from bt_acme.cli import initial_weights
from tests.agents import fakes


def agent_with(**network):
  sizes = {'torso_size': 16, 'lstm_size': 16, 'head_size': 16, **network}
  return assembly.Agent(
    fakes.make_config(network=config_lib.NetworkConfig(**sizes)), fakes.SPEC
  )


@pytest.mark.parametrize(
  'settings, message',
  [
    ({'init': 'partial'}, "init='partial' says which .* init_from='' loads no"),
    ({'extra_init': 'mean'}, "extra_init='mean' says .* init_from='' loads no"),
    ({'init': 'half'}, "init='half' is unknown"),
  ],
)
def test_settings_of_weights_that_cannot_be(settings, message):
  with pytest.raises(ValueError, match=message):
    initial_weights.WeightsConfig(**settings)


def test_no_folder_is_fresh_weights():
  weights = initial_weights.WeightsConfig()
  assert initial_weights.load(weights, agent_with(), seed=0) is None


@pytest.mark.parametrize('init', ['full', 'partial'])
def test_weights_to_start_from(folder, init):
  # Without an extra action there is nothing that extra_init could change.
  weights = initial_weights.WeightsConfig(folder, init, 'mean')
  params = initial_weights.load(weights, agent_with(), seed=0)
  source = behaviors.Exported(folder).variables.agent
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
      "trained with reward_input='tanh'.*set --reward_input=tanh",
    ),
    (
      {'lstm_size': 8},
      r'same architecture: .* \(16, 16\) there and \(8, 16\) here.*sizes of',
    ),
    ({'head_size': 8}, '--init=partial leaves out the head'),
  ],
)
def test_weights_of_another_architecture(folder, network, message):
  weights = initial_weights.WeightsConfig(folder)
  with pytest.raises(ValueError, match=message) as error:
    initial_weights.load(weights, agent_with(**network), seed=0)
  assert str(error.value).startswith(f'init_from={folder!r}')
