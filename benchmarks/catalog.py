"""The list of benchmarks and their execution settings."""

from typing import NamedTuple

from bt_acme.runtime import environment_variables

# Limits XLA and BLAS to one thread, as in an actor.
ONE_CORE = {**environment_variables.one_core(), 'OPENBLAS_NUM_THREADS': '1'}


class Benchmark(NamedTuple):
  """The location and execution settings of a benchmark.

  Attributes:
    module: the module in this package with a function of the benchmark's name,
      in which underscores replace hyphens.
    about: a description in one line.
    cores: the number of cores to pin the benchmark to.
    one_thread: whether XLA and BLAS use one thread per process.
    huge_pages: whether glibc requests huge pages, as in our learner.
  """

  module: str
  about: str
  cores: int = 1
  one_thread: bool = True
  huge_pages: bool = False

  def environment(self) -> dict[str, str]:
    """Returns the environment variables of the benchmark's process."""
    return {
      'JAX_PLATFORMS': 'cpu',
      **(ONE_CORE if self.one_thread else {}),
      **(environment_variables.HUGE_PAGES if self.huge_pages else {}),
    }


BENCHMARKS = {
  'env': Benchmark('acting', 'stepping Atari, two games and a task'),
  'policy': Benchmark('acting', 'selecting an action'),
  'actor': Benchmark('acting', 'actor loop with Reverb, one core'),
  'actor-ngu': Benchmark('acting', 'actor loop with Reverb and the NGU reward'),
  'actor-scale': Benchmark('acting', 'actor processes, 1 to 2 cores', cores=2),
  'bt': Benchmark('acting', 'actor loop of BT compared with plain R2D2'),
  'adder': Benchmark('replay', 'writing a step to replay'),
  'replay-sample': Benchmark(
    'replay', 'sampling batches of 64 x 160', cores=2, one_thread=False
  ),
  'replay-bytes': Benchmark(
    'replay', 'memory of the server, ten games', cores=2
  ),
  'h2d': Benchmark('learner', 'bytes of a batch sent to the device (counted)'),
  'params': Benchmark('acting', 'bytes of parameters sent to actors (counted)'),
  'knn': Benchmark('knn', 'nearest neighbors compared with FAISS and NumPy'),
  'lstm': Benchmark(
    'learner', 'LSTM forward and backward, T = 160', huge_pages=True
  ),
  'learner': Benchmark('learner', 'a whole learner step', huge_pages=True),
  'compile': Benchmark(
    'learner', 'time to the first update, T = 80', huge_pages=True
  ),
  'e2e': Benchmark(
    'whole_programs', 'whole programs on two cores', cores=2, one_thread=False
  ),
}
