"""Several runs at a time, one process with one thread for each."""

import contextlib
import multiprocessing
import os
import pathlib
import queue
import signal
import threading
import traceback
from typing import Any, Iterator, List, NamedTuple, Sequence

from experiments.demo import execution, progress
from experiments.demo import plan as plan_lib

# The processes read these when they start: each has one core for itself.
_ENVIRONMENT = {
  'JAX_PLATFORMS': 'cpu',
  'OMP_NUM_THREADS': '1',
  'XLA_FLAGS': '--xla_cpu_multi_thread_eigen=false '
  'intra_op_parallelism_threads=1',
}
_POLL_SECONDS = 1.0


class _Message(NamedTuple):
  """What a process says about a run: its progress, its end, or an error."""

  job: plan_lib.Job
  steps: int = 0
  solved: float = 0.0
  ended: bool = False
  error: str = ''


def complete(
  plan: plan_lib.Plan, folder: pathlib.Path, *, processes: int = 2
) -> List[plan_lib.Job]:
  """Executes the jobs of a plan that have no result yet.

  Args:
    plan: has the jobs.
    folder: of the demo; it keeps the results.
    processes: jobs at a time.

  Returns:
    The jobs that were executed.

  Raises:
    RuntimeError: if a job fails; jobs that have ended keep their results.
  """
  missing = [
    job for job in plan.jobs if execution.read(job, plan, folder) is None
  ]
  if missing:
    context = multiprocessing.get_context('spawn')
    tasks, messages = context.Queue(), context.Queue()
    for job in missing:
      tasks.put(job)
    workers = [
      context.Process(
        target=_work, args=(tasks, messages, plan, folder), daemon=True
      )
      for _ in range(min(processes, len(missing)))
    ]
    try:
      with _environment(folder):
        for worker in workers:
          worker.start()
      _follow(missing, plan, folder, messages, workers)
    finally:
      for worker in workers:
        if worker.pid is not None:
          worker.terminate()
          worker.join()
  return missing


def _follow(
  jobs: Sequence[plan_lib.Job],
  plan: plan_lib.Plan,
  folder: pathlib.Path,
  messages: Any,
  workers: Sequence[Any],
) -> None:
  """Shows how far the jobs are until all have ended."""
  line = progress.Line(jobs, plan.task_steps)
  ended = 0
  while ended < len(jobs):
    try:
      message: _Message = messages.get(timeout=_POLL_SECONDS)
    except queue.Empty:
      _check_alive(workers)
      continue
    if message.error:
      raise RuntimeError(f'{message.job.label} failed.\n{message.error}')
    if message.ended:
      ended += 1
      line.end(message.job, _outcome(message.job, plan, folder))
    else:
      line.update(message.job, message.steps, message.solved)


def _check_alive(workers: Sequence[Any]) -> None:
  for worker in workers:
    if worker.exitcode is not None:
      raise RuntimeError(
        f'A process of the demo ended with code {worker.exitcode} before its '
        'runs had ended; a negative code is a signal, such as that of a '
        'machine without memory left. Run the demo again to go on.'
      )


def _outcome(
  job: plan_lib.Job, plan: plan_lib.Plan, folder: pathlib.Path
) -> str:
  """What a run that has ended came to."""
  result = execution.read(job, plan, folder)
  assert result is not None
  seconds = f'{result["seconds"]:.0f} s'
  if job.kind == plan_lib.POLICIES:
    return f'evaluated in {seconds}'
  return f'solves {result["evaluation"]["solved"]:.0%}, in {seconds}'


@contextlib.contextmanager
def _environment(folder: pathlib.Path) -> Iterator[None]:
  """Sets the variables that processes started in the `with` statement read."""
  ours = {
    **_ENVIRONMENT,
    # What one seed has compiled, the next one loads.
    'JAX_COMPILATION_CACHE_DIR': os.environ.get(
      'JAX_COMPILATION_CACHE_DIR', str(folder / 'compiled')
    ),
    'JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS': '0',
    'JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES': '-1',
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


def _work(
  tasks: Any, messages: Any, plan: plan_lib.Plan, folder: pathlib.Path
) -> None:
  """Executes jobs until the main process ends this one."""
  signal.signal(signal.SIGINT, signal.SIG_IGN)  # The main process ends it.
  threading.Thread(target=_end_with_parent, daemon=True).start()
  while True:
    job = tasks.get()

    def on_progress(steps: int, solved: float, job: plan_lib.Job = job) -> None:
      messages.put(_Message(job, steps, solved))

    on_progress(0, 0.0)
    try:
      execution.execute(job, plan, folder, on_progress)
      messages.put(_Message(job, ended=True))
    except Exception:
      messages.put(_Message(job, error=traceback.format_exc()))


def _end_with_parent() -> None:
  """Ends this process if the main process is killed."""
  parent: Any = multiprocessing.parent_process()
  parent.join()
  os._exit(1)
