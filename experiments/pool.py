"""Several runs at a time, one process with one thread for each."""

import contextlib
import multiprocessing
import os
import queue
import signal
import threading
import traceback
from typing import Any, Callable, Iterator, List, NamedTuple, Sequence

from bt_acme import compilation_cache

# Processes read these when they start: each has one core for itself.
ONE_THREAD = {
  'JAX_PLATFORMS': 'cpu',
  'OMP_NUM_THREADS': '1',
  'XLA_FLAGS': '--xla_cpu_multi_thread_eigen=false '
  'intra_op_parallelism_threads=1',
}
_POLL_SECONDS = 1.0

# Executes a job, and calls the function that it is given with news of the job.
Execute = Callable[[Any, Callable[[Any], None]], None]


class _Message(NamedTuple):
  """What a process says about a job: news, its end, or an error."""

  job: int  # Its index.
  news: Any = None
  ended: bool = False
  error: str = ''


def complete(
  jobs: Sequence[Any],
  execute: Execute,
  *,
  processes: int,
  is_ready: Callable[[Any], bool] = lambda job: True,
  on_news: Callable[[Any, Any], None] = lambda job, news: None,
  on_end: Callable[[Any], None] = lambda job: None,
) -> None:
  """Executes jobs in processes of this machine.

  Args:
    jobs: what to execute, in this order as far as `is_ready` allows.
    execute: executes a job in a process; it and the jobs can be pickled.
    processes: how many jobs are executed at a time.
    is_ready: whether a job may start; asked again after each job's end.
    on_news: is called here with a job and the news that it sends.
    on_end: is called here with each job that has ended.

  Raises:
    RuntimeError: if a job fails, or a process dies. The others are ended.
  """
  if not jobs:
    return
  context = multiprocessing.get_context('spawn')
  tasks, messages = context.Queue(), context.Queue()
  workers = [
    context.Process(
      target=_work, args=(tasks, messages, execute, list(jobs)), daemon=True
    )
    for _ in range(min(processes, len(jobs)))
  ]
  try:
    with _environment():
      for worker in workers:
        worker.start()
    pending = list(range(len(jobs)))
    running = 0
    while pending or running:
      while running < len(workers):
        index = next((i for i in pending if is_ready(jobs[i])), None)
        if index is None:
          break
        pending.remove(index)
        tasks.put(index)
        running += 1
      if not running:
        raise RuntimeError(
          f'{jobs[pending[0]]} waits for a job that is not run.'
        )
      message = _next(messages, workers)
      job = jobs[message.job]
      if message.error:
        raise RuntimeError(f'{job} failed.\n{message.error}')
      if message.ended:
        running -= 1
        on_end(job)
      else:
        on_news(job, message.news)
  finally:
    for worker in workers:
      if worker.pid is not None:
        worker.terminate()
        worker.join()


def _next(messages: Any, workers: Sequence[Any]) -> _Message:
  """Waits for the next message while all processes live."""
  while True:
    try:
      message: _Message = messages.get(timeout=_POLL_SECONDS)
      return message
    except queue.Empty:
      _check_alive(workers)


def _check_alive(workers: Sequence[Any]) -> None:
  for worker in workers:
    if worker.exitcode is not None:
      raise RuntimeError(
        f'A process that executes runs ended with code {worker.exitcode} '
        'before its runs had ended; a negative code is a signal, as that of '
        'a machine without memory left. The same command goes on.'
      )


@contextlib.contextmanager
def _environment() -> Iterator[None]:
  """Sets the variables that processes started in the `with` statement read."""
  ours = {
    **ONE_THREAD,
    # What one process has compiled, the next one loads.
    **compilation_cache.variables(),
  }
  before = {name: os.environ.get(name) for name in ours}
  os.environ.update(ours)
  try:
    yield
  finally:
    for name, value in before.items():
      if value is None:
        del os.environ[name]
      else:
        os.environ[name] = value


def _work(tasks: Any, messages: Any, execute: Execute, jobs: List[Any]) -> None:
  """Executes jobs until the main process ends this one."""
  signal.signal(signal.SIGINT, signal.SIG_IGN)  # The main process ends it.
  threading.Thread(target=_end_with_parent, daemon=True).start()
  while True:
    index: int = tasks.get()

    def report(news: Any, index: int = index) -> None:
      messages.put(_Message(index, news))

    try:
      execute(jobs[index], report)
      messages.put(_Message(index, ended=True))
    except Exception:
      messages.put(_Message(index, error=traceback.format_exc()))


def _end_with_parent() -> None:
  """Ends this process if the main process is killed."""
  parent: Any = multiprocessing.parent_process()
  parent.join()
  os._exit(1)
