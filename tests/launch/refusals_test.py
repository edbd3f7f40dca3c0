"""Settings that the launch scripts refuse before they start, and their help."""

import socket
import sys

import pytest

from tests.launch import scripts

_ON_RAY = '--lp_launch_type=ray --ray_address=1.2.3.4:5 --ray_python='


@pytest.fixture(name='refuse')
def make_refuse(server, tmp_path):
  """Returns a function that runs a command that must be refused."""

  def refuse(script, *arguments):
    code, output, errors = server.train(script, tmp_path / 'run', *arguments)
    assert code == 2, errors
    assert errors.startswith('error: ') and errors.count('\n') == 1, errors
    assert not output and not scripts.contents(tmp_path)
    return errors

  return refuse


# The tests of `config` and `cli` check more messages about single settings.
@pytest.mark.parametrize(
  'command, message',
  [
    (f'ngu {_ON_RAY}none', "ray_python='none' is not an executable. Run `make"),
    (
      f'ngu {_ON_RAY}{sys.executable}',
      f"ray_address='1.2.3.4:5', ray_python={sys.executable!r}: "
      "ModuleNotFoundError: No module named 'ray'",
    ),
    (
      'continual --behavior=uniform',
      "'uniform' does not fit a bank that grows",
    ),
    ('continual --bank=', "bank='' is not a path. Pass the path"),
    ('continual --lp_launch_type=local_mp', "_type='local_mp' is invalid"),
    ('r2d2 --snapshot_steps=10', "='10' exports behaviors during pre-training"),
  ],
)
def test_bad_input(refuse, command, message):
  script, *arguments = command.split()
  assert message in refuse(f'run_{script}', *arguments)


def test_taken_port(refuse):
  with socket.socket() as server:
    server.bind(('', 0))
    server.listen()
    port = server.getsockname()[1]
    errors = refuse('run_r2d2', '--open_ports', f'--replay_port={port}')
  assert f'replay_port={port} cannot be used' in errors


def test_help(server):
  code, output, errors = server.run('run_bt', '--help')
  assert code == 0 and not errors
  assert output.splitlines()[0].endswith('.')
  names = 'lp_launch_type=local_mp preset=paper num_actors behavior'
  for name in names.split():
    assert f'  --{name}' in output
  assert 'launch/' in output and '--workdir=' in output
