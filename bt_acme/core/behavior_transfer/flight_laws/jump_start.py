"""A law that gives the start of each episode to the behavior, less and less.

The only flight of an episode is its first h steps. h is a share of the mean
length of the episodes. The share starts at 1, shrinks while the agent, with the
help of the behavior, gets about as much reward as it ever got, and grows again
otherwise. Every environment has its own share.

Source: Uchendu et al. 2022 (arXiv:2204.02372), Alg. 1. Differs from the paper:
returns come from the episodes of training instead of from evaluations, h
changes by a factor after every episode, and grows again if the returns fall.
"""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp

from bt_acme import config as config_lib
from bt_acme.core import arrays, types
from bt_acme.core.behavior_transfer import flights

# From a smaller share, too many failures would pass before h grows again.
_MIN_SHARE = 1e-3


class JumpStart(NamedTuple):
  """The state of one environment; all scalars are float32 [].

  Attributes:
    share: h as a share of the mean length of an episode, in [0.001, 1].
    episodes: the number of finished episodes.
    mean_length: the mean length of recent episodes, in steps.
    mean_return: the mean return of recent episodes.
    best: the largest mean return since episode W; until then, the mean return.
    length: the number of steps of the current episode.
    total: the sum of the rewards of the current episode.
  """

  share: jax.Array
  episodes: jax.Array
  mean_length: jax.Array
  mean_return: jax.Array
  best: jax.Array
  length: jax.Array
  total: jax.Array


def new_state() -> JumpStart:
  """Returns the state before the first episode."""
  zero = jnp.zeros([], jnp.float32)
  return JumpStart(zero + 1, zero, zero, zero, zero, zero, zero)


def end_episode(
  state: JumpStart, config: config_lib.TransferConfig
) -> JumpStart:
  """Counts the current episode, and changes the share.

    m_n = m_{n-1} + (G_n - m_{n-1}) / min(n, W)
    share' = max(0.001, share (1 - η)) if m_n > b - β |b|
             else min(1, share / (1 - η))

  b is the largest mean return m_W .. m_n. The share stays 1 until episode W,
  because one lucky episode would determine the means before. With b = 0, the
  share cannot shrink.

  Args:
    state: the state at the end of an episode of at least one step.
    config: the settings: η is `jump_start_rate`, β `jump_start_tolerance`, and
      W `jump_start_window`.

  Returns:
    The state before the next episode.
  """
  rate, window = config.jump_start_rate, config.jump_start_window
  episodes = state.episodes + 1
  weight = 1 / jnp.minimum(episodes, window)
  mean_return = state.mean_return + weight * (state.total - state.mean_return)
  mean_length = state.mean_length + weight * (state.length - state.mean_length)
  best = jnp.where(
    episodes > window, jnp.maximum(state.best, mean_return), mean_return
  )
  tolerance = config.jump_start_tolerance
  succeeds = mean_return > best - tolerance * jnp.abs(best)
  smaller = jnp.maximum(state.share * (1 - rate), _MIN_SHARE)
  larger = jnp.minimum(state.share / (1 - rate), 1)
  share = jnp.where(
    episodes < window, state.share, jnp.where(succeeds, smaller, larger)
  )
  zero = jnp.zeros_like(share)
  return JumpStart(
    share, episodes, mean_length, mean_return, best, length=zero, total=zero
  )


def make(
  config: config_lib.TransferConfig, learner: config_lib.LearnerConfig
) -> flights.FlightLaw:
  """Returns the law with the settings `jump_start_*`."""
  del learner

  def start(
    state: flights.FlightState,
    inputs: flights.FlightInput,
    keys: Sequence[types.PRNGKey],
  ) -> tuple[jax.Array, jax.Array, JumpStart]:
    _, length_key = keys
    law: JumpStart = state.law
    ended = end_episode(law, config)
    fresh = arrays.tree_where(law.length > 0, ended, law)
    counted = law._replace(
      length=law.length + 1, total=law.total + inputs.prev_reward
    )
    law = arrays.tree_where(inputs.is_first, fresh, counted)
    length = _draw_length(law, length_key, config.max_flight_length)
    return inputs.is_first & (length > 0), length, law

  return flights.FlightLaw(start, new_state)


def _draw_length(
  law: JumpStart, key: types.PRNGKey, max_length: int
) -> jax.Array:
  """Returns h, int32 []; its fraction is rounded up with that probability."""
  uniform = jax.random.uniform(key, [], jnp.float32)
  steps = jnp.floor(law.share * law.mean_length + uniform)
  # The length of the first episode is unknown.
  steps = jnp.where(law.episodes > 0, steps, max_length)
  return jnp.minimum(steps, max_length).astype(jnp.int32)
