"""The states of an in-process run: restored exactly, or refused."""

import json
import lzma
import pathlib
import pickle
import shutil
import types

import jax
import numpy as np
import pytest

import bt_acme
from bt_acme import untrusted
from bt_acme.config import run as run_config
from bt_acme.runtime import checkpoints, saved_nodes
from tests.agents import fakes
from tests.runtime import round_trips

_DATA = pathlib.Path(__file__).parents[1] / 'data'
STATES = {'actor': {'step': (1, None)}, 'learner': {'replay': [b'12', 3.5]}}


@pytest.fixture(name='saved')
def save(tmp_path):
  """Returns a run whose checkpoint contains states, its agent, and the file."""
  run = run_config.RunConfig(workdir=str(tmp_path / 'run'))
  agent = fakes.make_agent('r2d2')
  states = {**STATES, 'array': np.arange(6.0).reshape(2, 3)}
  replay = saved_nodes.write(run, agent, states)
  checkpoints.save(run.checkpoint_folder, ([], {}), replay)
  saved_nodes.clear(run)
  (path,) = pathlib.Path(run.checkpoint_folder).glob('*/replay/nodes')
  return run, agent, path


def test_states_are_read_as_they_were(saved):
  run, agent, _ = saved
  found = dict(saved_nodes.read(run, agent))
  np.testing.assert_array_equal(
    found.pop('array'), np.arange(6.0).reshape(2, 3)
  )
  assert found == STATES
  folder = pathlib.Path(run.checkpoint_folder)
  assert [path.name for path in folder.iterdir()] == ['checkpoint-1']


def test_a_checkpoint_without_states_does_not_resume(saved):
  run, agent, path = saved
  shutil.rmtree(path.parent)
  with pytest.raises(ValueError, match='has no node states'):
    saved_nodes.read(run, agent)


def body(sizes, tree, parts=b''):
  return json.dumps({'sizes': sizes, 'tree': tree}).encode() + b'\n' + parts


@pytest.mark.parametrize(
  'forged',
  [
    None,  # Only a flipped bit.
    pickle.dumps(print),
    b'',
    b'[' * 100_000 + b'\n',
    body([5], {'bytes': 0}, b'abcd'),
    body([10**13], {'bytes': 0}),
    body([9, -5], 0, b'abcd'),
    body('x', 0),
  ],
)
def test_a_damaged_or_foreign_file_is_refused_in_one_line(
  saved, monkeypatch, forged
):
  run, agent, path = saved
  if forged is None:
    round_trips.flip(path, 30)
  else:
    path.write_bytes(forged)
    monkeypatch.setattr(untrusted, 'check_sha256', lambda *args: None)
  with pytest.raises(ValueError, match='do not fit this run') as info:
    saved_nodes.read(run, agent)
  assert run.workdir in str(info.value) and '\n' not in str(info.value)
  # There is no other checkpoint.
  assert str(info.value).endswith('). Choose another workdir.')
  assert len(str(info.value)) < 700
  (path.parents[1].with_name('checkpoint-0') / 'replay').mkdir(parents=True)
  with pytest.raises(ValueError, match='Delete that checkpoint to resume'):
    saved_nodes.read(run, agent)


def test_other_behaviors_are_refused(saved, tmp_path):
  run, _, _ = saved
  other = fakes.make_agent('bt', tmp_path / 'behavior')
  with pytest.raises(ValueError, match='with other behaviors\\). Resume it'):
    saved_nodes.read(run, other)


def test_parameters_identify_a_behavior_and_else_its_name(tmp_path):
  one, moved = (
    saved_nodes.layout(fakes.make_agent('bt', tmp_path / name))['behaviors']
    for name in 'ab'
  )
  assert one == moved and len(set(one)) == len(one) > 1


def test_a_random_key_is_part_of_the_checksum():
  keyed = (
    types.SimpleNamespace(params=lambda s=s: jax.random.key(s))
    for s in (0, 0, 1)
  )
  one, same, other = map(saved_nodes._checksum, keyed)
  assert one == same != other


@pytest.fixture(name='old_run')
def copy_old_run(tmp_path, monkeypatch):
  """Returns the directory of a stopped run that an earlier version saved."""
  folder = tmp_path / 'old'
  shutil.copytree(_DATA / 'in_process_run_of_0_1_0', folder)
  packed = folder / 'checkpoints' / 'run.xz'
  packed.with_suffix('').write_bytes(lzma.decompress(packed.read_bytes()))
  packed.unlink()
  with (folder / 'checkpoints' / 'run').open('rb') as file:
    identity = json.loads(file.readline())['identity']
  versions = {name: identity[name] for name in saved_nodes._VERSIONS}
  monkeypatch.setattr(saved_nodes, '_VERSIONS', versions)
  return folder


@pytest.mark.usefixtures('shared_functions')
def test_a_run_of_an_earlier_version_resumes(old_run):
  before = sorted(old_run.rglob('*'))
  run = bt_acme.load_run(old_run)
  assert run.actor_steps == 120 and run.statistics.error_count == 120
  assert sorted(old_run.rglob('*')) == before  # Loading only reads.
  resumed = run.resume(200)
  assert 200 <= resumed.actor_steps < 202
  # The logs continue without duplicate rows.
  steps = resumed.episodes['actor_steps']
  assert (np.diff(steps) >= 0).all() and steps[0] < 120 < steps[-1]
  points = resumed.evaluations['evaluation_point']
  assert points.tolist() == [0, 0, 100, 100, 200, 200]
  left = {path.name for path in (old_run / 'checkpoints').iterdir()}
  assert left == {'checkpoint-1', 'checkpoint-2'}


def test_a_damaged_file_of_an_earlier_version_is_refused(old_run):
  round_trips.flip(old_run / 'checkpoints' / 'run', -33)
  with pytest.raises(ValueError, match='do not fit this run'):
    bt_acme.load_run(old_run)


def test_other_versions_do_not_resume(old_run, monkeypatch):
  monkeypatch.setitem(saved_nodes._VERSIONS, 'jax', '0.0.1')
  with pytest.raises(ValueError, match='other versions: jax=') as info:
    bt_acme.load_run(old_run)
  # An earlier checkpoint would not help.
  assert 'Delete' not in str(info.value)
