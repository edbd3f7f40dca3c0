"""Bytes that travel in a run: batches to the device, parameters to actors.

They are counted, not measured.
"""

import math
from typing import Iterator, Union

import jax

from benchmarks import acme_side, harness, our_side
from bt_acme.replay import blocks

_GAME = 'ms_pacman'
_BATCH = 64


def _acme_batch_bytes() -> int:
  """Bytes of dm-acme's arrays of one batch of 64 x 160."""
  config = acme_side.make_config()
  spec = acme_side.make_spec(_GAME)
  builder = acme_side.make_builder(spec, config)
  (table,) = builder.make_replay_tables(spec)
  length = config.burn_in_length + config.trace_length + 1
  return sum(
    _BATCH * length * math.prod(x.shape[1:]) * x.dtype.as_numpy_dtype().nbytes
    for x in jax.tree.leaves(table.info.signature)
  )


def h2d(quick: bool) -> Iterator[harness.Comparison]:
  """The arrays of one batch of 64 x 160."""
  del quick
  agent = our_side.make_agent(_GAME)
  batch = blocks.empty_batch(agent.config.replay, agent.replay_shapes, _BATCH)
  yield harness.Comparison(
    'h2d B=64 T=160',
    'MB/batch',
    lambda: sum(x.nbytes for x in jax.tree.leaves(batch)) / 1e6,
    lambda: _acme_batch_bytes() / 1e6,
    batch.frames.nbytes / 1e6,
    once=True,
  )


def _fetched_megabytes(
  actor: Union[our_side.ActorProcess, acme_side.PeerActor], turns: int
) -> float:
  """What an actor fetches in so many turns."""
  before = actor.learner.fetched_bytes
  for _ in range(turns):
    actor.update_variables()
  return (actor.learner.fetched_bytes - before) / 1e6


def params(quick: bool) -> Iterator[harness.Comparison]:
  """What 16 games fetch in 1000 agent steps; dm-acme has one client a game."""
  steps = 16_000 if quick else 32_000
  agent = our_side.make_agent(_GAME)
  ours = our_side.ActorProcess(agent, records=False)
  theirs = acme_side.PeerActor(_GAME, records=False)
  turns = steps // our_side.NUM_GAMES
  yield harness.Comparison(
    'params',
    'MB/1000 steps',
    lambda: 1e3 * _fetched_megabytes(ours, turns) / steps,
    lambda: 1e3 * _fetched_megabytes(theirs, steps) / steps,
    once=True,
  )
