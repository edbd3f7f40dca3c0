"""Tests that flags match the configuration, and one-line user errors."""

import dataclasses
import functools
import subprocess
import sys
from unittest import mock

import pytest
from absl import flags as absl_flags

from bt_acme import config
from bt_acme.cli import flags
from tests import python
from tests.launch import scripts

_SCRIPT = """'''Trains something.'''
import json
from absl import flags as absl_flags
from bt_acme import config
from bt_acme.cli import flags

_ENV = absl_flags.DEFINE_string('env', None, 'The game.')
flags.define(config.NGUConfig)


def main(argv):
  print(json.dumps([argv[1:], _ENV.value]))
  settings = flags.from_flags(
    config.NGUConfig, {'batch_size': 8, 'lstm_size': 16})
  print(settings.learner.batch_size, settings.network.lstm_size,
        settings.learner.loss, settings.learner.duplicate_flights)
  return 3


if __name__ == '__main__':
  flags.run_main(main, config.NGUConfig)
"""


@pytest.fixture(name='run', scope='module')
def _run(tmp_path_factory):
  script = tmp_path_factory.mktemp('launch') / 'train.py'
  script.write_text(_SCRIPT)

  return functools.partial(python.run, script, env=scripts.ENVIRONMENT)


_CONFIGS = [config.R2D2Config, config.NGUConfig, config.BTConfig]


@pytest.mark.parametrize('config_class', _CONFIGS)
def test_every_setting_is_a_flag_with_its_type_and_default(
  monkeypatch, config_class
):
  values = absl_flags.FlagValues()  # Replaces the global flags.
  monkeypatch.setattr(flags, 'FLAGS', values)
  flags.define(config_class)
  values(['script'])
  assert flags.from_flags(config_class) == config_class()
  count = 0
  for group in dataclasses.fields(config_class):
    for name, value in dataclasses.asdict(group.default).items():
      assert type(values[name].value) is type(value)
      assert values[name].help.endswith('.')
      count += 1
  assert count == len(list(values)) > 30


def test_the_home_directory_may_be_written_as_a_tilde(monkeypatch):
  values = absl_flags.FlagValues()  # Replaces the global flags.
  monkeypatch.setattr(flags, 'FLAGS', values)
  monkeypatch.setenv('HOME', '/me')
  flags.define(config.BTConfig)
  values(['script', '--flight_law=~/a,b~/c,~d,~/e', '--batch_size=3'])
  given = {'flight_law': '/me/a,b~/c,~d,/me/e', 'batch_size': 3}
  assert flags.given(config.BTConfig) == given


def test_the_exit_code_is_the_result_of_main(run):
  done = run('--env=pong', '--lstm_size=32', '--noduplicate_flights')
  assert done.returncode == 3, done.stderr
  assert done.stdout == '[[], "pong"]\n8 32 retrace False\n'


@pytest.mark.parametrize(
  'argument, message',
  [
    ('--batch_sise=3', 'Did you mean: batch_size'),
    ('--batch_size=few', '--batch_size=few'),
    ('--batch_size=-1', 'batch_size=-1 must be positive.'),
    ('pong', "'pong' is not a flag"),
  ],
)
def test_a_user_error_prints_one_line_and_exits_with_code_2(
  run, argument, message
):
  done = run(argument)
  assert done.returncode == 2
  assert done.stderr.startswith('error: ') and message in done.stderr
  assert done.stderr.count('\n') == 1


def test_verbosity_shows_the_traceback_of_a_user_error(run):
  done = run('--batch_size=-1', '--verbosity=1')
  assert 'Traceback' in done.stderr and 'error: batch_size=-1' in done.stderr


def test_a_diverged_learner_prints_one_line_and_exits_with_code_1(capsys):
  error = FloatingPointError('it has\ndiverged.')
  assert flags._run(mock.Mock(side_effect=error), []) == 1
  assert capsys.readouterr().err == 'error: it has diverged.\n'


def test_closed_standard_streams_are_not_reused_for_other_files():
  code = """import os, bt_acme.cli.flags as flags
names = ['/proc/self/fd/0', '/proc/self/fd/1', '/proc/self/fd/2']
flags.run_main(lambda argv: 3 + len({*map(os.readlink, names), '/dev/null'}))"""
  shell = 'exec "$0" -c "$1" <&- >&- 2>&-'
  assert subprocess.call(['sh', '-c', shell, sys.executable, code]) == 4


def test_help_whose_reader_has_left(run):
  shell = '"$0" -c "$1" --help | true'
  code = 'from bt_acme.cli import flags; flags.run_main(print)'
  done = subprocess.run(
    ['bash', '-o', 'pipefail', '-c', shell, sys.executable, code],
    capture_output=True,
    text=True,
  )
  assert (done.returncode, done.stderr) == (0, '')


def test_help_lists_own_flags_and_all_settings(run):
  done = run('-h')
  assert done.returncode == 0
  assert done.stdout.startswith('Trains something.\n')
  assert '  --env=None\n      The game.\n' in done.stdout
  assert 'The Q-network: a convolutional torso, an LSTM' in done.stdout
  for group in dataclasses.fields(config.NGUConfig):
    for name, value in dataclasses.asdict(group.default).items():
      assert f'  --{name}={value}\n' in done.stdout
  assert max(len(line) for line in done.stdout.splitlines()) <= 80
  assert 'lp_dummy' not in done.stdout
