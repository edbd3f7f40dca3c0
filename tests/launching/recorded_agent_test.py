"""Tests that the agent of a run is recreated from its record."""

import pytest

from bt_acme import assembly, behaviors
from bt_acme import config as config_lib
from bt_acme.config import run as run_config
from bt_acme.launching import initial_weights, recorded_agent
from bt_acme.runtime import workdir as workdir_lib


def test_behaviors_without_files_must_be_passed_again(tmp_path):
  # No behavior with files is mistaken for it.
  own = behaviors.FromCallable(lambda seed: lambda *_: 0, 'minigrid-explorer')
  agent = assembly.Agent(
    config_lib.BTConfig(),
    assembly.spec_by_name('MiniGrid-Empty-5x5-v0'),
    (own, behaviors.Uniform()),
    (1.0, 2.0),
  )
  weights = initial_weights.WeightsConfig()
  options = recorded_agent.start_options(agent, 0, weights)
  assert options['initial_params'] is None
  run = run_config.RunConfig(env=agent.spec.name, workdir=str(tmp_path / 'run'))
  workdir_lib.claim(run, agent.config, options['identity'])
  identity = workdir_lib.read_identity(run.workdir)
  made = recorded_agent.make(run.workdir, identity, agent.behaviors)
  assert made == agent
  for given in ((), (behaviors.Uniform(),)):
    with pytest.raises(ValueError, match='to bt_acme.load_run'):
      recorded_agent.make(run.workdir, identity, given)
