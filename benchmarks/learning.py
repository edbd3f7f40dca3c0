"""The learner: its LSTM, a whole step, and the time to the first update."""

import functools
import itertools
from typing import Any, Callable, Iterator, List

import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np
import reverb
from acme.wrappers import observation_action_reward

from benchmarks import acme_side, floors, harness, our_side
from bt_acme import config as config_lib
from bt_acme.agents import builders as builders_lib
from bt_acme.core import lstm as lstm_lib
from bt_acme.core import types
from bt_acme.replay import blocks

_GAME = 'breakout'
_HIDDEN = 512
_ACTIONS = 18


def _milliseconds(call: Callable[[], Any], seconds: float) -> float:
  return 1e3 * harness.seconds_per_call(call, seconds)


def _gradient(unroll: Callable[..., Any], batch_size: int, length: int) -> Any:
  """A jitted forward and backward pass of sum(outputs^2), ready to call."""
  transformed: Any = hk.without_apply_rng(hk.transform(unroll))
  inputs = jax.random.normal(
    jax.random.key(1), (length, batch_size, _HIDDEN), jnp.float32
  )
  params = transformed.init(jax.random.key(0), inputs)
  step = jax.jit(
    jax.grad(lambda p, x: jnp.sum(transformed.apply(p, x) ** 2), argnums=(0, 1))
  )
  return lambda: jax.block_until_ready(step(params, inputs))


def _our_lstm(inputs: jax.Array) -> jax.Array:
  zeros = jnp.zeros([inputs.shape[1], _HIDDEN], jnp.float32)
  state = types.LSTMState(zeros, zeros)
  return lstm_lib.LSTM(_HIDDEN)(inputs, state)[0]


def _haiku_lstm(inputs: jax.Array) -> jax.Array:
  core = hk.LSTM(_HIDDEN)
  return hk.dynamic_unroll(core, inputs, core.initial_state(inputs.shape[1]))[0]


def lstm(settings: harness.Settings) -> List[harness.Row]:
  """Our LSTM against `hk.dynamic_unroll`, forward and backward."""
  length = settings.pick(160, 10)
  flops = floors.flops()
  rows = []
  for batch_size in (8, 64):
    ours = _gradient(_our_lstm, batch_size, length)
    theirs = _gradient(_haiku_lstm, batch_size, length)
    # Forward it is [x, h] [1024] @ w [1024, 2048]; backward is twice that.
    flop = 3 * 2 * length * batch_size * 2 * _HIDDEN * 4 * _HIDDEN
    rows.append(
      harness.compare(
        f'lstm T={length} B={batch_size}',
        'ms',
        functools.partial(_milliseconds, ours, 0.3),
        functools.partial(_milliseconds, theirs, 0.3),
        rounds=settings.rounds,
        lower_is_better=True,
        limit=1e3 * flop / flops,
        peer='hk.dynamic_unroll',
      )
    )
  return rows


def _our_learner(batch_size: int, length: int) -> Any:
  """Our learner, which gets the same random batch for ever."""
  config = config_lib.R2D2Config(
    replay=config_lib.ReplayConfig(trace_length=length, sequence_period=length),
    learner=config_lib.LearnerConfig(batch_size=batch_size),
  )
  agent = our_side.make_agent(_GAME, config)
  rng = np.random.default_rng(0)

  def fill(x: np.ndarray) -> np.ndarray:
    if x.dtype == np.uint8:
      return rng.integers(256, size=x.shape, dtype=np.uint8)
    return np.ones_like(x)

  batch = jax.tree.map(
    fill, blocks.empty_batch(config.replay, agent.replay_shapes, batch_size)
  )
  batch = batch._replace(
    action=rng.integers(_ACTIONS, size=batch.action.shape, dtype=np.int32),
    choice=rng.integers(_ACTIONS, size=batch.action.shape, dtype=np.int32),
    source=np.zeros_like(batch.source),
  )
  keys = np.arange(batch_size, dtype=np.uint64)
  sample = blocks.Sample(batch, keys, np.ones(batch_size), batch_size)
  return builders_lib.AgentBuilder(agent).make_learner(
    jax.random.key(0), None, itertools.repeat(sample)
  )


def _their_samples(
  batch_size: int, length: int
) -> Iterator[reverb.ReplaySample]:
  """One random batch for ever, as `make_reverb_dataset` gives batches."""
  rng = np.random.default_rng(0)
  shape = (batch_size, length + 1)  # With the observation after the last step.
  actions = rng.integers(_ACTIONS, size=shape, dtype=np.int32)
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
  return itertools.repeat(reverb.ReplaySample(info=info, data=data))


def _their_learner(batch_size: int, length: int) -> Any:
  """dm-acme's learner, which gets the same random batch for ever."""
  config = acme_side.make_config(trace_length=length, batch_size=batch_size)
  spec = acme_side.make_spec(_GAME)
  builder = acme_side.make_builder(spec, config)
  return builder.make_learner(
    jax.random.PRNGKey(0),
    acme_side.make_networks(batch_size, spec),
    _their_samples(batch_size, length),
  )


def _our_steps(learner: Any, seconds: float) -> float:
  return 1e3 * harness.seconds_per_call(learner.step, seconds, learner.flush)


def learner(settings: harness.Settings) -> List[harness.Row]:
  """`Learner.step` against `R2D2Learner.step`; neither waits for a batch."""
  flops = floors.flops()
  rows = []
  for batch_size, length in settings.pick(((8, 40),), ((2, 4),)):
    ours = _our_learner(batch_size, length)
    theirs = _their_learner(batch_size, length)
    flop = floors.LEARNER_FLOP * batch_size * (length + 1)
    rows.append(
      harness.compare(
        f'learner T={length} B={batch_size}',
        'ms',
        functools.partial(_our_steps, ours, settings.seconds),
        functools.partial(_milliseconds, theirs.step, settings.seconds),
        rounds=settings.rounds,
        lower_is_better=True,
        limit=1e3 * flop / flops,
      )
    )
  return rows


def _first_update_seconds(make: Callable[..., Any], length: int) -> float:
  jax.clear_caches()
  start = harness.clock()
  learner = make(2, length)
  learner.step()
  jax.block_until_ready(learner.save())
  return harness.clock() - start


def compile(settings: harness.Settings) -> List[harness.Row]:  # noqa: A001
  """Seconds from making the learner to the end of its first step.

  There is only one round, because it takes dm-acme minutes.
  """
  length = settings.pick(80, 4)
  return [
    harness.compare(
      f'compile T={length}',
      's',
      functools.partial(_first_update_seconds, _our_learner, length),
      functools.partial(_first_update_seconds, _their_learner, length),
      rounds=0,
      lower_is_better=True,
      note='one round',
    )
  ]
