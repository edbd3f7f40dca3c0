"""Tests that the agent of a run is recreated from its record."""

import dataclasses
import os
import shutil

import jax
import pytest

from bt_acme import assembly, behaviors
from bt_acme import config as config_lib
from bt_acme.config import run as run_config
from bt_acme.launching import initial_weights, recorded_agent, starting
from bt_acme.runtime import workdir as workdir_lib

_NAME = 'MiniGrid-Empty-5x5-v0'


def test_exported_behaviors_are_those_of_the_run(tmp_path):
  explorer = behaviors.Exported('minigrid-explorer')

  def export(folder, scale):
    behaviors.export(
      str(tmp_path / folder),
      agent=explorer.agent,
      variables=jax.tree.map(
        lambda x: x * x.dtype.type(scale), explorer.variables
      ),
      statistics=explorer.statistics,
      actor_steps=explorer.actor_steps,
    )
    return behaviors.Exported(str(tmp_path / folder))

  one, other = export('a/x', 1.0), export('b/x', 0.5)
  transfer = config_lib.TransferConfig(behavior_epsilon=0.1)
  agent = assembly.Agent(
    config_lib.BTConfig(transfer=transfer), assembly.spec_by_name(_NAME), (one,)
  )
  run = run_config.RunConfig(
    env=_NAME, workdir=str(tmp_path / 'run'), lp_launch_type='in_process'
  )
  options = recorded_agent.start_options(
    agent, 0, initial_weights.WeightsConfig()
  )
  workdir_lib.claim(run, agent.config, options['identity'])
  recorded_agent.keep_behaviors(run, agent)
  identity = workdir_lib.read_identity(run.workdir)
  (made,) = recorded_agent.make(run.workdir, identity, [one]).behaviors
  assert made._epsilon == 0.1 != one._epsilon
  with pytest.raises(ValueError, match="b/x' is not the behavior that the run"):
    recorded_agent.make(run.workdir, identity, [other])
  export('a/x', 0.5)
  starting.check(run, agent)  # The run has a copy.
  new = dataclasses.replace(run, workdir=str(tmp_path / 'new'))
  with pytest.raises(ValueError, match="a/x' has changed since it was loaded"):
    starting.check(new, agent)


def test_behaviors_without_files_must_be_passed_again(tmp_path):
  # No behavior with files is mistaken for it.
  own = behaviors.FromCallable(lambda seed: lambda *_: 0, 'minigrid-explorer')
  agent = assembly.Agent(
    config_lib.BTConfig(),
    assembly.spec_by_name(_NAME),
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


def test_a_workdir_in_the_directory_of_its_behavior(tmp_path, monkeypatch):
  explorer = behaviors.Exported('minigrid-explorer').folder
  shutil.copytree(explorer, tmp_path / 'b')
  monkeypatch.chdir(tmp_path)
  agent = assembly.Agent(
    config_lib.BTConfig(),
    assembly.spec_by_name(_NAME),
    (behaviors.Exported('b'),),
  )
  monkeypatch.chdir('b')
  run = run_config.RunConfig(workdir='run')
  recorded_agent.check_behaviors(run, agent)
  recorded_agent.keep_behaviors(run, agent)
  (copy,) = tmp_path.glob('b/run/*/0/b')
  assert sorted(os.listdir(copy)) == ['behavior.json', 'params.npz']
