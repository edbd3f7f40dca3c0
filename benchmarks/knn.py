"""Benchmark of nearest neighbors: ten of M memories in 32 dimensions."""

import functools
from collections.abc import Callable, Iterator

import numpy as np

from benchmarks import harness
from bt_acme.core.intrinsic import episodic_memory

_SIZE, _NEIGHBORS = 32, 10
_QUERIES = 64

Search = Callable[[np.ndarray], np.ndarray]


def _peers(embeddings: np.ndarray) -> dict[str, Search]:
  """Returns the search functions of FAISS, if installed, and plain NumPy."""

  def plain(query: np.ndarray) -> np.ndarray:
    distances = np.sum((embeddings - query) ** 2, axis=-1)
    return np.sort(np.partition(distances, _NEIGHBORS)[:_NEIGHBORS])

  try:
    import faiss
  except ImportError:
    return {'NumPy': plain}
  faiss.omp_set_num_threads(1)
  index = faiss.IndexFlatL2(_SIZE)
  index.add(embeddings)
  return {
    'FAISS': lambda query: index.search(query[None], _NEIGHBORS)[0][0],
    'NumPy': plain,
  }


def _timed(search: Search, queries: list[np.ndarray]) -> harness.Side:
  return harness.timed(
    lambda: [search(query) for query in queries], units=_QUERIES, share=0.2
  )


def knn() -> Iterator[harness.Comparison]:
  """Compares searches for queries that are not in the memory."""
  rng = np.random.default_rng(0)
  for size in (1_000,) if harness.quick else (1_000, 10_000, 30_000):
    embeddings = rng.normal(size=(size, _SIZE)).astype(np.float32)
    queries = list(rng.normal(size=(_QUERIES, _SIZE)).astype(np.float32))
    memory = episodic_memory.HostMemory(size, _SIZE)
    for embedding in embeddings:
      memory.insert(embedding)
    ours = functools.partial(memory.nearest, k=_NEIGHBORS)
    peers = _peers(embeddings)
    # An exact search needs at least one product with all embeddings.
    product = functools.partial(np.matmul, np.asfortranarray(embeddings))
    limit = _timed(product, queries)()
    for peer, theirs in peers.items():
      expected = theirs(queries[0])
      np.testing.assert_allclose(ours(queries[0]), expected, rtol=1e-4)
      yield harness.Comparison(
        f'knn M={size:,} {peer}',
        'us',
        _timed(ours, queries),
        _timed(theirs, queries),
        limit,
        peer,
        note='' if 'FAISS' in peers else 'FAISS is not installed',
      )
