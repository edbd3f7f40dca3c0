"""Tests how the Python API interprets its arguments, without any training."""

import shutil

import numpy as np
import pytest

import bt_acme
from bt_acme import behaviors
from bt_acme.api import continual, runs


@pytest.fixture(name='started')
def record_started_runs(monkeypatch):
  """Returns a list to which each run that would start adds its agent."""
  started = []
  monkeypatch.setattr(runs.Run, 'resume', lambda run: started.append(run.agent))
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
    ({'env': ['Chain-5']}, r"env=\['Chain-5'\] must be a string"),
    ({'callbacks': print}, 'callbacks=.* is not a list of functions'),
    ({'callbacks': [3]}, r'callbacks=\[3\] is not a list of functions'),
    ({'behavior_weights': 2}, 'behavior_weights=2 is not a list'),
    ({'behavior_weights': '1,2'}, "behavior_weights='1,2' is not a list"),
    ({'behavior_weights': ('1',)}, r"behavior_weights=\('1',\) is invalid"),
    ({'behavior': []}, r'behavior=\[\] is empty'),
    ({'behavior_roles': 'fly', 'flights': False}, "roles='fly' with flights=F"),
    ({'behavior_roles': 'choose', 'extra_action': False}, 'with extra_act'),
    ({'behavior': [lambda: 0]}, 'FromCallable for a function'),
    ({'env': 'Chian-5'}, '[Dd]id you mean'),
    ({'learning_rate': -1.0}, 'learning_rate=-1.0'),
    ({'progress': 'loud'}, "progress='loud'"),
    ({'preset': 'tiny'}, "preset='tiny'"),
    ({'extra_init': 'men'}, "extra_init='men'"),
    ({'bank': 'runs/bank'}, r'Pass bt_acme.Bank\(DIRECTORY\) as behavior'),
    ({'preset': ['tiny']}, r"preset=\['tiny'\] must be a string"),
    ({'workdir': None}, 'workdir=None is not a path'),
    ({'init_from': None}, 'init_from=None is not a path'),
    ({'inference': 'server'}, 'applies only to launch scripts'),
    ({'lr': 3}, r"not a setting: did you mean 'learning_rate'\?$"),
    ({'num_environments': 2.5}, 'num_environments=2.5'),
    ({'init_from': 'nowhere'}, "init_from='nowhere'"),
    ({'intrinsic_reward': 'rnd'}, "'rnd' is a setting of bt_acme.pretrain. R"),
    ({'num_actors': 4}, '^num_actors=4 applies .* Use num_environments'),
    ({'bacth_size': 4}, r"not a setting: did you mean 'batch_size'\?$"),
    ({'behaviour_weights': [1]}, r"did you mean 'behavior_weights'\?$"),
    ({'settings': {'lr': 1}}, 'is not a setting'),
    ({'call': bt_acme.train}, 'is a setting of bt_acme.transfer. R'),
  ],
)
def test_invalid_arguments(changes, message, started, tmp_path):
  workdir = tmp_path / 'run'
  given = {'env': 'Chain-5', 'behavior': 'uniform', 'workdir': workdir}
  given.update(changes, max_actor_steps=5_000)
  call = given.pop('call', bt_acme.transfer)
  with pytest.raises(ValueError, match=message):
    call(**given)
  assert not started and not workdir.exists()


def test_several_kinds_of_behaviors(tmp_path, started):
  behavior = bt_acme.load_behavior('minigrid-explorer')
  shutil.copytree(behavior.folder, tmp_path / 'ngu' / 'behavior')
  (tmp_path / 'ngu' / 'config.json').touch()
  bt_acme.transfer(
    'MiniGrid-Empty-5x5-v0',
    [tmp_path / 'ngu', behavior, 'uniform', behaviors.ActionRepeat()],
    behavior_weights=np.array([1, 1, 1, 2]),  # Any sequence.
    init_from=behavior,
    init='partial',
    max_actor_steps=5_000,
  )
  (agent,) = started
  names = [each.name for each in agent.behaviors]
  assert names == ['behavior', 'minigrid-explorer', 'uniform', 'action_repeat']
  # The workdir of a run stands for its behavior.
  assert agent.behaviors[0].params_sha256 == behavior.params_sha256


def test_behaviors_pretrained_at_length_have_their_own_preset(started):
  env = 'MiniGrid-Empty-5x5-v0'
  for behavior in ('uniform', ['uniform', 'minigrid-explorer']):
    bt_acme.transfer(env, behavior, max_actor_steps=5_000)
  bt_acme.transfer('breakout', 'uniform', max_actor_steps=5_000)
  margins = [a.config.transfer.extra_action_margin for a in started]
  assert margins == [0.0, 0.1, 0.0]
  assert started[-1].config.network.torso == 'workshop'


@pytest.mark.parametrize('name', ['extra_action', 'flights'])
def test_settings_of_a_preset_without_effect_are_omitted(name, started):
  arguments = {'max_actor_steps': 5_000, name: False}
  env, behavior = 'MiniGrid-Empty-5x5-v0', 'minigrid-explorer'
  bt_acme.transfer(env, behavior, **arguments)
  (agent,) = started
  config = agent.config.transfer
  used = (config.extra_action_margin, config.flight_epsilon)
  assert used == ((0.0, 0.3) if name == 'extra_action' else (0.1, 0.0))
  with pytest.raises(ValueError, match='has no effect with'):
    bt_acme.transfer(
      *(env, behavior), extra_action_margin=0.2, flight_epsilon=0.2, **arguments
    )


def test_a_first_task_ignores_settings_of_transfer(tmp_path):
  settings = {'seed': 1, 'max_actor_steps': 5_000}
  transferred = {'extra_init': 'mean', 'flight_exponent': 3.0}
  first, same = (
    continual._prepare('Chain-5', (), tmp_path, each)
    for each in (settings, {**settings, **transferred})
  )
  assert (first.agent, first._config) == (same.agent, same._config)
  assert first._options['identity'] == same._options['identity'] == {}


def test_arguments_of_a_bank():
  for folder in (None, 3, ''):
    with pytest.raises(ValueError, match=f'^bank={folder!r} is not a path'):
      bt_acme.Bank(folder)
  # Only policies with parameters join a bank.
  with pytest.raises(ValueError, match='source=.* is neither a run nor'):
    bt_acme.Bank('bank').add(behaviors.ActionRepeat(), 'repeat')


@pytest.mark.parametrize(
  'argument, message',
  [
    ({'max_frames': 0}, '=0 must be positive'),
    ({'frames_per_second': 0}, '=0 must be positive'),
    ({'seed': -1}, '=-1 must'),
    ({'epsilon': 1.5}, r'=1.5 must lie in \[0, 1\]'),
  ],
)
def test_arguments_of_a_video(argument, message):
  (name,) = argument
  env = 'MiniGrid-Empty-5x5-v0'
  with pytest.raises(ValueError, match=f'^{name}{message}'):
    bt_acme.video.show('minigrid-explorer', env=env, **argument)
  if name == 'seed':
    with pytest.raises(ValueError, match=f'^{name}{message}'):
      bt_acme.describe('minigrid-explorer', videos=env, **argument)


def test_arguments_of_an_exported_behavior():
  with pytest.raises(ValueError, match='^epsilon=1.5 must'):
    behaviors.Exported('minigrid-explorer', epsilon=1.5)
  with pytest.raises(ValueError, match="did you mean 'recompute'"):
    behaviors.Exported('minigrid-explorer', reward_input='recompte')
