"""Writing, sampling and storing experience."""

import functools
from typing import Any, Callable, Dict, List, NamedTuple

import jax
import numpy as np
import zstandard

from benchmarks import (
  acme_side,
  floors,
  harness,
  our_side,
  replay_servers,
  replay_writers,
)
from bt_acme import assembly
from bt_acme import config as config_lib
from bt_acme.agents import builders as builders_lib
from bt_acme.replay import blocks

_GAME = 'ms_pacman'
_GAMES = (
  'asteroids',
  'beam_rider',
  'breakout',
  'hero',
  'montezuma_revenge',
  'ms_pacman',
  'pong',
  'qbert',
  'seaquest',
  'space_invaders',
)
_BATCH, _PERIOD = 64, 80
_PAPER_SEQUENCES = 125_000


def _compress_seconds(recording: replay_writers.Recording) -> float:
  """One step's share of the time to compress a block of frames."""
  compress = zstandard.ZstdCompressor(level=1).compress
  frames = np.stack([t.observation[..., -1] for t in recording.timesteps])
  chunks = [frames[i : i + _PERIOD] for i in range(0, 800, _PERIOD)]
  return harness.seconds_per_call(
    lambda: [compress(chunk) for chunk in chunks], 0.5
  ) / (len(chunks) * _PERIOD)


class _Writers(NamedTuple):
  """A writer of each side."""

  ours: replay_writers.OurWriter
  theirs: replay_writers.AcmeWriter


def _make_writers(
  agent: assembly.Agent, acme_builder: Any, servers: replay_servers.Servers
) -> _Writers:
  return _Writers(
    replay_writers.OurWriter(agent, servers.ours.client),
    replay_writers.AcmeWriter(acme_builder, servers.theirs.client),
  )


def adder(settings: harness.Settings) -> List[harness.Row]:
  """Microseconds of the actor's thread; the server has another core."""
  recording = replay_writers.record(_GAME, settings.pick(2_000, 800))
  agent = our_side.make_agent(_GAME)
  config = acme_side.make_config()
  builder = acme_side.make_builder(acme_side.make_spec(_GAME), config)
  with replay_servers.start(agent, config) as servers:
    ours, theirs = _make_writers(agent, builder, servers)
    return [
      harness.compare(
        'adder',
        'us/step',
        functools.partial(ours.write, ours.prepare(recording)),
        functools.partial(theirs.write, theirs.prepare(recording)),
        rounds=settings.rounds,
        lower_is_better=True,
        limit=1e6 * _compress_seconds(recording),
      )
    ]


def _fill(
  writer: Any,
  server: replay_servers.ServerProcess,
  num: int,
  recording: replay_writers.Recording,
) -> None:
  """Writes a recording until there are so many sequences."""
  calls = writer.prepare(recording)
  while server.num_items() < num:
    writer.write(calls)


def _batches_per_second(
  take: Callable[[], Any], *, warm: int, seconds: float
) -> float:
  for _ in range(warm):  # These were prefetched before the measurement.
    take()
  return 1 / harness.seconds_per_call(take, seconds)


def _our_sampling(
  builder: builders_lib.AgentBuilder, client: Any, seconds: float
) -> float:
  dataset = builder.make_dataset_iterator(client)
  rate = _batches_per_second(
    # The learner hands each batch back too.
    lambda: dataset.release(next(dataset)),
    warm=5,
    seconds=seconds,
  )
  dataset.stop()
  return rate


def _their_sampling(builder: Any, client: Any, seconds: float) -> float:
  dataset = builder.make_dataset_iterator(client)
  return _batches_per_second(lambda: next(dataset), warm=2, seconds=seconds)


def replay_sample(settings: harness.Settings) -> List[harness.Row]:
  """Batches of 64 sequences of 160 steps from a server on the same two cores.

  dm-acme's dataset has one parallel call, which is its fastest here. Its
  default of 16 would hold 15 GB of sequences in flight.
  """
  num = settings.pick(100, 10)
  batch_size = settings.pick(_BATCH, 4)
  recording = replay_writers.record(_GAME, settings.pick(1_000, 400))
  replay = config_lib.ReplayConfig(
    min_replay_size=num, samples_per_insert=1e6, max_replay_size=10 * num
  )
  learner = config_lib.LearnerConfig(batch_size=batch_size)
  agent = our_side.make_agent(
    _GAME, config_lib.R2D2Config(replay=replay, learner=learner)
  )
  config = acme_side.make_config(
    min_replay_size=num,
    samples_per_insert=0,
    batch_size=batch_size,
    num_parallel_calls=1,
  )
  builder = acme_side.make_builder(acme_side.make_spec(_GAME), config)
  batch = blocks.empty_batch(replay, agent.replay_shapes, batch_size)
  num_bytes = sum(x.nbytes for x in jax.tree.leaves(batch))
  with replay_servers.start(agent, config) as servers:
    for writer, server in zip(
      _make_writers(agent, builder, servers), servers, strict=True
    ):
      _fill(writer, server, num, recording)
    return [
      harness.compare(
        f'replay-sample B={batch_size} T=160',
        'batches/s',
        functools.partial(
          _our_sampling,
          builders_lib.AgentBuilder(agent),
          servers.ours.client,
          settings.seconds,
        ),
        functools.partial(
          _their_sampling, builder, servers.theirs.client, settings.seconds
        ),
        rounds=settings.rounds,
        limit=floors.copy_bytes_per_second() / num_bytes,
      )
    ]


class _Stored(NamedTuple):
  """Bytes a step, over all games."""

  ours: float
  theirs: float
  compressed: float  # Frames alone, 160 at a time.
  per_game: Dict[str, float]  # Ours.


def _store(
  writers: _Writers,
  servers: replay_servers.Servers,
  games: Any,
  *,
  our_steps: int,
  their_steps: int,
) -> _Stored:
  """Writes steps of each game, and sees how the servers grow."""
  ours, theirs = writers
  compress = zstandard.ZstdCompressor(level=1).compress
  before = [server.resident_bytes() for server in servers]
  compressed, per_game = 0, {}
  for game in games:
    recording = replay_writers.record(game, our_steps)
    start = servers.ours.resident_bytes()
    ours.write(ours.prepare(recording))
    ours.flush()
    per_game[game] = (servers.ours.resident_bytes() - start) / our_steps
    theirs.write(theirs.prepare(replay_writers.cut(recording, their_steps)))
    frames = np.stack([t.observation[..., -1] for t in recording.timesteps[1:]])
    compressed += sum(
      len(compress(frames[i : i + 160])) for i in range(0, our_steps, 160)
    )
  grown = [
    server.resident_bytes() - start
    for server, start in zip(servers, before, strict=True)
  ]
  return _Stored(
    ours=grown[0] / (len(games) * our_steps),
    theirs=grown[1] / (len(games) * their_steps),
    compressed=compressed / (len(games) * our_steps),
    per_game=per_game,
  )


def replay_bytes(settings: harness.Settings) -> List[harness.Row]:
  """Growth of the server's resident memory for each step, over ten games."""
  games = settings.pick(_GAMES, _GAMES[:1])
  agent = our_side.make_agent(_GAME)
  config = acme_side.make_config()
  builder = acme_side.make_builder(acme_side.make_spec(_GAME), config)
  with replay_servers.start(agent, config) as servers:
    writers = _make_writers(agent, builder, servers)
    # The memory that a server needs only once is not counted.
    warm = replay_writers.record(_GAME, 800)
    for writer in writers:
      writer.write(writer.prepare(warm))
    writers.ours.flush()
    stored = _store(
      writers,
      servers,
      games,
      our_steps=settings.pick(3_200, 800),
      their_steps=settings.pick(1_600, 800),
    )
  paper_gb = stored.ours * _PAPER_SEQUENCES * _PERIOD / 1e9
  games_text = ', '.join(f'{g} {b:,.0f}' for g, b in stored.per_game.items())
  return [
    harness.compare(
      f'replay-bytes, {len(games)} games',
      'bytes/step',
      lambda: stored.ours,
      lambda: stored.theirs,
      rounds=0,
      lower_is_better=True,
      # Each block also stores one recurrent state.
      limit=stored.compressed + 2 * 4 * 512 / _PERIOD,
      note=f'{_PAPER_SEQUENCES:,} sequences take {paper_gb:.1f} GB; '
      f'{games_text}',
    )
  ]
