"""Several runs at a time, one process and one file each."""

import concurrent.futures
import json
import multiprocessing
import os
import pathlib
import threading
import time
from typing import Any, Dict, List, Tuple

from experiments.learning import claims, execution


def complete(
  pairs: List[Tuple[claims.Run, int]], folder: str, jobs: int
) -> None:
  """Executes the runs and seeds that have no result yet.

  Args:
    pairs: runs with their seeds.
    folder: keeps a result for each of them.
    jobs: runs at a time.
  """
  # The processes that are started read these: one thread for each run.
  os.environ.update(
    JAX_PLATFORMS='cpu',
    OMP_NUM_THREADS='1',
    XLA_FLAGS='--xla_cpu_multi_thread_eigen=false '
    'intra_op_parallelism_threads=1',
  )
  missing = [
    (run, seed) for run, seed in pairs if not _path(run, seed, folder).exists()
  ]
  start = time.monotonic()
  with concurrent.futures.ProcessPoolExecutor(
    jobs,
    mp_context=multiprocessing.get_context('spawn'),
    initializer=_end_with_parent,
  ) as pool:
    futures = {
      pool.submit(_execute_to_file, run, seed, folder): (run, seed)
      for run, seed in missing
    }
    done = concurrent.futures.as_completed(futures)
    for count, future in enumerate(done, start=1):
      run, seed = futures[future]
      scores = future.result()
      print(
        f'{count} / {len(missing)}, {time.monotonic() - start:.0f} s: '
        f'{run.claim}, {run.algorithm}, seed {seed}: return '
        f'{scores["return"]:.3f}, {scores["cells"]:.1f} cells, '
        f'{scores["seconds"]:.0f} s',
        flush=True,
      )


def result(run: claims.Run, seed: int, folder: str) -> Dict[str, float]:
  """Scores of a run that is complete."""
  scores: Dict[str, float] = json.loads(_path(run, seed, folder).read_text())
  return scores


def _path(run: claims.Run, seed: int, folder: str) -> pathlib.Path:
  return pathlib.Path(folder) / f'{run.name(seed)}.json'


def _execute_to_file(
  run: claims.Run, seed: int, folder: str
) -> Dict[str, float]:
  scores = execution.execute(run, seed, folder)
  path = _path(run, seed, folder)
  temporary = path.with_suffix('.tmp')
  temporary.write_text(json.dumps(scores, indent=2) + '\n')
  os.replace(temporary, path)
  return scores


def _end_with_parent() -> None:
  """Ends this process if the main process is killed."""
  parent: Any = multiprocessing.parent_process()

  def wait() -> None:
    parent.join()
    os._exit(1)

  threading.Thread(target=wait, daemon=True).start()
