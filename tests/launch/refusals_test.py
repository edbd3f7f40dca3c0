"""Settings that the launch scripts refuse before they start, and their help."""

import socket
import sys

import pytest

from tests.launch import scripts

_ON_RAY = '--lp_launch_type=ray --ray_address=1.2.3.4:5 --ray_python='


# The tests of `config` and `cli` check more messages about single settings.
@pytest.mark.parametrize(
  'command, message',
  [
    (
      f'run_ngu {_ON_RAY}none',
      "ray_python='none' is not an executable. Run `make ray`",
    ),
    (
      f'run_ngu {_ON_RAY}{sys.executable}',
      f"ray_address='1.2.3.4:5', ray_python={sys.executable!r}: "
      "ModuleNotFoundError: No module named 'ray'",
    ),
    (
      'run_ngu --max_actor_steps=100 --min_replay_size=50',
      'fewer than min_replay_size=50, so the learner would never start',
    ),
    ('run_ngu --workdir=' + 'x' * 5000, 'is not writable: '),
    ('run_bt', "behavior='' is neither a directory"),
    (
      'run_continual --behavior=uniform',
      "behavior='uniform' does not fit a bank that grows",
    ),
    ('run_continual --bank=', "bank='' is empty. Pass the directory"),
    (
      'run_continual --lp_launch_type=local_mp',
      "lp_launch_type='local_mp' is invalid",
    ),
    (
      'run_bt --behavior=uniform --behavior_weights=1,2',
      'behavior_weights=(1.0, 2.0) is invalid',
    ),
    (
      'run_r2d2 --snapshot_steps=10',
      "snapshot_steps='10' exports behaviors during pre-training, but",
    ),
  ],
)
def test_bad_input(refuse, command, message):
  assert message in refuse(*command.split())


def test_bad_input_of_an_evaluation(server):
  code, output, errors = server.run('evaluate', '--behavior=x', '--epsilon=1.5')
  assert code == 2 and not output
  assert errors.startswith('error: epsilon=1.5 must not exceed 1')
  assert errors.count('\n') == 1


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


def test_a_script_as_a_process(tmp_path):
  """Runs a refused command without the test server."""
  with scripts.Script('run_r2d2', tmp_path / 'run', '--env=chess') as script:
    code, output, errors = script.end()
  assert code == 2 and not output
  assert errors.startswith("error: env='chess' is unknown")
  assert not (tmp_path / 'run').exists()
