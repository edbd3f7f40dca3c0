"""Streams of features, and their rewards on host and device."""

import dataclasses
import functools

import jax
import numpy as np

from bt_acme import config as config_lib
from bt_acme.core.intrinsic import device_reward, features, host_reward
from tests.reference import intrinsic as reference

T, D = 60, 4
CONFIG = config_lib.IntrinsicConfig(
  embedding_size=D, memory_capacity=20, num_neighbors=3
)


def changed(**changes):
  return dataclasses.replace(CONFIG, **changes)


CONFIGS = [
  CONFIG,
  changed(alpha_offset=1.0),
  changed(distance_decay=0.05),
  changed(statistics_scope='episode'),
  changed(statistics_scope='episode', distance_decay=0.05),
  changed(error_decay=0.1),
  changed(error_decay=0.3, error_deviation='floor', alpha_offset=1.0),
  changed(error_decay=0.1, statistics_scope='episode'),
  changed(num_neighbors=30),
  changed(num_neighbors=70, memory_capacity=90, max_similarity=4.0),
  changed(memory_capacity=1),
  changed(error_deviation='floor'),
  changed(intrinsic_reward='rnd'),
  changed(intrinsic_reward='rnd', error_deviation='floor'),
  changed(intrinsic_reward='rnd', error_decay=0.1),
  changed(intrinsic_reward='rnd', error_decay=1.0),
  changed(intrinsic_reward='rnd', statistics_scope='episode'),
  changed(intrinsic_reward='constant', constant_reward=0.5),
]


def make_stream(kind='random', num_environments=5, seed=0):
  """Returns embeddings [T, N, D], errors [T, N] and is_first [T, N]."""
  rng = np.random.default_rng(seed)
  embeddings = np.maximum(rng.normal(size=(T, num_environments, D)), 0)
  errors = rng.exponential(size=(T, num_environments)) ** 2
  if kind == 'identical':
    embeddings[:], errors[:] = 0.5, 2.0
  elif kind == 'far':
    embeddings *= 1e6
    errors *= 1e9
  elif kind == 'revisits':
    embeddings = np.round(embeddings)
  is_first = rng.random((T, num_environments)) < 0.05
  is_first[0] = True
  return np.float32(embeddings), np.float32(errors), is_first


def on_host(config, stream, active=None):
  """Returns rewards [T, N] and the `HostReward`."""
  embeddings, errors, is_first = stream
  reward = host_reward.HostReward(config, errors.shape[1])
  result = [
    reward.step(
      features.Features(embeddings[t], errors[t]),
      is_first[t],
      active=None if active is None else active[t],
    )
    for t in range(len(errors))
  ]
  return np.stack(result), reward


def interrupted(num_steps):
  """Returns a stream of two episodes, its rewards, and the statistics between.

  The second episode starts after `num_steps`.
  """
  stream = make_stream()
  stream[2][:] = False
  stream[2][[0, num_steps]] = True
  rewards, _ = on_host(CONFIG, stream)
  _, before = on_host(CONFIG, tuple(x[:num_steps] for x in stream))
  return stream, rewards, before.statistics()


@functools.lru_cache
def on_device(config):
  """Returns a function from a stream to final states [N] and rewards [T, N]."""

  def run(embeddings, errors, is_first):  # For one environment.
    def take(state, row):
      *given, first = row
      rewarded, state = device_reward.step(
        config, state, features.Features(*given), first
      )
      return state, rewarded.reward

    return jax.lax.scan(
      take, device_reward.init(config), (embeddings, errors, is_first)
    )

  return jax.jit(jax.vmap(run, in_axes=1, out_axes=(0, 1)))


def expected_rewards(config, stream):
  columns = [
    reference.rewards(config, *(x[:, i] for x in stream))
    for i in range(stream[1].shape[1])
  ]
  return [np.stack(x, axis=1) for x in zip(*columns, strict=True)]
