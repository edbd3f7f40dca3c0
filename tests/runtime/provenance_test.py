"""Tests of the provenance of a run."""

import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys

import jax
import numpy as np
import pytest

from bt_acme import environments as env
from bt_acme.config import run as run_config
from bt_acme.runtime import executables, metrics_logger, provenance, seeds
from tests.runtime import round_trips
from tests.simulation import clock as clock_lib

START = 1_700_000_000.0


@pytest.fixture(name='clock')
def make_clock(monkeypatch):
  """Returns the clock of these modules."""
  clock = clock_lib.Clock()
  for module in (provenance, metrics_logger):
    monkeypatch.setattr(module, 'time', clock)
  return clock


def test_a_session_is_recorded(tmp_path, clock, monkeypatch):
  monkeypatch.setattr(sys, 'argv', ['launch/run_bt.py', '--env=a b'])
  given = {'behaviors': ['ab12'], 'init_from': None}
  provenance.begin(str(tmp_path), given)
  provenance.note_device(str(tmp_path))
  clock.now += 90
  provenance.end(str(tmp_path))
  record = json.loads((tmp_path / 'provenance.json').read_text())
  assert record['params_sha256'] == given
  (session,) = record['sessions']
  assert session['started'] == '2023-11-14T22:13:20.000+00:00'
  assert session['ended'] == '2023-11-14T22:14:50.000+00:00'
  assert session['command'] == "launch/run_bt.py '--env=a b'"
  assert session['host'] == socket.gethostname()
  assert session['device'].endswith('cpu')
  assert 'cpu cpu' not in session['device']
  two = [*jax.devices(), *jax.devices()][:2]
  monkeypatch.setattr(jax, 'devices', lambda: two)
  provenance.note_device(str(tmp_path))
  assert provenance.read(str(tmp_path))['sessions'][0]['device'] == '2 x cpu'
  assert session['versions']['numpy'] == np.__version__
  assert session['versions']['python'] == sys.version.split()[0]


@pytest.mark.parametrize('derive', [seeds.for_run, seeds.for_node])
def test_every_session_and_every_attempt_has_its_own_seed(derive):
  drawn = [derive(seed, i) for i in range(50) for seed in (3, 4)]
  # The first one uses the seed of the run.
  assert drawn[:2] == [3, 4] and len(set(drawn)) == 100
  assert all(0 <= seed <= run_config.LARGEST_SEED for seed in drawn)
  # The seeds of environments differ, too.
  environments = [env.seed_of(seed, i) for seed in drawn for i in range(20)]
  assert len(set(environments)) == 2000


def test_seeds_of_attempts_sessions_and_evaluations_differ():
  derived = (seeds.for_node, seeds.for_run, seeds.for_evaluation)
  assert len({f(7, 1) for f in derived}) == 3


def test_seconds_continue_over_sessions(tmp_path, clock):
  workdir = str(tmp_path)
  assert provenance.current(workdir) == provenance.Session(0, START, 0.0)
  provenance.begin(workdir, {})
  assert provenance.current(workdir) == provenance.Session(0, START, 0.0)
  clock.now += 10
  provenance.end(workdir)
  clock.now += 1_000  # The run is idle.
  provenance.begin(workdir, {})
  session = provenance.current(workdir)
  assert session == provenance.Session(1, START + 1_010, 10.0)
  assert session.seconds(START + 1_015) == 15.0
  # This session is killed; only its last row shows how long it ran.
  for label, seconds in (('actor', 4), ('learner', 2)):
    logger = metrics_logger.MetricsLogger(
      tmp_path, label, clock=metrics_logger.time.time
    )
    clock.now += seconds
    logger.write({'actor_steps': 1})
    logger.close()
  clock.now += 1_000
  provenance.begin(workdir, {})
  assert provenance.current(workdir).number == 2
  assert provenance.current(workdir).seconds_before == 16.0
  sessions = provenance.read(workdir)['sessions']
  ended = [session['ended'] is not None for session in sessions]
  assert ended == [True, False, False]
  # The next session was killed before it wrote a row.
  provenance.begin(workdir, {})
  assert provenance.current(workdir).seconds_before == 16.0
  clock.now -= 500  # The clock of the machine is set back.
  provenance.end(workdir)
  provenance.begin(workdir, {})
  assert provenance.current(workdir).seconds_before == 16.0


def test_a_record_with_the_old_name_of_sessions_is_continued(tmp_path):
  workdir = str(tmp_path)
  provenance.begin(workdir, {})
  path = tmp_path / 'provenance.json'
  path.write_text(path.read_text().replace('"sessions"', '"lives"'))
  assert '"lives"' in path.read_text()
  assert provenance.current(workdir).number == 0
  provenance.begin(workdir, {})
  assert provenance.current(workdir).number == 1
  record = json.loads(path.read_text())
  assert len(record['sessions']) == 2 and 'lives' not in record


def test_a_record_keeps_its_first_and_its_last_sessions(tmp_path, clock):
  for _ in range(105):
    provenance.begin(str(tmp_path), {})
    clock.now += 1
    provenance.end(str(tmp_path))
  record = provenance.read(str(tmp_path))
  before = [x['seconds_before'] for x in record['sessions']]
  assert before == [0.0, *range(4, 105)] and record['dropped'] == 3
  session = provenance.current(str(tmp_path))
  assert session == provenance.Session(104, START + 104, 104.0)
  # A record from before the limit was introduced.
  round_trips.edit(
    tmp_path / 'provenance.json', lambda record: record.pop('dropped')
  )
  assert provenance.current(str(tmp_path)).number == 101


def test_an_error_names_a_damaged_record(tmp_path):
  (tmp_path / 'provenance.json').write_text('{"sessions": [{}]}')
  with pytest.raises(ValueError, match='json is damaged .* Delete'):
    provenance.begin(str(tmp_path), {})


def _git(folder, *arguments):
  done = subprocess.run(
    ['git', '-c', 'user.name=a', '-c', 'user.email=a@b', *arguments],
    cwd=folder,
    check=True,
    capture_output=True,
    text=True,
    env={k: v for k, v in os.environ.items() if not k.startswith('GIT_')},
  )
  return done.stdout.strip()


@pytest.mark.skipif(not shutil.which('git'), reason='needs git')
def test_the_commit_belongs_to_the_package(tmp_path, monkeypatch):
  package = tmp_path / 'site-packages' / 'bt_acme'
  package.mkdir(parents=True)
  (package / 'version.py').write_text('1')
  (tmp_path / 'thesis').write_text('1')
  monkeypatch.setattr(provenance.version, '__file__', package / 'version.py')
  code = provenance._code.__wrapped__
  assert code() == {'commit': None, 'dirty': None}
  # A project that contains the installed package.
  _git(tmp_path, 'init', '-q')
  _git(tmp_path, 'add', 'thesis')
  _git(tmp_path, 'commit', '-qm', 'mine')
  assert code() == {'commit': None, 'dirty': None}
  _git(tmp_path, 'add', '.')
  _git(tmp_path, 'commit', '-qm', 'a checkout')
  commit = _git(tmp_path, 'rev-parse', 'HEAD')
  monkeypatch.setenv('GIT_DIR', str(pathlib.Path('elsewhere').absolute()))
  # Git must not refresh its index, because that takes a lock.
  os.utime(package / 'version.py', (1, 1))
  index = (tmp_path / '.git' / 'index').read_bytes()
  assert code() == {'commit': commit, 'dirty': False}
  assert (tmp_path / '.git' / 'index').read_bytes() == index
  (package / 'version.py').write_text('2')
  assert code() == {'commit': commit, 'dirty': True}


def test_without_git_the_commit_is_none(monkeypatch):
  monkeypatch.setenv('PATH', '')
  assert provenance._code.__wrapped__() == {'commit': None, 'dirty': None}


def test_an_error_names_a_different_directory(tmp_path, clock):
  provenance.begin(str(tmp_path), {})
  clock.now += 5.0
  session = provenance.current(str(tmp_path))
  require = executables.require_workdir
  assert require(dict, str(tmp_path), session)(a=1) == {'a': 1}
  # The directory of another run, of an earlier session, and of no run.
  (tmp_path / 'other').mkdir()
  provenance.begin(str(tmp_path / 'other'), {})
  later = session._replace(number=1)
  for folder, wanted in (('other', session), ('', later), ('none', session)):
    with pytest.raises(RuntimeError, match='a directory that all machines'):
      require(dict, str(tmp_path / folder), wanted)()
