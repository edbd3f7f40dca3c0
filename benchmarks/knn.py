"""Nearest neighbors in an episodic memory: ten of M, in 32 dimensions."""

import functools
from typing import Any, List

import numpy as np

from benchmarks import harness
from bt_acme.core.intrinsic import episodic_memory

_SIZE, _NEIGHBORS = 32, 10


def _plain(memory: np.ndarray, query: np.ndarray) -> np.ndarray:
  """What one writes down first; exact too."""
  distances = np.sum((memory - query) ** 2, axis=-1)
  return np.sort(np.partition(distances, _NEIGHBORS)[:_NEIGHBORS])


def _faiss_search(rows: np.ndarray) -> Any:
  """FAISS's exact search; None where it is not installed."""
  try:
    import faiss
  except ImportError:
    return None
  faiss.omp_set_num_threads(1)
  index = faiss.IndexFlatL2(_SIZE)
  index.add(rows)
  return lambda query: index.search(query[None], _NEIGHBORS)[0][0]


def knn(settings: harness.Settings) -> List[harness.Row]:
  """Queries that are rows of another draw, as an episode's next frame is."""
  rng = np.random.default_rng(0)
  rows = []
  for size in settings.pick((1_000, 10_000, 30_000), (1_000,)):
    embeddings = rng.normal(size=(size, _SIZE)).astype(np.float32)
    queries = list(rng.normal(size=(64, _SIZE)).astype(np.float32))
    memory = episodic_memory.HostMemory(size, _SIZE)
    for embedding in embeddings:
      memory.insert(embedding)
    searches = {
      'ours': lambda query, memory=memory: memory.nearest(query, _NEIGHBORS),
      'NumPy': functools.partial(_plain, embeddings),
      'FAISS': _faiss_search(embeddings),
    }
    # No exact search does without one product with all embeddings.
    columns = np.asfortranarray(embeddings)
    product = harness.seconds_per_call(lambda: columns @ queries[0], 0.2)  # noqa: B023
    times = {}
    for name, search in searches.items():
      if search is None:
        continue
      np.testing.assert_allclose(
        search(queries[0]), _plain(embeddings, queries[0]), rtol=1e-4
      )

      def search_all(search: Any = search, queries: Any = queries) -> None:
        for query in queries:
          search(query)

      def queries_round(call: Any = search_all) -> float:
        return 1e6 * harness.seconds_per_call(call, settings.seconds / 5) / 64

      times[name] = queries_round
    for peer in ('FAISS', 'NumPy'):
      if peer not in times:
        continue
      rows.append(
        harness.compare(
          f'knn M={size:,} {peer}',
          'us',
          times['ours'],
          times[peer],
          rounds=settings.rounds,
          lower_is_better=True,
          limit=1e6 * product,
          peer=peer,
          note='' if 'FAISS' in times else 'FAISS is not installed',
        )
      )
  return rows
