"""Episodic novelty: how far an observation is from those of its episode.

The embeddings of an episode lie in a ring of M slots that is emptied where an
episode starts; the k nearest of them make the novelty. There are two memories:
`HostMemory` for NumPy, whose cost follows what it holds and which can run while
a device or an emulator is at work, and `Memory` for JAX, of a fixed shape.
Source: Badia et al. 2020 (NGU, arXiv:2002.06038), Sec. 2 and Alg. 1.
"""

from typing import NamedTuple, Tuple

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from bt_acme.core.intrinsic import running_statistics

_MIN_DISTANCE = 1e-8
_INITIAL_SLOTS = 256
_ROUNDING_UNIT = float(np.finfo(np.float32).eps) / 2
_GROUP = 16  # Rows a group, on the host.
_GATHERED = 500  # Rows that are gathered at the most; or an eighth of all.
_CHUNK = 128  # And on a device.

Floats = npt.NDArray[np.float32]


def nearest_squared_distances_numpy(
  table: Floats, largest_squared_norm: float, query: Floats, k: int
) -> Floats:
  """Exact squared distances to the k nearest neighbors, smallest first.

  ||m||^2 - 2 m·q ranks the memory, in one matrix-vector product with the table
  and up to rounding; the k-th smallest of the minima of disjoint groups bounds
  the k-th smallest of all. Distances are computed anew for every row whose rank
  lies within that bound and the rounding, so that no neighbor is missed. Where
  those are many (rows that repeat, or an offset that drowns their differences)
  gathering them would take longest: all distances are then computed in place.

  Args:
    table: float32 [M', D + 1], embeddings m and behind them ||m||^2; fastest in
      Fortran's order.
    largest_squared_norm: at least that of every row.
    query: float32 [D].
    k: how many are wanted.

  Returns:
    float32 [min(k, M')].
  """
  groups = len(table) // _GROUP
  if groups >= k:
    ranks = table @ np.append(-2 * query, np.float32(1))
    minima = ranks[: groups * _GROUP].reshape(_GROUP, groups).min(axis=0)
    bound = float(np.partition(minima, k - 1)[k - 1])
    scale = max(largest_squared_norm, float(query @ query))
    # At most that of the norm, a sum of D products, and of a sum of D + 1 whose
    # sizes add up to three times the scale.
    rounding = 4 * (len(query) + 3) * _ROUNDING_UNIT * scale
    close = np.flatnonzero(ranks <= bound + 2 * rounding)
    if len(close) > max(_GATHERED, len(table) // 8):
      all_distances = _squared_distances_numpy(table, query)
      return np.sort(np.partition(all_distances, k - 1)[:k])
    table = table[close]
  differences = table[:, :-1] - query
  distances: Floats = np.einsum('md,md->m', differences, differences)
  distances.sort()
  return distances[:k]


def _squared_distances_numpy(table: Floats, query: Floats) -> Floats:
  """To all rows, float32 [M'], column by column: none is copied."""
  distances: Floats = np.zeros(len(table), np.float32)
  difference = np.empty_like(distances)
  for column, value in zip(table.T[:-1], query, strict=True):
    np.subtract(column, value, out=difference)
    distances += np.multiply(difference, difference, out=difference)
  return distances


class HostMemory:
  """One environment's episodic memory, in NumPy; it grows as it fills."""

  def __init__(self, capacity: int, embedding_size: int):
    """Makes an empty memory.

    Args:
      capacity: M; the oldest embedding is overwritten beyond it.
      embedding_size: D.
    """
    self._capacity = capacity
    slots = min(_INITIAL_SLOTS, capacity)
    self._table = np.empty([slots, embedding_size + 1], np.float32, order='F')
    self._largest_squared_norm = 0.0
    self._inserted = 0

  def __len__(self) -> int:
    return min(self._inserted, self._capacity)

  def clear(self) -> None:
    """Empties the memory; keeps the space."""
    self._inserted = 0
    self._largest_squared_norm = 0.0

  def nearest(self, query: Floats, k: int) -> Floats:
    """Squared distances to the nearest neighbors, smallest first.

    Args:
      query: float32 [D].
      k: how many are wanted.

    Returns:
      float32 [k], or fewer where the memory holds fewer.
    """
    size = len(self)
    return nearest_squared_distances_numpy(
      self._table[:size], self._largest_squared_norm, query, k
    )

  def insert(self, embedding: Floats) -> None:
    """Adds float32 [D]."""
    slot = self._inserted % self._capacity
    if slot == len(self._table):
      added = min(slot, self._capacity - slot)
      self._table = np.pad(self._table, ((0, added), (0, 0)))
    squared_norm = embedding @ embedding
    self._table[slot, :-1] = embedding
    self._table[slot, -1] = squared_norm
    # Of rows that have been overwritten too: a bound is all that is needed.
    self._largest_squared_norm = max(
      self._largest_squared_norm, float(squared_norm)
    )
    self._inserted += 1


class Memory(NamedTuple):
  """One environment's episodic memory, in JAX.

  Attributes:
    embeddings: float32 [M, D].
    inserted: int32 [], since the memory was empty.
  """

  embeddings: jax.Array
  inserted: jax.Array

  @property
  def size(self) -> jax.Array:
    """int32 [], embeddings held."""
    return jnp.minimum(self.inserted, self.embeddings.shape[0])


def init(capacity: int, embedding_size: int) -> Memory:
  """An empty memory."""
  return Memory(
    jnp.zeros([capacity, embedding_size], jnp.float32),
    jnp.zeros([], jnp.int32),
  )


def insert(memory: Memory, embedding: jax.Array) -> Memory:
  """Adds float32 [D]."""
  slot = memory.inserted % memory.embeddings.shape[0]
  return Memory(memory.embeddings.at[slot].set(embedding), memory.inserted + 1)


def insert_rows(
  memories: Memory, rows: jax.Array, inserted: jax.Array, embedding: jax.Array
) -> Memory:
  """Adds float32 [N, D] to N of M memories, each of which then holds so many.

  Args:
    memories: [M, ...].
    rows: int32 [N], which of them.
    inserted: int32 [N], since they were empty, these included.
    embedding: float32 [N, D].
  """
  slots = (inserted - 1) % memories.embeddings.shape[1]
  return Memory(
    memories.embeddings.at[rows, slots].set(embedding),
    memories.inserted.at[rows].set(inserted),
  )


def nearest_squared_distances(
  memory: jax.Array, size: jax.Array, query: jax.Array, k: int
) -> jax.Array:
  """Exact squared distances to the k nearest neighbors, smallest first.

  The smallest of each chunk, then the k chunks that are best by it, then the
  smallest k in those, among which the true ones must be: a sort of all the
  memory is what a device is slow at. Differences are squared directly: where
  the memory streams once either way, a product gains nothing.

  Args:
    memory: float32 [M, D].
    size: int32 [], rows that count, from the first on.
    query: float32 [D].
    k: how many are wanted.

  Returns:
    float32 [k]; infinite where there are fewer.
  """
  distances = jnp.sum((memory - query) ** 2, axis=-1)  # [M]
  distances = jnp.where(jnp.arange(len(memory)) < size, distances, jnp.inf)
  slots = max(len(memory), k)
  chunks = -(-slots // _CHUNK)
  distances = jnp.pad(
    distances,
    (0, chunks * _CHUNK - len(memory)),
    constant_values=jnp.inf,
  ).reshape(chunks, _CHUNK)
  if chunks > k:
    _, best = jax.lax.top_k(-jnp.min(distances, axis=1), k)
    distances = distances[best]
  nearest, _ = jax.lax.top_k(-distances.reshape(-1), k)
  return -nearest


def episodic_novelty(
  squared_distances: running_statistics.Array,
  num_neighbors: running_statistics.Array,
  mean_distance: running_statistics.RunningMean,
  *,
  kernel_epsilon: float,
  cluster_distance: float,
  pseudo_count: float,
  max_similarity: float,
  min_neighbors: int = 1,
  decay: float = 0.0,
) -> Tuple[running_statistics.Array, running_statistics.RunningMean]:
  """r = 1 / s, of the similarity s to the nearest neighbors.

    d_i = max(d(x, x_i)^2 / d_m^2 - xi, 0)
    K_i = eps / (d_i + eps)
    s = sqrt(sum_i K_i) + c;  r = 0 if s > s_m

  with d_m^2 the running mean of the squared distances to nearest neighbors,
  these included. Source: Badia et al. 2020 (NGU), Eq. 2, 3 and Alg. 1. Differs
  from the paper, which is silent there: fewer than k neighbors count as they
  are, and r = 0 below `min_neighbors`.

  Args:
    squared_distances: float [..., k]; anything behind the neighbors there are.
    num_neighbors: int [...], how many of the k there are.
    mean_distance: d_m^2 before, float [...].
    kernel_epsilon: eps.
    cluster_distance: xi.
    pseudo_count: c.
    max_similarity: s_m.
    min_neighbors: with fewer, r = 0; at least 1.
    decay: of d_m^2; 0 for the mean of all distances so far.

  Returns:
    The novelty, float [...], and d_m^2.
  """
  xp = running_statistics.namespace(squared_distances)
  index = xp.arange(squared_distances.shape[-1])
  real = index < num_neighbors[..., None]  # [..., k]
  squared_distances = xp.where(real, squared_distances, 0.0)
  count = num_neighbors.astype(mean_distance.mean.dtype)
  mean_distance = running_statistics.update_mean(
    mean_distance,
    xp.sum(squared_distances, axis=-1) / xp.maximum(count, 1),
    count,
    decay=decay,
  )
  scale = xp.maximum(mean_distance.mean, _MIN_DISTANCE)[..., None]
  distances = xp.maximum(squared_distances / scale - cluster_distance, 0)
  kernel = kernel_epsilon / (distances + kernel_epsilon)
  similarity = xp.sqrt(xp.sum(xp.where(real, kernel, 0.0), axis=-1))
  similarity = similarity + pseudo_count
  known = (num_neighbors >= min_neighbors) & (similarity <= max_similarity)
  return xp.where(
    known, 1 / xp.where(known, similarity, 1.0), 0.0
  ), mean_distance
