"""What the launch scripts refuse before anything starts."""

import os
import pathlib
import subprocess
import sys

import pytest

pytest.importorskip('launchpad', reason='needs the full environment')

# isort: split
import jax
import numpy as np
from absl.testing import flagsaver

from bt_acme import assembly, behaviors
from bt_acme import config as config_lib
from bt_acme.cli import run as run_cli
from bt_acme.config import run as run_config
from tests.agents import fakes

_ROOT = pathlib.Path(__file__).parents[2]
TRANSFER = config_lib.TransferConfig()


@pytest.fixture(name='folder', scope='module')
def export(tmp_path_factory):
  folder = tmp_path_factory.mktemp('behavior') / 'b'
  fakes.export_behavior(folder)
  return str(folder)


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
    run_cli.WeightsConfig(**settings)


def agent_with(**network):
  sizes = {'torso_size': 16, 'lstm_size': 16, 'head_size': 16, **network}
  return assembly.Agent(
    fakes.make_config(network=config_lib.NetworkConfig(**sizes)), fakes.SPEC
  )


@pytest.mark.parametrize('init', ['full', 'partial'])
def test_weights_to_start_from(folder, init):
  # Without an extra action there is nothing that extra_init could change.
  weights = run_cli.WeightsConfig(folder, init, 'mean')
  params = run_cli.initial_params(weights, agent_with(), seed=0)
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
  weights = run_cli.WeightsConfig(folder)
  with pytest.raises(ValueError, match=message) as error:
    run_cli.initial_params(weights, agent_with(**network), seed=0)
  assert str(error.value).startswith(f'init_from={folder!r}')


def test_behaviors_by_name(folder):
  config = run_cli.BehaviorsConfig(f' uniform, {folder} ', ' 1, 2')
  made = run_cli.make_behaviors(config, TRANSFER)
  assert [behavior.name for behavior in made] == ['uniform', 'b']
  assert config.weights == (1, 2)
  assert run_cli.BehaviorsConfig('uniform').weights == ()


@pytest.mark.parametrize(
  'names, wrong', [('Uniform', 'Uniform'), ('uniform,', ''), (',uniform', '')]
)
def test_a_name_of_no_behavior(names, wrong):
  message = f"behavior={names!r}: {wrong!r} is neither .*'action_repeat', 'uni"
  with pytest.raises(ValueError, match=message):
    run_cli.make_behaviors(run_cli.BehaviorsConfig(names), TRANSFER)


@pytest.mark.parametrize('weights', ['1,,2', '1,', ',', 'x'])
def test_weights_that_are_no_numbers(weights):
  with pytest.raises(ValueError, match='must be numbers separated by commas'):
    run_cli.BehaviorsConfig('uniform', weights).weights  # noqa: B018


@pytest.mark.parametrize(
  'launch_type, num_devices, message',
  [
    ('vertex_ai', 1, "lp_launch_type='vertex_ai' is unknown"),
    ('local_mp', 64, "num_devices=64, but the learner has . of kind 'cpu'"),
  ],
)
def test_a_run_that_could_not_start(launch_type, num_devices, message):
  learner = config_lib.LearnerConfig(batch_size=64, num_devices=num_devices)
  agent = assembly.Agent(fakes.make_config(learner=learner), fakes.SPEC)
  with flagsaver.as_parsed(lp_launch_type=launch_type):
    with pytest.raises(ValueError, match=message):
      run_cli.check(run_config.RunConfig(), agent)


_TWO_TYPES = """
import runpy, sys
import jax
from absl import flags
from bt_acme import run_script

script = runpy.run_path('launch/run_r2d2.py')
run_script.define(script['Settings'])
for launch_type in ('local_mt', 'local_mp'):
  flags.FLAGS(['run', f'--lp_launch_type={launch_type}'])
  run_script.settings(script['Settings'])
  print(jax.config.jax_platforms)
"""


def test_the_accelerator_is_left_to_other_processes():
  environment = {k: v for k, v in os.environ.items() if k != 'JAX_PLATFORMS'}
  done = subprocess.run(
    [sys.executable, '-c', _TWO_TYPES],
    env={**environment, 'PYTHONPATH': str(_ROOT)},
    cwd=_ROOT,
    capture_output=True,
    text=True,
    check=True,
  )
  assert done.stdout.split() == ['None', 'cpu']
