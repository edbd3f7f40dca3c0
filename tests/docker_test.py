"""Checks the Dockerfiles as far as possible without a Docker daemon."""

import re
import shlex
import subprocess

import pytest

from tests import python


def _arguments(name, keyword):
  """Returns the arguments of instructions; continuation lines are joined."""
  lines = (python.ROOT / name).read_text().replace('\\\n', ' ').splitlines()
  start = f'{keyword} '
  return [x.removeprefix(start).strip() for x in lines if x.startswith(start)]


@pytest.mark.parametrize('name', ('Dockerfile', 'Dockerfile.cuda'))
def test_a_dockerfile_agrees_with_the_project(name):
  (image,) = _arguments(name, 'FROM')
  setup = (python.ROOT / 'scripts/setup.sh').read_text()
  (version,) = re.findall(r"full\) versions='([\d.]+)'", setup)
  assert image.startswith(f'python:{version}-')
  context = (python.ROOT / '.dockerignore').read_text().splitlines()
  for text in _arguments(name, 'COPY'):
    *sources, _ = text.split()
    for source in sources:
      assert (python.ROOT / source).exists(), source
      assert '!' + source.partition('/')[0] in context, source
  commands = _arguments(name, 'RUN')
  for command in commands:
    subprocess.run(['sh', '-n', '-c', command], check=True)
  packages = [
    [word for word in shlex.split(command)[4:] if not word.startswith('--')]
    for command in commands
    if command.startswith('python -m pip install ')
  ]
  extra = {'Dockerfile': '.', 'Dockerfile.cuda': '.[cuda12]'}[name]
  assert packages == [['-r', 'requirements/full.txt'], [extra]]
  # A named volume has the owner in the image; a bind mount may not.
  text = (python.ROOT / name).read_text()
  (volume,) = re.findall(r'-v (\S+):/bt_acme/runs ', text)
  assert re.fullmatch(r'\w+', volume)
  assert 'mkdir runs && chown -R user: .' in text
