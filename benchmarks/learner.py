"""Benchmarks of the learner: LSTM, batch, step and time to the first step."""

import functools
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import haiku as hk
import jax
import numpy as np
import reverb
from acme.agents.jax import r2d2
from acme.wrappers import observation_action_reward

from benchmarks import acme_side, core_parts, harness, limits
from bt_acme.agents import acme_learner as learner_lib
from bt_acme.agents import builders as builders_lib

_GAME = 'breakout'
_HIDDEN = core_parts.HIDDEN


def _haiku_lstm(inputs: jax.Array) -> jax.Array:
  core = hk.LSTM(_HIDDEN)
  return hk.dynamic_unroll(core, inputs, core.initial_state(inputs.shape[1]))[0]


def lstm() -> Iterator[harness.Comparison]:
  """Compares our LSTM with `hk.dynamic_unroll`, forward and backward."""
  length = 10 if harness.quick else 160
  flops = limits.flops()
  for batch_size in (8, 64):
    inputs = jax.random.normal(
      jax.random.key(1), (length, batch_size, _HIDDEN), np.float32
    )
    # Forward: [x, h] [1024] @ w [1024, 2048]. Backward: twice as much.
    flop = 3 * 2 * length * batch_size * 2 * _HIDDEN * 4 * _HIDDEN
    ours, theirs = (
      harness.timed(core_parts.forward_backward(unroll, inputs), share=0.3)
      for unroll in (core_parts.our_lstm, _haiku_lstm)
    )
    yield harness.Comparison(
      f'lstm T={length} B={batch_size}',
      'ms',
      ours,
      theirs,
      flop / flops,
      peer='hk.dynamic_unroll',
    )


def _our_learner(batch_size: int, length: int) -> learner_lib.Learner:
  """Returns our learner, fed the same random batch at every step."""
  agent = core_parts.make_agent(
    _GAME, trace_length=length, sequence_period=length, batch_size=batch_size
  )
  sample = core_parts.random_sample(agent, core_parts.random_frames(4 * length))
  return builders_lib.AgentBuilder(agent).make_learner(
    jax.random.key(0), None, itertools.repeat(sample)
  )


def _their_sample(
  batch_size: int, length: int, num_actions: int
) -> reverb.ReplaySample:
  """Returns a random batch in the format of `make_reverb_dataset`."""
  rng = np.random.default_rng(0)
  shape = (batch_size, length + 1)  # Includes the final observation.
  actions = rng.integers(num_actions, size=shape, dtype=np.int32)
  ones = np.ones(shape, np.float32)
  state: Any = np.ones([*shape, _HIDDEN], np.float32)
  data = acme_side.Step(
    observation=observation_action_reward.OAR(
      rng.integers(256, size=(*shape, 84, 84, 4), dtype=np.uint8), actions, ones
    ),
    action=actions,
    reward=ones,
    discount=ones,
    start_of_episode=np.zeros(shape, bool),
    extras={'core_state': hk.LSTMState(state, state)},
  )
  info = reverb.SampleInfo(
    key=np.arange(batch_size, dtype=np.uint64),
    probability=np.ones(batch_size),
    table_size=np.full(batch_size, batch_size, np.int64),
    priority=np.ones(batch_size),
  )
  return reverb.ReplaySample(info=info, data=data)


def _their_learner(batch_size: int, length: int) -> r2d2.R2D2Learner:
  """Returns dm-acme's learner, fed the same random batch at every step."""
  config = acme_side.make_config(trace_length=length, batch_size=batch_size)
  spec = acme_side.make_spec(_GAME)
  sample = _their_sample(batch_size, length, spec.actions.num_values)
  return acme_side.make_builder(spec, config).make_learner(
    jax.random.PRNGKey(0),
    acme_side.make_networks(batch_size, spec),
    itertools.repeat(sample),
  )


def learner() -> Iterator[harness.Comparison]:
  """Compares `Learner.step` with `R2D2Learner.step`, without data loading."""
  batch_size, length = (2, 4) if harness.quick else (8, 40)
  flop = limits.LEARNER_FLOP * batch_size * (length + 1)
  ours = _our_learner(batch_size, length)
  yield harness.Comparison(
    f'learner T={length} B={batch_size}',
    'ms',
    harness.timed(ours.step, finish=ours.flush),
    harness.timed(_their_learner(batch_size, length).step),
    flop / limits.flops(),
  )


def _first_update_seconds(make: Callable[..., Any], length: int) -> float:
  jax.clear_caches()
  start = harness.clock()
  learner = make(2, length)
  learner.step()
  jax.block_until_ready(learner.save())
  return harness.clock() - start


def compile() -> Iterator[harness.Comparison]:  # noqa: A001
  """Compares the seconds from making the learner to the end of its first step.

  There is only one round, because dm-acme takes minutes.
  """
  length = 4 if harness.quick else 80
  yield harness.Comparison(
    f'compile T={length}',
    's',
    functools.partial(_first_update_seconds, _our_learner, length),
    functools.partial(_first_update_seconds, _their_learner, length),
    note='one round',
    once=True,
  )


def h2d() -> Iterator[harness.Comparison]:
  """Compares the size of one batch sent to the device; nothing is timed."""
  batch_size, length = 64, 160
  agent = core_parts.make_agent(_GAME)
  ours = core_parts.empty_batch(agent)
  theirs = _their_sample(batch_size, length, agent.spec.num_actions).data
  yield harness.Comparison(
    f'h2d B={batch_size} T={length}',
    'MB/batch',
    lambda: hk.data_structures.tree_bytes(ours) / 1e6,
    lambda: hk.data_structures.tree_bytes(theirs) / 1e6,
    ours.frames.nbytes / 1e6,
    once=True,
  )
