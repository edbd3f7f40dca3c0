"""Tasks that are functions: their order, their news, and their failures."""

import os
import pathlib
import signal
import subprocess
import sys
import time

from experiments.harness import dataset, hosts, records
from tests.experiments.harness import fakes

_ROOT = pathlib.Path(__file__).parents[3]


def _complete(folder, *todo, processes=1):
  folder.mkdir(exist_ok=True)
  lines, done, news = [], [], []
  code = hosts.complete(
    folder,
    todo,
    processes=processes,
    say=lines.append,
    on_done=lambda task: done.append(task.id),
    on_news=lambda task, text: news.append((task.id, text)),
  )
  return code, lines, done, news


def test_one_process_executes_what_is_ready_one_after_the_other(tmp_path):
  first = fakes.Write('first')
  last = fakes.Write('last', (first,))
  code, lines, done, news = _complete(tmp_path, last, first)
  assert (code, lines, done) == (0, [], ['first', 'last'])
  assert news == [('first', 'FIRST'), ('last', 'LAST')]
  lines = (tmp_path / 'executions').read_text().splitlines()
  assert len({line.split(' ', 1)[1] for line in lines}) == 1
  assert lines[0].endswith(' 1')  # It has one thread.
  for task in (first, last):
    assert records.tail_of_log(tmp_path, task) == (f'{task.id} is heard',)
    assert records.read(tmp_path, task).attempts == 1


def test_a_failure_leaves_the_others_and_is_said_in_a_line(tmp_path):
  fails = fakes.Write('fails')
  blocked, other = fakes.Write('blocked', (fails,)), fakes.Write('other')
  code, lines, done, _ = _complete(tmp_path, fails, blocked, other)
  assert (code, done) == (1, ['other'])
  assert lines[:3] == [
    f'fails: exit code 1, failure {i} of 3' for i in (1, 2, 3)
  ]
  assert 'with exit code 1: ValueError: It fails. Remove ' in lines[3]
  assert '1 runs are done, 0 are left, 1 have failed, and 1 need' in lines[4]
  assert len(lines) == 5
  assert records.status_of(tmp_path, fails) == dataset.FAILED


def test_a_process_that_dies_is_replaced(tmp_path):
  code, lines, done, _ = _complete(
    tmp_path, fakes.Write('dies'), fakes.Write('other')
  )
  assert (code, done) == (0, ['dies', 'other'])
  assert lines == ['dies: exit code 9, failure 1 of 3']


def test_of_two_workers_one_is_killed(tmp_path):
  names = ['slow_1', 'slow_2', 'slow_3']
  one, other = (_start(tmp_path, *names) for _ in range(2))
  _wait(lambda: sum(fakes.counts(tmp_path).values()) == 2)
  one.send_signal(signal.SIGKILL)
  one.communicate()
  (tmp_path / 'go').touch()
  other.communicate(timeout=60)
  assert other.returncode == 0
  # Only the task that the killed worker had is begun again.
  assert sorted(fakes.counts(tmp_path).values()) == [1, 1, 2]
  assert all((tmp_path / name).exists() for name in names)


def test_a_signal_stops_and_frees(tmp_path):
  worker = _start(tmp_path, 'slow')
  _wait(lambda: fakes.counts(tmp_path))
  worker.send_signal(signal.SIGINT)
  output, _ = worker.communicate(timeout=60)
  assert worker.returncode == 128 + signal.SIGINT
  assert 'The same command goes on with what is left.' in output
  task = fakes.Write('slow')
  assert records.status_of(tmp_path, task) == dataset.WAITING


def _start(folder, *names):
  return subprocess.Popen(
    [sys.executable, fakes.__file__, 'host', folder, *names],
    env={**os.environ, 'PYTHONPATH': str(_ROOT)},
    stdout=subprocess.PIPE,
    text=True,
  )


def _wait(condition):
  end = time.monotonic() + 60
  while not condition():
    assert time.monotonic() < end
    time.sleep(0.02)
