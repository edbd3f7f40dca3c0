"""Tests how the Python API interprets its arguments, without any training."""

import shutil

import numpy as np
import pytest

import bt_acme
from bt_acme import behaviors
from bt_acme.api import runs
from bt_acme.evaluation import recorder


@pytest.fixture(name='started')
def record_started_runs(monkeypatch):
  """Returns a list to which each run that would start adds its agent."""
  started = []
  monkeypatch.setattr(
    runs.Run, 'start', lambda agent, run, **options: started.append(agent)
  )
  return started


@pytest.mark.parametrize(
  'given', ['action_repeat,uniform', ['action_repeat, uniform']]
)
def test_a_text_may_list_behaviors(given, started):
  bt_acme.transfer('Chain-5', given, max_actor_steps=5_000)
  (agent,) = started
  assert [each.name for each in agent.behaviors] == ['action_repeat', 'uniform']


@pytest.mark.parametrize(
  'changes, message',
  [
    ({'env': None}, 'env=None is not a name'),
    ({'env': ['Chain-5']}, r"env=\['Chain-5'\] is not a name"),
    ({'callbacks': print}, 'callbacks=.* is not a list'),
    ({'behavior_weights': 2}, 'behavior_weights=2 is not a list'),
    ({'behavior': []}, r'behavior=\[\] is empty'),
    ({'behavior': [lambda: 0]}, 'FromCallable for a function'),
  ],
)
def test_arguments_of_a_wrong_kind(changes, message, started):
  arguments = {'env': 'Chain-5', 'behavior': 'uniform', **changes}
  with pytest.raises(ValueError, match=message):
    bt_acme.transfer(**arguments, max_actor_steps=5_000)
  assert not started


def test_a_workdir_stands_for_its_behavior(tmp_path, started):
  behavior = bt_acme.load_behavior('minigrid-explorer')
  shutil.copytree(behavior.folder, tmp_path / 'ngu' / 'behavior')
  env, given = 'MiniGrid-Empty-5x5-v0', str(tmp_path / 'ngu')
  weights = np.ones(1)  # Any sequence.
  bt_acme.transfer(env, given, behavior_weights=weights, max_actor_steps=5_000)
  (agent,) = started
  assert agent.behaviors[0].params_sha256 == behavior.params_sha256


def test_only_policies_with_parameters_can_be_evaluated():
  with pytest.raises(ValueError, match='source=.* is neither a run nor'):
    bt_acme.evaluate(behaviors.ActionRepeat())


@pytest.mark.parametrize('epsilon', [-0.1, 1.5, float('nan')])
def test_epsilon_must_be_a_probability(epsilon):
  behavior = bt_acme.load_behavior('minigrid-explorer')
  message = rf'^epsilon={epsilon} must lie in \[0, 1\]'
  for call in (bt_acme.evaluate, bt_acme.video.show):
    with pytest.raises(ValueError, match=message):
      call(behavior, env='MiniGrid-Empty-5x5-v0', epsilon=epsilon)
  with pytest.raises(ValueError, match=message):
    behaviors.Exported('minigrid-explorer', epsilon=epsilon)


@pytest.mark.parametrize(
  'argument, message',
  [
    ({'max_frames': 0}, '^max_frames=0 must be positive'),
    ({'frames_per_second': 0}, '^frames_per_second=0 must be positive'),
    ({'seed': -1}, '^seed=-1 must'),
  ],
)
def test_arguments_of_a_video(argument, message):
  with pytest.raises(ValueError, match=message):
    bt_acme.video.show('minigrid-explorer', **argument)


@pytest.mark.parametrize(
  'setting, message',
  [
    ({'intrinsic_reward': 'rnd'}, "'rnd' is a setting of bt_acme.pretrain. R"),
    ({'flight_exponent': 2.0}, '=2.0 is a setting of bt_acme.transfer. Remove'),
    ({'num_actors': 4}, '^num_actors=4 applies .* Use num_environments'),
    ({'bacth_size': 4}, r"not a setting: did you mean 'batch_size'\?$"),
    ({'xyz': 4}, "^xyz=4 is not a setting: choose from 'torso'"),
  ],
)
def test_unknown_settings(setting, message):
  with pytest.raises(ValueError, match=message):
    bt_acme.train('Chain-5', max_actor_steps=5_000, **setting)


def test_the_reward_input_of_a_behavior_must_be_known():
  with pytest.raises(ValueError, match="did you mean 'recompute'"):
    behaviors.Exported('minigrid-explorer', reward_input='recompte')


def test_a_policy_may_be_given_by_its_name(monkeypatch):
  played = []

  def play(agent, *args, **options):
    played.append((agent.spec.name, args))
    return b''

  for name in ('play', 'film'):
    monkeypatch.setattr(recorder, name, play)
  behavior = bt_acme.load_behavior('minigrid-explorer')
  for call in (bt_acme.evaluate, bt_acme.video.show):
    for source in (behavior, behavior.folder, 'minigrid-explorer'):
      call(source, env='MiniGrid-Empty-5x5-v0')
    with pytest.raises(ValueError, match="folder='nowhere'"):
      call('nowhere')
  assert len(played) == 6
  for name, (variables, statistics) in played:
    assert name == 'MiniGrid-Empty-5x5-v0'
    assert set(variables.agent) == set(behavior.variables.agent)
    assert statistics == behavior.statistics
