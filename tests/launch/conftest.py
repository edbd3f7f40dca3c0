"""Fixtures for tests of the launch scripts."""

import pytest

from tests.launch import scripts


@pytest.fixture(name='server', scope='session')
def start_server():
  """Returns a server that runs scripts with all imports done."""
  server = scripts.Server()
  yield server
  server.close()


@pytest.fixture(name='refuse')
def make_refuse(server, tmp_path):
  """Returns a function that runs a command that must be refused."""

  def refuse(script, *arguments, workdir=None):
    workdir = workdir or tmp_path / 'run'
    folders = (tmp_path, workdir)
    before = [scripts.contents(folder) for folder in folders]
    code, output, errors = server.train(script, workdir, *arguments)
    assert code == 2, errors
    assert errors.startswith('error: ') and errors.count('\n') == 1, errors
    assert not output
    assert [scripts.contents(folder) for folder in folders] == before
    return errors

  return refuse
