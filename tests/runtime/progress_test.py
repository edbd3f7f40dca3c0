"""The progress line, on a terminal, in a file and in a supervised process."""

import sys
import types
from unittest import mock

import pytest

from bt_acme.runtime import progress as progress_lib
from tests.simulation import clock as clock_lib

_VALUES = {
  'actor_steps': 12_340,
  'learner_steps': 600,
  'replay_size': 1_500,
  'episode_return': 0.25,
  'evaluator_return': -1.0,
}


@pytest.mark.parametrize(
  'values, speeds, line',
  [
    (
      _VALUES,
      {'actor_steps': 100.0, 'learner_steps': 2.5},
      'actor steps 12,340 / 20,000 (62%), 0:01:17 left | 100 steps/s | '
      '2.5 learner steps/s | replay 1,500 | return 0.25 | eval -1.00',
    ),
    ({}, {}, 'actor steps 0 / 20,000 (0%)'),
    (
      {'actor_steps': 20_003},
      {'actor_steps': 1.0},
      'actor steps 20,003 / 20,000 (100%), 0:00:00 left | 1 steps/s',
    ),
    (
      {'actor_steps': 30_000},
      {'actor_steps': 0.0, 'learner_steps': 0.0},
      'actor steps 30,000 / 20,000 (150%) | 0 steps/s',
    ),
  ],
)
def test_progress_line(values, speeds, line):
  assert progress_lib.progress_line(values, 20_000, speeds) == line


@pytest.fixture(name='read')
def make_read(monkeypatch, capsys):
  """Returns a function that reads what a process without a supervisor shows."""
  monkeypatch.delenv(progress_lib.STATUS_VARIABLE, raising=False)
  return lambda: capsys.readouterr().err


def test_progress_prints_a_line_every_ten_seconds(read):
  clock = clock_lib.Clock()
  progress = progress_lib.Progress(1000, clock.monotonic)
  # For a resumed run, speeds are measured from here on.
  for second in range(0, 22, 2):
    progress.update({'actor_steps': 500 + 10 * second})
    clock.now += 2
  progress.close()
  expected = (
    'actor steps 500 / 1,000 (50%)\n',
    'actor steps 600 / 1,000 (60%), 0:00:40 left | 10 steps/s\n',
    *('actor steps 700 ', 'actor steps '),
  )
  for line, start in zip(read().splitlines(True), expected, strict=True):
    assert line.startswith(start)


def test_a_broken_pipe_does_not_end_a_run(read, monkeypatch):
  fail = mock.Mock(side_effect=BrokenPipeError)
  monkeypatch.setattr(sys.stderr, 'write', fail)
  progress = progress_lib.Progress(1000)
  progress.update(_VALUES)
  progress.close()
  monkeypatch.setattr(sys, 'stderr', None)  # The user has closed it.
  progress_lib.Progress(1000).update(_VALUES)


def test_speeds_are_averages_of_the_last_half_minute(read):
  clock = clock_lib.Clock()
  progress = progress_lib.Progress(10**6, clock.monotonic)
  steps = 0
  for second in range(200):
    progress.update({'actor_steps': steps, 'learner_steps': second})
    steps += 1000 if second < 100 else 10
    clock.now += 1
  assert '| 10 steps/s | 1.0 learner steps/s' in read().splitlines()[-1]
  progress.update({'actor_steps': 0})  # One of several runs starts again.
  assert '(0%) | 0 steps/s' in read().splitlines()[-1]


def test_a_terminal_shows_a_bar_with_the_text(read, monkeypatch):
  clock = clock_lib.Clock()
  monkeypatch.setattr(sys.stderr, 'isatty', lambda: True)
  progress = progress_lib.Progress(20_000, clock.monotonic)
  assert read()  # Before anything is compiled.
  progress.update({'actor_steps': 0})
  progress.update({'actor_steps': 10})  # Too soon.
  clock.now += 1
  progress.update(_VALUES)
  progress.close()
  shown = read()
  texts = shown.split('\r')
  assert texts[-1].endswith('\n')
  assert 'actor steps 12,340 / 20,000 (62%), 0:00:01 left' in texts[-1]
  assert '| replay 1,500 | return 0.25 | eval -1.00' in texts[-1]
  assert 'steps 10 /' not in shown


@pytest.mark.parametrize('mode, seconds', [('plain', 10), ('live', 1)])
def test_a_supervised_process_marks_its_line(
  monkeypatch, capsys, mode, seconds
):
  monkeypatch.setenv(progress_lib.STATUS_VARIABLE, mode)
  clock = clock_lib.Clock()
  progress = progress_lib.Progress(1000, clock.monotonic)
  for seconds_more in (seconds - 0.1, 0.2):
    progress.update({'actor_steps': 500})
    clock.now += seconds_more
  progress.update({'actor_steps': 501})
  output, errors = capsys.readouterr()
  first, second, rest = output.split('\n')
  mark = progress_lib.STATUS_MARK
  assert first == f'{mark}actor steps 500 / 1,000 (50%)'
  assert second.startswith(f'{mark}actor steps 501 / 1,000 (50%)')
  assert not rest and not errors


@pytest.mark.parametrize('kernel', [True, False])
def test_a_notebook_shows_a_bar(read, monkeypatch, kernel):
  shell = types.SimpleNamespace(**({'kernel': None} if kernel else {}))
  ipython = types.SimpleNamespace(get_ipython=lambda: shell)
  monkeypatch.setitem(sys.modules, 'IPython', ipython)
  monkeypatch.setitem(sys.modules, 'ipykernel', types.SimpleNamespace())
  progress_lib.Progress(20_000).close()
  assert bool(read()) == kernel
