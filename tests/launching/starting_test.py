"""Tests that launch scripts reject invalid settings before anything starts."""

import dataclasses
import inspect
from unittest import mock

import pytest

from benchmarks import core_parts
from bt_acme import config as config_lib
from bt_acme import installation
from bt_acme.config import checks
from bt_acme.config import run as run_config
from bt_acme.launching import starting
from bt_acme.runtime import launch_checks, launcher
from tests.agents import fakes


@pytest.mark.parametrize('launch_type', ['in_process', 'local_mp'])
def test_more_devices_than_available(launch_type):
  learner = config_lib.LearnerConfig(batch_size=64, num_devices=64)
  agent = fakes.make_agent('r2d2', learner=learner)
  message = "num_devices=64 exceeds the number of 'cpu' devices"
  with pytest.raises(ValueError, match=message):
    starting.check(run_config.RunConfig(lp_launch_type=launch_type), agent)


def test_a_replay_in_this_process_has_no_codec():
  replay = dataclasses.replace(fakes.make_config().replay, codec='tensors')
  agent = fakes.make_agent('r2d2', replay=replay)
  starting.check(run_config.RunConfig(), agent)
  with pytest.raises(ValueError, match='in one process. Remove codec.$'):
    starting.check(run_config.RunConfig(lp_launch_type='in_process'), agent)


def test_a_name_of_a_workdir_that_is_too_long_is_refused_in_one_line():
  run = run_config.RunConfig(workdir='x' * 300)
  with pytest.raises(ValueError, match="xxx' is not writable"):
    starting.start(run, fakes.make_agent('r2d2'))


def test_several_processes_need_the_full_stack(monkeypatch):
  monkeypatch.setattr(installation, '_PACKAGES', {'no_module': 'dm-acme'})
  agent = fakes.make_agent('r2d2')
  starting.check(run_config.RunConfig(lp_launch_type='in_process'), agent)
  with pytest.raises(ValueError, match="mp' cannot be used: .* needs dm-acme"):
    starting.check(run_config.RunConfig(), agent)


@pytest.mark.parametrize(
  'settings, message',
  [
    ({'num_actors': 1, 'envs_per_actor': 2}, 'envs_per_actor=2. Raise'),
    # Each evaluation has all environments, whichever evaluator plays it.
    ({'evaluation_episodes': 2, 'num_evaluators': 2}, 'evaluation_episodes=2'),
  ],
)
def test_more_environments_in_the_list_than_in_the_run(settings, message):
  run = run_config.RunConfig(env='a,b,c', **settings)
  with pytest.raises(ValueError, match=f'lists 3 .* than .*{message}'):
    starting.check(run, fakes.make_agent('r2d2'))


@pytest.mark.parametrize(
  'steps, sequences',
  # Eight environments have 11 steps each, so two periods; then one each.
  [(90, 9), (79, 7), (40, 4)],
)
def test_a_budget_that_cannot_fill_the_replay_is_refused(steps, sequences):
  sizes = {'trace_length': 20, 'sequence_period': 10, 'min_replay_size': 10}
  agent = core_parts.make_agent(**sizes)
  run = run_config.RunConfig(
    num_actors=1, envs_per_actor=8, max_actor_steps=steps
  )
  with pytest.raises(ValueError, match=f'only about {sequences} sequences'):
    launch_checks.check(run, agent)


def test_the_port_of_a_replay_elsewhere_is_not_checked(monkeypatch):
  taken = mock.Mock(side_effect=ValueError('taken'))
  monkeypatch.setattr(launch_checks, '_check_free', taken)
  agent = fakes.make_agent('r2d2')
  run = run_config.RunConfig(
    lp_launch_type='ray', ray_address='auto', replay_port=7000
  )
  with pytest.raises(ValueError, match='taken'):
    launch_checks.check(run, agent)
  placed = dataclasses.replace(run, placement='replay:role=replay')
  launch_checks.check(placed, agent)


def test_the_setting_lists_all_engines_with_their_options():
  field = run_config.RunConfig.__dataclass_fields__['lp_launch_type']
  choices = set(checks.limits_of(field)['choices'])
  assert choices == {'in_process', *launcher.ENGINES}
  for name, engine in launcher.ENGINES.items():
    address = 'auto' if name == 'ray' else ''
    run = run_config.RunConfig(lp_launch_type=name, ray_address=address)
    assert run.uses_launchpad
    assert run.is_in_this_process == engine.in_this_process
    options = starting._engine_options(run)
    inspect.signature(engine).bind('the queue', **options)  # Or it raises.
