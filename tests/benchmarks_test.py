"""Tests that benchmarks run, without checking their measurements."""

import importlib
import json
import pathlib
import subprocess
import sys

import pytest

from benchmarks import __main__ as main
from benchmarks import catalog, harness, tables

ROOT = pathlib.Path(__file__).parents[1]


def run_module(module, *arguments):
  return subprocess.run(
    [sys.executable, '-m', module, *arguments],
    cwd=ROOT,
    capture_output=True,
    text=True,
    check=False,
  )


def alternating(log, name, costs):
  costs = iter(costs)

  def side():
    log.append(name)
    return next(costs)

  return side


def test_sides_alternate_and_the_first_round_is_ignored():
  log = []
  row = harness.measure(
    harness.Comparison(
      'x',
      'ms',
      alternating(log, 'a', [99.0, 2.0, 4.0, 5.0]),
      alternating(log, 'b', [1.0, 8.0, 8.0, 15.0]),
      limit=1.0,
    ),
    rounds=3,
  )
  assert log == ['a', 'b'] * 4
  assert (row['ours'], row['theirs'], row['rounds']) == (4e3, 8e3, 3)
  assert (row['ratio'], row['ratio_min'], row['ratio_max']) == (3.0, 2.0, 4.0)
  assert (row['limit'], row['fraction']) == (1e3, 0.25)


def test_rates_and_counts():
  rate = harness.Comparison('x', 'steps/s', lambda: 0.5, limit=0.25, once=True)
  row = harness.measure(rate, rounds=9)
  assert (row['ours'], row['limit'], row['fraction']) == (2.0, 4.0, 0.5)
  assert row['rounds'] == 1 and 'ratio' not in row
  count = harness.Comparison('x', 'MB/batch', lambda: 3.0)
  assert harness.measure(count, rounds=1)['ours'] == 3.0


def test_time_includes_unfinished_work(monkeypatch):
  times = [0.0]
  monkeypatch.setattr(harness, 'clock', lambda: times[0])
  monkeypatch.setattr(harness, 'round_seconds', 4.0)

  def work(seconds):
    times[0] += seconds
    return 10 * seconds

  side = harness.timed(lambda: work(1), share=0.5, finish=lambda: work(4))
  assert side() == (2 + 4) / 2
  assert harness.timed(lambda: work(1), units=None)() == 1 / 10


def test_format_rows():
  rows = [
    {'name': 'a', 'unit': 's', 'ours': 1234.5, 'rounds': 1, 'peer': 'dm-acme'},
    {'name': 'b', 'unit': 's', 'ours': 0.5, 'rounds': 2, 'peer': 'NumPy'},
  ]
  rows[0].update(note='why')
  rows[1].update(note='', theirs=1.0, ratio=2.0, ratio_min=1.5, ratio_max=3.0)
  rows[1].update(limit=0.25, fraction=0.5)
  table = [
    [cell.strip() for cell in line.strip('|').split('|')]
    for line in tables.format_rows(rows).splitlines()
  ]
  assert table[2] == ['a', 's', '1,234', '', '', '', '']
  assert table[3] == (
    ['b', 's', '0.5', '1 (NumPy)', '2.00x (1.50-3.00)', '0.25', '50%']
  )
  assert table[-1] == ['* a: why']


@pytest.fixture(name='command_line')
def make_command_line(monkeypatch):
  def set_arguments(*arguments):
    monkeypatch.setattr(sys, 'argv', ['benchmarks', *arguments])

  return set_arguments


def test_help_and_list(command_line, capsys):
  command_line('--help')
  with pytest.raises(SystemExit, match='0'):
    main.main()
  assert '--rounds' in capsys.readouterr().out
  command_line('--list')
  assert main.main() == 0
  listed = capsys.readouterr().out
  for name in ('actor', 'replay-bytes', 'e2e'):
    assert name in listed


@pytest.mark.parametrize(
  'arguments, messages',
  (
    (['actr'], ["'actr'", "'actor'"]),
    (['--here'], ['--here takes one benchmark']),
  ),
)
def test_invalid_arguments(arguments, messages, command_line, capsys):
  command_line(*arguments)
  with pytest.raises(SystemExit, match='2'):
    main.main()
  errors = capsys.readouterr().err
  for message in messages:
    assert message in errors


@pytest.mark.parametrize('name', catalog.BENCHMARKS)
def test_every_benchmark_in_the_catalog_exists(name):
  pytest.importorskip('reverb', reason='needs the full environment')
  module = importlib.import_module(
    f'benchmarks.{catalog.BENCHMARKS[name].module}'
  )
  assert callable(getattr(module, name.replace('-', '_')))


def check_rows(name, tmp_path):
  path = tmp_path / 'results.json'
  arguments = (name, '--quick', '--rounds=1', f'--json={path}')
  result = run_module('benchmarks', *arguments)
  assert result.returncode == 0, result.stderr
  assert name in result.stdout
  rows = json.loads(path.read_text())[name]['rows']
  assert rows
  for row in rows:
    assert row['ours'] > 0 and row['theirs'] > 0 and row['ratio'] > 0


def test_a_benchmark_returns_rows(tmp_path):
  check_rows('h2d', tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize('name', sorted(set(catalog.BENCHMARKS) - {'h2d'}))
def test_every_other_benchmark_returns_rows(name, tmp_path):
  check_rows(name, tmp_path)


@pytest.mark.slow
def test_the_accelerator_benchmark_runs_on_a_cpu():
  result = run_module('benchmarks.gpu', '--scale=tiny')
  assert result.returncode == 0, result.stderr
  for row in ('learner-gpu', 'inference-gpu'):
    assert row in result.stdout
