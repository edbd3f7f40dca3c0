"""A workdir belongs to one run, and records whether it is completed."""

import dataclasses
import pathlib

import pytest

from bt_acme import config as config_lib
from bt_acme.config import run as run_config
from bt_acme.runtime import resume_checks, workdir
from tests.launch import scripts
from tests.runtime import round_trips

CONFIG = config_lib.R2D2Config()


@pytest.fixture(name='run')
def make_run(tmp_path):
  return run_config.RunConfig(workdir=str(tmp_path / 'run'))


def edit(run, change):
  """Changes the record of a run; returns the new record."""
  path = pathlib.Path(run.workdir) / 'config.json'
  return round_trips.edit(path, lambda identity: change(identity['config']))


def test_recorded_settings_without_an_effect_have_their_defaults(run):
  config = config_lib.BTConfig()
  workdir.claim(run, config)
  ignored = {'priority_signal': 'return', 'kickstarting_steps': 6}
  edit(run, lambda config: config['transfer'].update(ignored))
  recorded = workdir.read_identity(run.workdir)['config']
  assert config_lib.from_dict(config_lib.BTConfig, recorded) == config
  assert workdir.claim(run, config)
  # Settings that have an effect still count.
  learned = {'flight_priorities': 'learned', **ignored}
  edit(run, lambda config: config['transfer'].update(learned))
  with pytest.raises(ValueError, match="priority_signal='return' then"):
    workdir.claim(run, config)


def test_the_same_run_is_resumed(run, tmp_path):
  extra = {'behaviors': ['x']}
  assert not workdir.claim(run, CONFIG, extra)
  before = scripts.contents(tmp_path)
  assert workdir.claim(run, CONFIG, extra)
  longer = dataclasses.replace(
    run,
    max_actor_steps=9,
    snapshot_steps='3,9',
    num_evaluators=0,
    evaluation_period=1,
    evaluation_episodes=1,
    checkpoint_period=1.0,
    open_ports=True,
    replay_port=5,
    max_restarts=0,
    watchdog_seconds=60.0,
  )
  elsewhere = dataclasses.replace(
    CONFIG,
    learner=config_lib.LearnerConfig(num_devices=4),
    replay=config_lib.ReplayConfig(codec='tensors'),
  )
  assert workdir.claim(longer, elsewhere, extra)
  assert scripts.contents(tmp_path) == before and len(before) == 1
  identity = workdir.read_identity(run.workdir)
  assert identity['agent'] == 'R2D2Config'
  assert identity['run']['env'] == run.env


@pytest.mark.parametrize(
  'run_changes, config, extra, differing',
  [
    ({'env': 'pong', 'seed': 3}, CONFIG, {}, ['env', 'seed']),
    ({'num_actors': 3}, CONFIG, {}, ['num_actors']),
    ({'envs_per_actor': 1}, CONFIG, {}, ['envs_per_actor']),
    (
      {},
      dataclasses.replace(
        CONFIG, learner=config_lib.LearnerConfig(batch_size=3)
      ),
      {},
      ['batch_size=64 then, 3 now'],
    ),
    ({}, config_lib.BTConfig(), {}, ["s: agent='R2D2Config' then, 'BTConf"]),
    ({}, CONFIG, {'weights': {'init_from': 'x'}}, ['weights']),
  ],
)
def test_another_run_is_an_error_and_changes_nothing(
  run, tmp_path, run_changes, config, extra, differing
):
  workdir.claim(run, CONFIG)
  before = scripts.contents(tmp_path)
  with pytest.raises(ValueError, match='was created with other settings') as e:
    workdir.claim(dataclasses.replace(run, **run_changes), config, extra)
  message = str(e.value)
  assert all(name in message for name in differing), message
  assert 'transfer' not in message and 'learning_rate' not in message
  assert '\n' not in message
  assert scripts.contents(tmp_path) == before


def given(folder, checksum):
  return {
    'behaviors': [folder],
    'behavior_weights': [],
    'weights': {'init_from': folder, 'init': 'full'},
    resume_checks.PARAMS: {'behaviors': [checksum], 'init_from': checksum},
  }


def test_behaviors_may_move(run, tmp_path):
  assert not workdir.claim(run, CONFIG, given('here', 'ab'))
  assert workdir.claim(run, CONFIG, given('there', 'ab'))
  # The record contains the new directory.
  assert workdir.extra(workdir.read_identity(run.workdir)) == given(
    'there', 'ab'
  )
  before = scripts.contents(tmp_path)
  with pytest.raises(ValueError, match="'ab' then, 'cd' now"):
    workdir.claim(run, CONFIG, given('there', 'cd'))
  with pytest.raises(
    ValueError, match=r"behaviors=\['there'\] then, \['here'\] now"
  ):
    workdir.claim(run, CONFIG, given('here', 'cd'))
  other = given('there', 'ab')
  other['weights']['init'] = 'partial'
  with pytest.raises(ValueError, match="init='full' then, 'partial' now"):
    workdir.claim(run, CONFIG, other)
  assert scripts.contents(tmp_path) == before


@pytest.mark.parametrize('has_checksums', [True, False])
@pytest.mark.parametrize(
  'earlier',
  [
    # Launch scripts recorded the texts of flags, and also default weights.
    {
      'behaviors': {'behavior': 'uniform, a/b', 'behavior_weights': '1,2'},
      'weights': {'init_from': '', 'init': 'full', 'extra_init': 'fresh'},
    },
    # `transfer` recorded the names of behaviors.
    {'behaviors': ['uniform', 'b'], 'behavior_weights': [1, 2]},
  ],
)
def test_records_of_earlier_versions(run, earlier, has_checksums):
  checksums = {'behaviors': ['uniform', 'ab'], 'init_from': None}
  if has_checksums:
    earlier = {**earlier, resume_checks.PARAMS: checksums}
  identity = {
    'behaviors': ['uniform', 'a/b'],
    'behavior_weights': [1.0, 2.0],
    resume_checks.PARAMS: checksums,
  }
  workdir.claim(run, CONFIG, earlier)
  assert workdir.claim(run, CONFIG, identity)
  read = workdir.read_identity(run.workdir)
  assert read['behaviors'][0] == 'uniform'
  assert read['behavior_weights'] == [1, 2]
  with pytest.raises(ValueError, match='created with other settings'):
    workdir.claim(run, CONFIG, {**identity, 'behavior_weights': [1.0, 3.0]})
  # Earlier versions recorded the defaults of runs without behaviors, too.
  other = dataclasses.replace(run, workdir=f'{run.workdir}-other')
  workdir.claim(other, CONFIG, {'weights': {'init_from': ''}})
  assert workdir.claim(other, CONFIG)


def test_a_run_without_checksums_is_identified_by_its_directories(
  run, tmp_path
):
  old = given('here', 'ab')
  del old[resume_checks.PARAMS]
  workdir.claim(run, CONFIG, old)
  before = scripts.contents(tmp_path)
  assert workdir.claim(run, CONFIG, given('here', 'cd'))
  with pytest.raises(ValueError, match=r"=\['here'\] then, \['there'\] now"):
    workdir.claim(run, CONFIG, given('there', 'ab'))
  assert scripts.contents(tmp_path) == before


def test_a_run_that_lacks_a_setting_has_its_default(run):
  config = config_lib.NGUConfig()
  workdir.claim(run, config)
  identity = edit(run, lambda config: config['intrinsic'].pop('error_decay'))
  assert workdir.claim(run, config)
  assert edit(run, lambda config: None) == identity
  forgetting = config_lib.IntrinsicConfig(error_decay=0.01)
  with pytest.raises(ValueError, match='error_decay=0.0 then, 0.01 now'):
    workdir.claim(run, dataclasses.replace(config, intrinsic=forgetting))


@pytest.mark.parametrize('text', ['{"agent": "R2D2Co', '', '[]', '3', '{}'])
def test_a_damaged_record(run, text):
  workdir.claim(run, CONFIG)
  path = pathlib.Path(run.workdir) / 'config.json'
  path.write_text(text)
  with pytest.raises(ValueError, match='config.json is damaged .* another'):
    workdir.claim(run, CONFIG)
  assert path.read_text() == text


def test_an_interrupted_claim_is_repeated(run):
  leftover = pathlib.Path(run.workdir) / '.config.json.partial-0123'
  leftover.parent.mkdir()
  leftover.write_text('{"agent"')
  assert [workdir.claim(run, CONFIG) for _ in range(2)] == [False, True]
  assert not leftover.exists()


def test_a_directory_with_other_files_is_left_alone(run):
  folder = pathlib.Path(run.workdir)
  folder.mkdir()
  (folder / 'thesis.tex').write_text('mine')
  with pytest.raises(
    ValueError, match='is not empty and does not contain a run'
  ):
    workdir.claim(run, CONFIG)
  assert [path.name for path in folder.iterdir()] == ['thesis.tex']


def test_a_directory_without_a_run(tmp_path):
  with pytest.raises(ValueError, match='does not contain a run'):
    workdir.read_identity(str(tmp_path / 'nothing'))


def test_completed_up_to_its_budget(run):
  run = dataclasses.replace(run, max_actor_steps=100)
  workdir.claim(run, CONFIG)
  assert not workdir.is_completed(run)
  workdir.mark_completed(run)
  for steps, completed in ((100, True), (50, True), (101, False)):
    other = dataclasses.replace(run, max_actor_steps=steps)
    assert workdir.is_completed(other) == completed
  for damaged in ('{"max', '{"max_actor_steps": Infinity}'):
    (pathlib.Path(run.workdir) / 'completed.json').write_text(damaged)
    assert not workdir.is_completed(run)
