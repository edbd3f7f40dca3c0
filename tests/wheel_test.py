"""Checks that the wheel is complete: it is installed and used elsewhere."""

import email
import os
import shutil
import zipfile

import pytest

from bt_acme import version
from tests import python

_BUILD = ('setup.py', 'pyproject.toml', 'README.md', 'requirements', 'bt_acme')
_PROGRAM = """
import bt_acme
from bt_acme.evaluation import human_normalized_scores

print(bt_acme.__file__, bt_acme.__version__)
print(human_normalized_scores.human_normalized('pong', -20.7))
behavior = bt_acme.load_behavior('minigrid-explorer')
played = bt_acme.evaluate(behavior, env='MiniGrid-Empty-5x5-v0', episodes=1)
bt_acme.plots.visits({'explorer': played}, path='visits.png')
"""


@pytest.fixture(name='wheel', scope='module')
def build(tmp_path_factory):
  folder = tmp_path_factory.mktemp('wheel')
  source = folder / 'source'
  source.mkdir()
  for name in _BUILD:  # A copy, because a build writes next to its source.
    copy = shutil.copytree if (python.ROOT / name).is_dir() else shutil.copy
    copy(python.ROOT / name, source / name)
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
  package = python.ROOT / 'bt_acme'
  expected = {
    str(path.relative_to(python.ROOT))
    for pattern in ('*.py', '*.pyi', '*.json', '*.csv', '*.npz', 'py.typed')
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
  assert (folder / 'visits.png').is_file()
