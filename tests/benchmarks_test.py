"""Benchmarks run; what they measure is no matter for tests."""

import json
import pathlib
import subprocess
import sys

import pytest

from benchmarks import harness

ROOT = pathlib.Path(__file__).parents[1]


def run(*arguments):
  return subprocess.run(
    [sys.executable, '-m', 'benchmarks', *arguments],
    cwd=ROOT,
    capture_output=True,
    text=True,
    check=False,
  )


def alternating(log, name, values):
  values = iter(values)

  def measure():
    log.append(name)
    return next(values)

  return measure


def test_sides_take_turns_and_the_first_round_does_not_count():
  log = []
  row = harness.compare(
    'x',
    'ms',
    alternating(log, 'a', [99.0, 2.0, 4.0, 5.0]),
    alternating(log, 'b', [1.0, 8.0, 8.0, 15.0]),
    rounds=3,
    lower_is_better=True,
    limit=1.0,
  )
  assert log == ['a', 'b'] * 4
  assert (row.ours, row.theirs, row.rounds) == (4.0, 8.0, 3)
  assert (row.ratio, row.ratio_min, row.ratio_max) == (3.0, 2.0, 4.0)
  assert row.fraction == 0.25


def test_more_is_better_unless_said_otherwise():
  row = harness.compare(
    'x', 'steps/s', lambda: 6.0, lambda: 2.0, rounds=0, limit=8.0
  )
  assert (row.ratio, row.fraction, row.rounds) == (3.0, 0.75, 1)


def test_help_and_list():
  assert '--rounds' in run('--help').stdout
  listed = run('--list')
  assert listed.returncode == 0
  for name in ('actor', 'replay-bytes', 'e2e'):
    assert name in listed.stdout


def test_unknown_names_are_refused():
  result = run('actr')
  assert result.returncode == 2
  assert "'actr'" in result.stderr and "'actor'" in result.stderr


@pytest.mark.parametrize('name', ('h2d', 'actor'))
def test_a_benchmark_gives_rows(name, tmp_path):
  path = tmp_path / 'results.json'
  result = run(name, '--quick', '--rounds=1', f'--json={path}')
  assert result.returncode == 0, result.stderr
  assert name in result.stdout
  (row,) = json.loads(path.read_text())[name]['rows']
  assert row['ours'] > 0 and row['theirs'] > 0
  assert row['ratio'] > 0 and row['limit'] > 0
