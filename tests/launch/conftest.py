"""What tests of the launch scripts share."""

import pytest

from tests.launch import scripts


@pytest.fixture(name='compiled', scope='session', autouse=True)
def share_compiled_functions(tmp_path_factory):
  """Lets every process find what another has compiled before."""
  folder = tmp_path_factory.mktemp('compiled')
  for name, value in (
    ('JAX_COMPILATION_CACHE_DIR', folder),
    ('JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS', 0),
    ('JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES', -1),
  ):
    scripts.ENVIRONMENT.setdefault(name, str(value))


@pytest.fixture(name='server', scope='session')
def start_server(compiled):
  """Runs scripts that begin with their imports done."""
  del compiled
  server = scripts.Server()
  yield server
  server.close()


@pytest.fixture(name='refuse')
def make_refuse(server, tmp_path):
  """Types what must be refused before anything starts or is written."""

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
