"""Checks the Dockerfiles as far as possible without a Docker daemon."""

import pathlib
import re
import shlex
import subprocess

import pytest

_ROOT = pathlib.Path(__file__).parents[1]
_DOCKERFILES = ('Dockerfile', 'Dockerfile.cuda')


def _instructions(name):
  """Returns (keyword, arguments) pairs; continuation lines are joined."""
  lines = (_ROOT / name).read_text().replace('\\\n', ' ').splitlines()
  return [
    line.split(maxsplit=1)
    for line in lines
    if line.strip() and not line.startswith('#')
  ]


def _arguments(name, keyword):
  return [text for key, text in _instructions(name) if key == keyword]


@pytest.fixture(name='dockerfile', params=_DOCKERFILES)
def dockerfile_fixture(request):
  return request.param


def test_instructions_are_known_and_in_order(dockerfile):
  keywords = [key for key, _ in _instructions(dockerfile)]
  assert keywords[0] == 'FROM' and keywords[-1] == 'CMD'
  assert set(keywords) <= set('FROM WORKDIR COPY RUN USER ENV CMD'.split())


def test_python_is_that_of_the_full_stack(dockerfile):
  (image,) = _arguments(dockerfile, 'FROM')
  setup = (_ROOT / 'scripts/setup.sh').read_text()
  (version,) = re.findall(r"full\) versions='([\d.]+)'", setup)
  assert image.startswith(f'python:{version}-')


def test_copied_files_exist_and_are_in_the_build_context(dockerfile):
  context = {
    line[1:]
    for line in (_ROOT / '.dockerignore').read_text().splitlines()
    if line.startswith('!')
  }
  for text in _arguments(dockerfile, 'COPY'):
    *sources, _ = text.split()
    for source in sources:
      assert (_ROOT / source).exists(), source
      assert source.partition('/')[0] in context, source


def test_install_commands_are_those_of_the_project(dockerfile):
  commands = _arguments(dockerfile, 'RUN')
  for command in commands:
    subprocess.run(['sh', '-n', '-c', command], check=True)
  packages = [
    [word for word in shlex.split(command)[4:] if not word.startswith('--')]
    for command in commands
    if command.startswith('python -m pip install ')
  ]
  extra = {'Dockerfile': '.', 'Dockerfile.cuda': '.[cuda12]'}[dockerfile]
  assert packages == [['-r', 'requirements/full.txt'], [extra]]
  assert "'cuda12':" in (_ROOT / 'setup.py').read_text()


def test_the_documented_volume_is_writable(dockerfile):
  """A named volume has the owner in the image; a bind mount may not."""
  text = (_ROOT / dockerfile).read_text()
  (volume,) = re.findall(r'-v (\S+):/bt_acme/runs ', text)
  assert re.fullmatch(r'\w+', volume)
  assert 'mkdir runs && chown -R user: .' in text
