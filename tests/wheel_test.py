"""Checks that the wheel is complete: it is installed and used elsewhere."""

import email
import os
import pathlib
import shutil
import zipfile

import pytest

from bt_acme import version
from tests import python

ROOT = pathlib.Path(__file__).parents[1]
_BUILD = ('setup.py', 'pyproject.toml', 'README.md', 'requirements', 'bt_acme')
_PROGRAM = """
import bt_acme
from bt_acme.evaluation import human_normalized_scores

print(bt_acme.__file__, bt_acme.__version__)
print(human_normalized_scores.human_normalized('pong', -20.7))
run = bt_acme.train('MiniGrid-Empty-5x5-v0', max_actor_steps=400, workdir='run',
  num_environments=4, torso_size=8, lstm_size=8, head_size=8, trace_length=8,
  sequence_period=4, min_replay_size=10, batch_size=4, evaluation_episodes=1)
played = bt_acme.evaluate(run, episodes=2)
bt_acme.plots.visits({'R2D2': played}, path='visits.png')
bt_acme.plots.learning_curves({'R2D2': run}, path='curves.png')
bt_acme.video.show(run, max_frames=5).save('episode.webm')
"""


@pytest.fixture(name='wheel', scope='module')
def build(tmp_path_factory):
  folder = tmp_path_factory.mktemp('wheel')
  source = folder / 'source'
  source.mkdir()
  for name in _BUILD:  # A copy, because a build writes next to its source.
    copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
    copy(ROOT / name, source / name)
  python.check(
    *('-m', 'pip', 'wheel', '--quiet', '--no-deps', '--no-build-isolation'),
    *('--wheel-dir', folder, source),
  )
  (wheel,) = folder.glob('*.whl')
  return wheel


def test_wheel_has_metadata_and_every_module_and_data_file(wheel):
  with zipfile.ZipFile(wheel) as archive:
    names = set(archive.namelist())
    (name,) = [n for n in names if n.endswith('/METADATA')]
    metadata = email.message_from_bytes(archive.read(name))
  assert metadata['Version'] == version.__version__
  assert metadata['Requires-Python'] == '>=3.10'
  assert metadata.get_payload().startswith('# bt_acme')
  urls = dict(url.split(', ') for url in metadata.get_all('Project-URL'))
  assert urls['Source'].endswith('/bt_acme')
  package = ROOT / 'bt_acme'
  expected = {
    str(path.relative_to(ROOT))
    for pattern in ('*.py', '*.pyi', '*.json', '*.csv', 'py.typed')
    for path in package.rglob(pattern)
  }
  assert 'bt_acme/py.typed' in expected
  assert expected <= names
  assert {name.partition('/')[0] for name in names} == {
    'bt_acme',
    f'bt_acme-{version.__version__}.dist-info',
  }


def test_wheel_works_in_an_empty_directory(wheel, tmp_path):
  site = tmp_path / 'site'
  install = ('-m', 'pip', 'install', '--quiet', '--no-deps')
  python.check(*install, '--target', site, wheel)
  folder = tmp_path / 'empty'
  folder.mkdir()
  environment = {**os.environ, 'PYTHONPATH': str(site)}
  done = python.check('-c', _PROGRAM, cwd=folder, env=environment)
  assert done.stdout.startswith(str(site))
  for name in ('visits.png', 'curves.png', 'episode.webm', 'run/config.json'):
    assert (folder / name).is_file()
