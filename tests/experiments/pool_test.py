"""Runs at a time: their order, their news, and their failures."""

import functools
import os

import pytest

from experiments import pool


def _write(job, report, folder):
  if job == 'fails':
    raise ValueError('It fails.')
  if job == 'dies':
    os._exit(9)
  seen = sorted(path.name for path in folder.iterdir())
  report(seen)
  (folder / job).write_text(os.environ['OMP_NUM_THREADS'])


def _complete(tmp_path, jobs, **settings):
  folder = tmp_path / 'results'
  folder.mkdir(exist_ok=True)
  pool.complete(
    jobs,
    functools.partial(_write, folder=folder),
    **settings,
  )
  return folder


def test_jobs_that_must_wait_are_executed_after_the_others(tmp_path):
  ended, news = [], []
  folder = _complete(
    tmp_path,
    ['b', 'a'],
    processes=2,
    is_ready=lambda job: job == 'a' or 'a' in ended,
    on_news=lambda job, seen: news.append((job, seen)),
    on_end=ended.append,
  )
  assert ended == ['a', 'b']
  assert news == [('a', []), ('b', ['a'])]
  assert (folder / 'a').read_text() == '1'  # One thread for each.
  assert (
    'XLA_FLAGS' not in os.environ
    or 'eigen=false' not in os.environ['XLA_FLAGS']
  )


@pytest.mark.parametrize(
  ('job', 'message'),
  [('fails', 'fails failed.\n.*Traceback'), ('dies', 'ended with code 9')],
)
def test_a_failure_ends_the_others(tmp_path, job, message):
  with pytest.raises(RuntimeError, match=f'(?s){message}'):
    _complete(tmp_path, [job], processes=1)


def test_a_job_that_waits_for_nothing_is_an_error(tmp_path):
  with pytest.raises(RuntimeError, match='a waits for a job that is not run'):
    _complete(tmp_path, ['a'], processes=1, is_ready=lambda job: False)
