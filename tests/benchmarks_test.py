"""Benchmarks run; what they measure is no matter for tests."""

import json
import pathlib
import subprocess
import sys

import pytest

from benchmarks import __main__ as main
from benchmarks import harness

ROOT = pathlib.Path(__file__).parents[1]


def run_module(module, *arguments):
  return subprocess.run(
    [sys.executable, '-m', module, *arguments],
    cwd=ROOT,
    capture_output=True,
    text=True,
    check=False,
  )


def run(*arguments):
  return run_module('benchmarks', *arguments)


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


def test_what_calls_leave_to_be_done_is_timed_with_them(monkeypatch):
  times = [0.0]
  monkeypatch.setattr(harness, 'clock', lambda: times[0])

  def work(seconds):
    times[0] += seconds

  result = harness.seconds_per_call(lambda: work(1), 2, lambda: work(4))
  assert result == (2 + 4) / 2


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


def check_rows(name, tmp_path):
  path = tmp_path / 'results.json'
  result = run(name, '--quick', '--rounds=1', f'--json={path}')
  assert result.returncode == 0, result.stderr
  assert name in result.stdout
  rows = json.loads(path.read_text())[name]['rows']
  assert rows
  for row in rows:
    assert row['ours'] > 0 and row['theirs'] > 0 and row['ratio'] > 0


def test_a_benchmark_gives_rows(tmp_path):
  check_rows('h2d', tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize('name', sorted(set(main.BENCHMARKS) - {'h2d'}))
def test_every_other_benchmark_gives_rows(name, tmp_path):
  check_rows(name, tmp_path)


@pytest.mark.slow
def test_the_accelerator_benchmark_runs_on_a_cpu():
  result = run_module('benchmarks.gpu', '--scale=tiny')
  assert result.returncode == 0, result.stderr
  for row in ('learner-gpu', 'inference-gpu'):
    assert row in result.stdout
