"""Benchmarks of writing, sampling and storing experience."""

import functools
from collections.abc import Iterator
from typing import Any

import haiku as hk
import numpy as np
import reverb
import zstandard

from benchmarks import core_parts, harness, limits
from benchmarks.replay_sides import AcmeReplay, OurReplay, write

_GAME = 'ms_pacman'
_GAMES = (
  'asteroids beam_rider breakout hero montezuma_revenge ms_pacman pong qbert '
  'seaquest space_invaders'
).split()
_BATCH, _PERIOD = 64, 80
_PAPER_SEQUENCES = 125_000

_compress = zstandard.ZstdCompressor(level=1).compress


def _compressed_bytes(frames: np.ndarray, length: int) -> int:
  """Returns the size of all frames, compressed in chunks of `length`."""
  starts = range(0, len(frames), length)
  return sum(len(_compress(frames[i : i + length].data)) for i in starts)


def adder() -> Iterator[harness.Comparison]:
  """Compares the time to write a step, with the server on the same core."""
  play = core_parts.record(_GAME, 800 if harness.quick else 2_000)
  frames = play.frames()[:800]
  agent = core_parts.make_agent(_GAME)
  limit = harness.timed(
    lambda: _compressed_bytes(frames, _PERIOD), units=len(frames), share=0.5
  )
  with OurReplay(agent) as ours, AcmeReplay(_GAME) as theirs:
    yield harness.Comparison(
      'adder',
      'us/step',
      functools.partial(write, ours.calls(play)),
      functools.partial(write, theirs.calls(play)),
      limit(),
    )


def _num_sequences(client: reverb.Client) -> int:
  (table,) = client.server_info().values()
  return table.current_size


def replay_sample() -> Iterator[harness.Comparison]:
  """Compares sampling 64 sequences of 160 steps from a server on two cores.

  dm-acme's dataset uses one parallel call, which is fastest here. Its default
  of 16 would hold 15 GB of sequences in flight.
  """
  num, batch_size, steps = (
    (10, 4, 400) if harness.quick else (100, _BATCH, 1_000)
  )
  play = core_parts.record(_GAME, steps)
  shared: dict[str, Any] = {'min_replay_size': num, 'batch_size': batch_size}
  agent = core_parts.make_agent(
    _GAME, samples_per_insert=1e6, max_replay_size=10 * num, **shared
  )
  unlimited = {'samples_per_insert': 0, 'num_parallel_calls': 1, **shared}
  num_bytes = hk.data_structures.tree_bytes(core_parts.empty_batch(agent))
  with OurReplay(agent) as ours, AcmeReplay(_GAME, **unlimited) as theirs:
    for side in (ours, theirs):
      calls = side.calls(play)
      while _num_sequences(side.client) < num:
        write(calls)
    yield harness.Comparison(
      f'replay-sample B={batch_size} T=160',
      'batches/s',
      ours.sampling,
      theirs.sampling,
      num_bytes / limits.copy_bytes_per_second(),
    )


def replay_bytes() -> Iterator[harness.Comparison]:
  """Compares the growth of the server's memory per step, over ten games."""
  games = _GAMES[:1] if harness.quick else _GAMES
  our_steps, their_steps = (800, 800) if harness.quick else (3_200, 1_600)
  agent = core_parts.make_agent(_GAME)
  compressed, per_game = 0, {}
  with OurReplay(agent) as ours, AcmeReplay(_GAME) as theirs:
    # Exclude the memory that a server needs only once.
    warm = core_parts.record(_GAME, 800)
    for side in (ours, theirs):
      write(side.calls(warm))
    ours.flush()
    our_start, their_start = ours.resident_bytes(), theirs.resident_bytes()
    for game in games:
      play = core_parts.record(game, our_steps)
      before = ours.resident_bytes()
      write(ours.calls(play))
      ours.flush()
      per_game[game] = (ours.resident_bytes() - before) / our_steps
      write(theirs.calls(play.cut(their_steps)))
      compressed += _compressed_bytes(play.frames()[1:], 160)
    our_growth = ours.resident_bytes() - our_start
    their_growth = theirs.resident_bytes() - their_start
  our_bytes = our_growth / (len(games) * our_steps)
  paper_gb = our_bytes * _PAPER_SEQUENCES * _PERIOD / 1e9
  listed = ', '.join(f'{g} {b:,.0f}' for g, b in per_game.items())
  yield harness.Comparison(
    f'replay-bytes, {len(games)} games',
    'bytes/step',
    lambda: our_bytes,
    lambda: their_growth / (len(games) * their_steps),
    # Each block also stores one recurrent state.
    compressed / (len(games) * our_steps) + 2 * 4 * 512 / _PERIOD,
    note=f'{_PAPER_SEQUENCES:,} sequences take {paper_gb:.1f} GB; {listed}',
    once=True,
  )
