"""Bytes that travel in a run: batches to the device, parameters to actors.

They are counted, not measured.
"""

from typing import Any, List

import jax
import numpy as np

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
    _BATCH
    * length
    * int(np.prod(x.shape[1:]))
    * x.dtype.as_numpy_dtype().nbytes
    for x in jax.tree.leaves(table.info.signature)
  )


def h2d(settings: harness.Settings) -> List[harness.Row]:
  """The arrays of one batch of 64 x 160."""
  del settings
  agent = our_side.make_agent(_GAME)
  batch = blocks.empty_batch(agent.config.replay, agent.replay_shapes, _BATCH)
  theirs = _acme_batch_bytes()
  return [
    harness.compare(
      'h2d B=64 T=160',
      'MB/batch',
      lambda: sum(x.nbytes for x in jax.tree.leaves(batch)) / 1e6,
      lambda: theirs / 1e6,
      rounds=0,
      lower_is_better=True,
      limit=batch.frames.nbytes / 1e6,
    )
  ]


def _fetched_megabytes(loop: Any, turns: int) -> float:
  """What an actor loop fetches in so many turns."""
  before = loop.source.fetched_bytes
  for _ in range(turns):
    loop.update_variables()
  return (loop.source.fetched_bytes - before) / 1e6


def params(settings: harness.Settings) -> List[harness.Row]:
  """What 16 games fetch in 1000 agent steps; dm-acme has one client a game."""
  agent_steps = settings.pick(32_000, 16_000)
  thousands = agent_steps / 1000
  ours = our_side.ActorLoop(our_side.make_agent(_GAME))
  theirs = acme_side.ActorLoop(_GAME)
  turns = agent_steps // our_side.NUM_GAMES
  return [
    harness.compare(
      'params',
      'MB/1000 steps',
      lambda: _fetched_megabytes(ours, turns) / thousands,
      lambda: _fetched_megabytes(theirs, agent_steps) / thousands,
      rounds=0,
      lower_is_better=True,
    )
  ]
