import tracemalloc

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bt_acme import config as config_lib
from bt_acme.core.intrinsic import episodic_memory
from bt_acme.core.intrinsic import reward_statistics as reward_lib
from tests.reference import intrinsic as reference

D = 8
jitted_novelty = jax.jit(episodic_memory.episodic_novelty, static_argnums=2)
jitted_nearest = jax.jit(episodic_memory.nearest, static_argnames='k')

KINDS = {
  'random': lambda steps: np.maximum(steps, 0),
  'identical': lambda steps: np.full_like(steps, 0.7),
  'two places': lambda steps: (
    np.where(steps[:, :1] > 0, 0.25, 4.0) * np.ones(D)
  ),
  'far 1e3': lambda steps: 1e3 * steps,
  'far 1e6': lambda steps: 1e6 * steps,
  # At this offset, ranks of neighbors differ by less than their rounding.
  'crowd far off': lambda steps: 1e3 + 1e-2 * steps,
  'trajectory': lambda steps: np.cumsum(0.01 * steps, axis=0),
}


def make_embeddings(kind, size):
  steps = np.random.default_rng(size).normal(size=(size, D))
  return np.float32(KINDS[kind](steps))


@pytest.mark.parametrize('kind', KINDS)
@pytest.mark.parametrize('size', [0, 1, 5, 10, 159, 160, 161, 1000])
@pytest.mark.parametrize('k', [1, 10, 64])
def test_nearest_match_reference(kind, size, k):
  embeddings = make_embeddings(kind, size + 1)
  memory, query = embeddings[:-1], embeddings[-1]
  expected = reference.nearest_squared_distances(memory, query, k)
  host = episodic_memory.HostMemory(1200, D)
  for embedding in memory:
    host.insert(embedding)
  found = host.nearest(query, k)
  assert found.shape == (min(k, size),)
  np.testing.assert_allclose(found, expected, rtol=2e-6)

  slots = np.full([1200, D], np.nan, np.float32)  # Unused beyond `size`.
  slots[:size] = memory
  memory = episodic_memory.Memory(slots, jnp.int32(size))
  device, count = map(np.asarray, jitted_nearest(memory, query, k=k))
  assert device.shape == (k,) and count == min(k, size)
  np.testing.assert_allclose(device[: len(expected)], expected, rtol=2e-6)
  assert np.all(np.isinf(device[len(expected) :]))


def test_an_empty_memory_is_small():
  tracemalloc.start()
  episodic_memory.HostMemory(1_000_000, D)
  assert tracemalloc.get_traced_memory()[1] < 1_000_000
  tracemalloc.stop()


@pytest.mark.parametrize('capacity', [1, 3, 300, 1000])
def test_memories_forget_the_oldest(capacity):
  embeddings = make_embeddings('random', 1100)
  host = episodic_memory.HostMemory(capacity, D)
  device = jax.tree.map(
    lambda x: jnp.stack([x] * 2), episodic_memory.init(capacity, D)
  )
  insert = jax.jit(episodic_memory.insert, donate_argnums=0)
  for i, embedding in enumerate(embeddings):
    host.insert(embedding)
    device = insert(
      device, np.array([1]), np.array([i + 1], np.int32), embedding[None]
    )
    held = embeddings[max(0, i + 1 - capacity) : i + 1]
    assert len(host) == len(held)
    if i % 100 == 99 or i in (0, 255, 256):
      query = embeddings[(i + 7) % len(embeddings)]
      expected = reference.nearest_squared_distances(held, query, 10)
      np.testing.assert_allclose(host.nearest(query, 10), expected, rtol=1e-5)
      memory = jax.tree.map(lambda x: x[1], device)
      actual, count = jitted_nearest(memory, query, k=10)
      assert count == len(expected)
      np.testing.assert_allclose(actual[:count], expected, rtol=1e-5)
  assert not device.inserted[0] and not device.embeddings[0].any()


def novelty(distances, count, seen=(0.0, 0.0), in_jax=False, **settings):
  """Returns the novelty from distances [k], and count and mean afterwards."""
  dtype = np.float32 if in_jax else np.float64
  neighbors = episodic_memory.Neighbors(
    np.asarray(distances, dtype)[None], np.array([count], np.int32)
  )
  statistics = reward_lib.IntrinsicStatistics(
    *(np.array([x], dtype) for x in (7, 8, 9, *seen))
  )
  compute = jitted_novelty if in_jax else episodic_memory.episodic_novelty
  result, after = compute(
    neighbors, statistics, config_lib.IntrinsicConfig(**settings)
  )
  assert result.shape == (1,)
  assert after[:3] == statistics[:3]
  return result[0], after.distance_count[0], after.distance_mean[0]


@pytest.mark.parametrize('in_jax', [False, True])
@pytest.mark.parametrize('decay', [0.0, 0.05, 1.0])
@pytest.mark.parametrize('count', [0, 1, 3, 10])
@pytest.mark.parametrize('scale', [0.0, 1e-12, 1.0, 1e6, 1e12])
@pytest.mark.parametrize('least, kernel', [(1, 1e-4), (3, 1e-3)])
def test_novelty_matches_reference(in_jax, decay, count, scale, least, kernel):
  rng = np.random.default_rng(count)
  distances = np.sort(scale * rng.exponential(size=10))
  settings = {'min_neighbors': least, 'kernel_epsilon': kernel}
  expected_mean = reference.mean_distance(
    [[scale * 0.5] * 20, distances[:count]], decay
  )
  if decay and not count:
    expected_mean = scale * 0.5
  expected = reference.episodic_novelty(
    distances[:count], expected_mean, config_lib.IntrinsicConfig(**settings)
  )
  actual, seen, mean = novelty(
    np.where(np.arange(10) < count, distances, np.inf),
    count,
    (20.0, scale * 0.5),
    in_jax,
    distance_decay=decay,
    **settings,
  )
  np.testing.assert_allclose(mean, expected_mean, rtol=1e-5)
  np.testing.assert_allclose(actual, expected, rtol=1e-4)
  assert seen == 20 + count


@pytest.mark.parametrize('in_jax', [False, True])
def test_none_or_too_many_similar_neighbors_give_no_novelty(in_jax):
  assert novelty(np.full(10, np.inf), 0, in_jax=in_jax) == (0, 0, 0)
  assert novelty(np.zeros(64), 64, in_jax=in_jax)[0] == 0
  kept, *_ = novelty(np.zeros(64), 63, in_jax=in_jax)
  np.testing.assert_allclose(kept, 1 / (np.sqrt(63) + 1e-3), rtol=1e-6)


@pytest.mark.parametrize('kind', ['random', 'identical', 'crowd far off'])
@pytest.mark.parametrize('size', [0, 3, 255, 1300])
def test_a_memory_continues_from_a_state(kind, size):
  embeddings = make_embeddings(kind, size + 600)
  one, other = (episodic_memory.HostMemory(1000, D) for _ in range(2))
  for embedding in embeddings[:size]:
    one.insert(embedding)
  other.insert(embeddings[-1])
  other.restore(one.state())
  for embedding in embeddings[size:]:
    np.testing.assert_array_equal(
      one.nearest(embedding, 10), other.nearest(embedding, 10)
    )
    one.insert(embedding)
    other.insert(embedding)
  assert len(one) == len(other) == min(size + 600, 1000)
