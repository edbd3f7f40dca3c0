"""Nearest neighbors in an episodic memory: ten of M, in 32 dimensions."""

import functools
from typing import Any, Callable, Dict, List

import numpy as np

from benchmarks import harness
from bt_acme.core.intrinsic import episodic_memory

_SIZE, _NEIGHBORS = 32, 10
_QUERIES = 64


def _plain(memory: np.ndarray, query: np.ndarray) -> np.ndarray:
  """What one writes down first; it is exact too."""
  distances = np.sum((memory - query) ** 2, axis=-1)
  return np.sort(np.partition(distances, _NEIGHBORS)[:_NEIGHBORS])


def _faiss_search(embeddings: np.ndarray) -> Any:
  """FAISS's exact search; None if it is not installed."""
  try:
    import faiss
  except ImportError:
    return None
  faiss.omp_set_num_threads(1)
  index = faiss.IndexFlatL2(_SIZE)
  index.add(embeddings)
  return lambda query: index.search(query[None], _NEIGHBORS)[0][0]


def _our_search(embeddings: np.ndarray) -> Any:
  """The search of the episodic memory."""
  memory = episodic_memory.HostMemory(len(embeddings), _SIZE)
  for embedding in embeddings:
    memory.insert(embedding)
  return lambda query: memory.nearest(query, _NEIGHBORS)


def _searches(
  embeddings: np.ndarray, query: np.ndarray
) -> Dict[str, Callable[[np.ndarray], Any]]:
  """Searches by whose they are; all agree on the query."""
  searches = {
    'ours': _our_search(embeddings),
    'NumPy': functools.partial(_plain, embeddings),
    'FAISS': _faiss_search(embeddings),
  }
  searches = {name: call for name, call in searches.items() if call is not None}
  expected = _plain(embeddings, query)
  for search in searches.values():
    np.testing.assert_allclose(search(query), expected, rtol=1e-4)
  return searches


def _microseconds(search: Any, queries: np.ndarray, seconds: float) -> float:
  """Of one query, the mean over all."""
  rows = list(queries)

  def search_all() -> None:
    for query in rows:
      search(query)

  return 1e6 * harness.seconds_per_call(search_all, seconds) / len(rows)


def knn(settings: harness.Settings) -> List[harness.Row]:
  """Queries that are not in the memory, as an episode's next frame is not."""
  rng = np.random.default_rng(0)
  rows = []
  for size in settings.pick((1_000, 10_000, 30_000), (1_000,)):
    embeddings = rng.normal(size=(size, _SIZE)).astype(np.float32)
    queries = rng.normal(size=(_QUERIES, _SIZE)).astype(np.float32)
    searches = _searches(embeddings, queries[0])
    # Every exact search needs at least one product with all embeddings.
    product = functools.partial(
      np.matmul, np.asfortranarray(embeddings), queries[0]
    )
    limit = 1e6 * harness.seconds_per_call(product, 0.2)
    measures = {
      name: functools.partial(
        _microseconds, search, queries, settings.seconds / 5
      )
      for name, search in searches.items()
    }
    rows += [
      harness.compare(
        f'knn M={size:,} {peer}',
        'us',
        measures['ours'],
        measures[peer],
        rounds=settings.rounds,
        lower_is_better=True,
        limit=limit,
        peer=peer,
        note='' if 'FAISS' in searches else 'FAISS is not installed',
      )
      for peer in ('FAISS', 'NumPy')
      if peer in searches
    ]
  return rows
