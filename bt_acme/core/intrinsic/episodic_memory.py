"""Episodic novelty: the distance of an observation from others in its episode.

The embeddings of an episode are stored in a ring buffer of M slots, which is
cleared when an episode starts. The k nearest embeddings determine the novelty.
There are two implementations: `HostMemory` in NumPy, whose cost grows with the
number of stored embeddings, and `Memory` in JAX, which has a fixed shape.
Source: Badia et al. 2020 (NGU, arXiv:2002.06038), Sec. 2 and Alg. 1.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from bt_acme import config as config_lib
from bt_acme.core import arrays
from bt_acme.core.intrinsic import reward_statistics as reward_lib

_MIN_DISTANCE = 1e-8
_INITIAL_SLOTS = 256
_ROUNDING_UNIT = float(np.finfo(np.float32).eps) / 2
_GROUP = 16  # Rows per group on the host.
# Maximum number of rows gathered on the host; an eighth of all if larger.
_GATHERED = 500
_CHUNK = 128  # Rows per group on a device.

Floats = npt.NDArray[np.float32]


class Neighbors(NamedTuple):
  """The nearest neighbors of an embedding in the memory of its episode.

  Attributes:
    squared_distances: float [..., k]; entries from `count` on are undefined.
    count: int [...], the number of existing neighbors, at most k; 0 if the
      reward does not use the memory.
  """

  squared_distances: arrays.Array
  count: arrays.Array


def _squared_distances(table: Floats, query: Floats) -> Floats:
  """Computes the squared distances to all rows, float32 [M'], in place.

  Args:
    table: float32 [M', D + 1], embeddings m followed by ||m||^2; fastest in
      Fortran order.
    query: float32 [D].
  """
  distances: Floats = np.zeros(len(table), np.float32)
  difference = np.empty_like(distances)
  for column, value in zip(table.T[:-1], query, strict=True):
    np.subtract(column, value, out=difference)
    distances += np.multiply(difference, difference, out=difference)
  return distances


class HostMemory:
  """One environment's episodic memory in NumPy, which grows as needed.

  The rows of its table are the embeddings, followed by their squared norms.
  """

  def __init__(self, capacity: int, embedding_size: int):
    """Initializes an empty memory.

    Args:
      capacity: M, the number of slots; a full memory overwrites the oldest.
      embedding_size: D, the size of an embedding.
    """
    self._capacity = capacity
    slots = min(_INITIAL_SLOTS, capacity)
    self._table = np.empty([slots, embedding_size + 1], np.float32, order='F')
    self._largest_squared_norm = 0.0
    self._inserted = 0

  def __len__(self) -> int:
    return min(self._inserted, self._capacity)

  def clear(self) -> None:
    """Clears the memory without freeing its space."""
    self._inserted = 0
    self._largest_squared_norm = 0.0

  def nearest(self, query: Floats, k: int) -> Floats:
    """Finds the exact squared distances to the k nearest neighbors.

    The rows m are ranked by ||m||^2 - 2 m·q, which one matrix-vector product
    with the table computes up to rounding. The k-th smallest rank is at most
    the k-th smallest of the minima of disjoint groups. Exact distances are
    computed for every row whose rank is within this bound plus rounding, so no
    neighbor is missed. If there are many such rows (because rows repeat, or
    because a common offset hides their differences), all distances are computed
    in place instead, which is faster than gathering these rows.

    Args:
      query: float32 [D], the embedding to find neighbors of.
      k: the number of neighbors.

    Returns:
      float32 [k], the smallest first; fewer if the memory contains fewer
      embeddings.
    """
    table = self._table[: len(self)]
    groups = len(table) // _GROUP
    if groups >= k:
      ranks = table @ np.append(-2 * query, np.float32(1))
      minima = ranks[: groups * _GROUP].reshape(_GROUP, groups).min(axis=0)
      bound = float(np.partition(minima, k - 1)[k - 1])
      scale = max(self._largest_squared_norm, float(query @ query))
      # The error of a rank is at most the error of the norm (a sum of D
      # products) plus that of a sum of D + 1 terms with a total magnitude of
      # 3 * scale.
      rounding = 4 * (len(query) + 3) * _ROUNDING_UNIT * scale
      close = np.flatnonzero(ranks <= bound + 2 * rounding)
      if len(close) > max(_GATHERED, len(table) // 8):
        all_distances = _squared_distances(table, query)
        return np.sort(np.partition(all_distances, k - 1)[:k])
      table = table[close]
    differences = table[:, :-1] - query
    distances: Floats = np.einsum('md,md->m', differences, differences)
    distances.sort()
    return distances[:k]

  def insert(self, embedding: Floats) -> None:
    """Adds an embedding, float32 [D]."""
    slot = self._inserted % self._capacity
    if slot == len(self._table):
      added = min(slot, self._capacity - slot)
      self._table = np.pad(self._table, ((0, added), (0, 0)))
    squared_norm = embedding @ embedding
    self._table[slot, :-1] = embedding
    self._table[slot, -1] = squared_norm
    # Overwritten rows may still count, because an upper bound is sufficient.
    self._largest_squared_norm = max(
      self._largest_squared_norm, float(squared_norm)
    )
    self._inserted += 1

  def state(self) -> dict[str, Any]:
    """Returns the stored embeddings and the allocated number of slots."""
    return {
      'rows': self._table[: len(self)].copy(),
      'slots': len(self._table),
      'largest_squared_norm': self._largest_squared_norm,
      'inserted': self._inserted,
    }

  def restore(self, state: dict[str, Any]) -> None:
    """Restores a state returned by `state()`."""
    rows = state['rows']
    self._table = np.empty([state['slots'], rows.shape[1]], np.float32, 'F')
    self._table[: len(rows)] = rows
    self._largest_squared_norm = state['largest_squared_norm']
    self._inserted = state['inserted']


class Memory(NamedTuple):
  """One environment's episodic memory in JAX.

  Attributes:
    embeddings: float32 [M, D].
    inserted: int32 [], the number of embeddings added since the last clear.
  """

  embeddings: jax.Array
  inserted: jax.Array


def init(capacity: int, embedding_size: int) -> Memory:
  """Creates an empty memory for M embeddings, float32 [D] each."""
  return Memory(
    jnp.zeros([capacity, embedding_size], jnp.float32),
    jnp.zeros([], jnp.int32),
  )


def insert(
  memories: Memory, rows: jax.Array, inserted: jax.Array, embedding: jax.Array
) -> Memory:
  """Adds one embedding to each of N out of many memories.

  Args:
    memories: [..., M, D], with a leading axis over all memories.
    rows: int32 [N], indices of the N memories.
    inserted: int32 [N], the number of embeddings added to each of them since
      the last clear, including the new one.
    embedding: float32 [N, D], the new embeddings.

  Returns:
    All memories.
  """
  slots = (inserted - 1) % memories.embeddings.shape[1]
  return Memory(
    memories.embeddings.at[rows, slots].set(embedding),
    memories.inserted.at[rows].set(inserted),
  )


def nearest(memory: Memory, query: jax.Array, *, k: int) -> Neighbors:
  """Finds the k nearest neighbors of an embedding, with exact distances.

  Sorting the whole memory is slow on a device. The function therefore computes
  the minimum of each chunk and sorts only the k chunks with the smallest
  minima, which must contain all k neighbors. Differences are squared directly:
  a matrix product would not be faster, because the memory is read once either
  way.

  Args:
    memory: the memory of one environment.
    query: float32 [D], the embedding to find neighbors of.
    k: the number of neighbors.

  Returns:
    The neighbors, the nearest first; distances are infinite where there are
    fewer neighbors.
  """
  slots = len(memory.embeddings)
  size = jnp.minimum(memory.inserted, slots)
  distances = jnp.sum((memory.embeddings - query) ** 2, axis=-1)  # [M]
  distances = jnp.where(jnp.arange(slots) < size, distances, jnp.inf)
  chunks = -(-max(slots, k) // _CHUNK)
  distances = jnp.pad(
    distances, (0, chunks * _CHUNK - slots), constant_values=jnp.inf
  ).reshape(chunks, _CHUNK)
  if chunks > k:
    _, best = jax.lax.top_k(-jnp.min(distances, axis=1), k)
    distances = distances[best]
  negative, _ = jax.lax.top_k(-distances.reshape(-1), k)
  return Neighbors(-negative, jnp.minimum(size, k))


def episodic_novelty(
  neighbors: Neighbors,
  statistics: reward_lib.IntrinsicStatistics,
  config: config_lib.IntrinsicConfig,
) -> tuple[arrays.Array, reward_lib.IntrinsicStatistics]:
  """Computes r = 1 / s, where s is the similarity to the nearest neighbors.

    d_i = max(d(x, x_i)^2 / d_m^2 - xi, 0)
    K_i = eps / (d_i + eps)
    s = sqrt(sum_i K_i) + c;  r = 0 if s > s_m

  d_m^2 is the running mean of the squared distances to nearest neighbors,
  including the current ones. Source: Badia et al. 2020 (NGU), Eq. 2, 3 and
  Alg. 1. The paper does not specify the case of fewer than k neighbors. Here,
  the sum runs over the existing neighbors, and r = 0 if there are fewer than
  `min_neighbors`.

  Args:
    neighbors: the nearest neighbors [...].
    statistics: d_m^2 before these distances, float [...].
    config: the settings: eps is `kernel_epsilon`, xi `cluster_distance`, c
      `pseudo_count`, s_m `max_similarity`. `distance_decay` is the step size of
      d_m^2; 0 means the mean of all distances so far.

  Returns:
    The novelty, float [...], and the statistics with d_m^2 after these
    distances.
  """
  squared_distances, num_neighbors = neighbors
  xp = arrays.namespace(squared_distances)
  index = xp.arange(squared_distances.shape[-1])
  real = index < num_neighbors[..., None]  # [..., k]
  squared_distances = xp.where(real, squared_distances, 0.0)
  count = num_neighbors.astype(statistics.distance_mean.dtype)
  statistics = reward_lib.add_distances(
    statistics,
    xp.sum(squared_distances, axis=-1) / xp.maximum(count, 1),
    count,
    decay=config.distance_decay,
  )
  scale = xp.maximum(statistics.distance_mean, _MIN_DISTANCE)[..., None]
  distances = xp.maximum(squared_distances / scale - config.cluster_distance, 0)
  kernel = config.kernel_epsilon / (distances + config.kernel_epsilon)
  similarity = xp.sqrt(xp.sum(xp.where(real, kernel, 0.0), axis=-1))
  similarity = similarity + config.pseudo_count
  known = (num_neighbors >= config.min_neighbors) & (
    similarity <= config.max_similarity
  )
  novelty = xp.where(known, 1 / xp.where(known, similarity, 1.0), 0.0)
  return novelty, statistics
