"""The benchmarks there are, and how each one runs."""

from typing import Dict, NamedTuple

from benchmarks import harness


class Benchmark(NamedTuple):
  """Where a benchmark is and how it runs.

  Attributes:
    module: of this package. Its function has the name of the benchmark, with
      underscores.
    about: one line for the list.
    cores: that it is pinned to.
    one_thread: whether XLA and BLAS get one thread in each process.
    huge_pages: whether glibc asks for huge pages, as in our learner.
  """

  module: str
  about: str
  cores: int = 1
  one_thread: bool = True
  huge_pages: bool = False

  def environment(self) -> Dict[str, str]:
    """The environment variables of its process."""
    return {
      'JAX_PLATFORMS': 'cpu',
      **(harness.ONE_THREAD if self.one_thread else {}),
      **(harness.HUGE_PAGES if self.huge_pages else {}),
    }


BENCHMARKS = {
  'env': Benchmark('acting', 'stepping Atari, two games and a task'),
  'policy': Benchmark('acting', 'choosing an action'),
  'actor': Benchmark('acting', 'actor loop into Reverb, one core'),
  'actor-ngu': Benchmark('acting', 'the same with the NGU reward'),
  'actor-scale': Benchmark('acting', 'actor processes, 1 to 2 cores', cores=2),
  'bt': Benchmark('acting', 'actor loop of BT against plain R2D2'),
  'adder': Benchmark('replay', 'writing a step to replay'),
  'replay-sample': Benchmark(
    'replay', 'sampling batches of 64 x 160', cores=2, one_thread=False
  ),
  'replay-bytes': Benchmark(
    'replay', 'memory of the server, ten games', cores=2
  ),
  'h2d': Benchmark('learning', 'bytes of a batch to the device, counted'),
  'params': Benchmark('acting', 'bytes of parameters to actors, counted'),
  'knn': Benchmark('knn', 'nearest neighbors against FAISS and NumPy'),
  'lstm': Benchmark(
    'learning', 'LSTM forward and backward, T = 160', huge_pages=True
  ),
  'learner': Benchmark('learning', 'a whole learner step', huge_pages=True),
  'compile': Benchmark(
    'learning', 'time to the first update, T = 80', huge_pages=True
  ),
  'e2e': Benchmark(
    'distributed', 'whole programs on two cores', cores=2, one_thread=False
  ),
}
