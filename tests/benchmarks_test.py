"""Benchmarks run; what they measure is no matter for tests."""

import json
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[1]


def run(*arguments):
  return subprocess.run(
    [sys.executable, '-m', 'benchmarks', *arguments],
    cwd=ROOT,
    capture_output=True,
    text=True,
    check=False,
  )


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
