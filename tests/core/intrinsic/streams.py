"""Streams of features, and their rewards on host and device."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np

from bt_acme import config as config_lib
from bt_acme.core.intrinsic import device_reward, features, host_reward

T, N, D = 60, 5, 4
CONFIG = config_lib.IntrinsicConfig(
  embedding_size=D, memory_capacity=20, num_neighbors=3
)


def changed(**changes):
  return dataclasses.replace(CONFIG, **changes)


def make_stream(kind='random'):
  """Returns embeddings [T, N, D], errors [T, N] and is_first [T, N]."""
  rng = np.random.default_rng(0)
  embeddings = np.maximum(rng.normal(size=(T, N, D)), 0)
  errors = rng.exponential(size=(T, N)) ** 2
  if kind == 'identical':
    embeddings[:], errors[:] = 0.5, 2.0
  elif kind == 'far':
    embeddings *= 1e6
    errors *= 1e9
  elif kind == 'revisits':
    embeddings = np.round(embeddings)
  is_first = rng.random((T, N)) < 0.05
  is_first[0] = True
  return np.float32(embeddings), np.float32(errors), is_first


def on_host(reward, stream, is_last=None, skipped=None):
  """Returns the rewards [T, N] of a `HostReward`."""
  none = np.zeros_like(stream[2])
  is_last = none if is_last is None else is_last
  skipped = none if skipped is None else skipped
  rows = zip(*stream, is_last, skipped, strict=True)
  return np.stack(
    [reward.take(features.Features(x, y), *flags) for x, y, *flags in rows]
  )


def of(config, num_environments=N):
  return host_reward.HostReward(config, num_environments)


@functools.lru_cache
def on_device(config, num_environments=N):
  """Returns a function from a stream to final states [N] and rewards [T, N].

  The environments are every second one of twice as many.
  """
  rows = 2 * jnp.arange(num_environments) + 1

  def run(*stream):
    def take(states, row):
      embedding, error, *flags = row
      given = features.Features(embedding, error)
      rewarded, states = device_reward.step(config, states, rows, given, *flags)
      return states, (rewarded.reward, rewarded.alpha)

    states = jax.tree.map(
      lambda x: jnp.repeat(x[None], 2 * num_environments, axis=0),
      device_reward.init(config),
    )
    states, made = jax.lax.scan(take, states, stream)
    return jax.tree.map(lambda x: x[rows], states), made

  return jax.jit(run)
