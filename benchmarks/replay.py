"""Writing, sampling and storing experience, and what travels between parts."""

import functools
import itertools
import multiprocessing
import os
import pathlib
from typing import Any, Callable, List, NamedTuple

import dm_env
import haiku as hk
import jax
import numpy as np
import reverb
import zstandard
from acme.wrappers import observation_action_reward

from benchmarks import acme_side, floors, harness, our_side
from bt_acme import config as config_lib
from bt_acme import environments
from bt_acme.acting import transition as transition_lib
from bt_acme.agents import builders as builders_lib
from bt_acme.core import types
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


def _acme_server(game: str, config: Any) -> reverb.Server:
  return acme_side.start_replay(game, config)[0]


def _serve(make_server: Callable[[], reverb.Server], pipe: Any) -> None:
  server = make_server()
  pipe.send(server.port)
  pipe.recv()
  server.stop()


class _ServerProcess:
  """A replay server in a process of its own."""

  def __init__(self, make_server: Callable[[], reverb.Server]):
    # A fork of a process that has loaded Reverb hangs.
    context = multiprocessing.get_context('spawn')
    self._pipe, theirs = context.Pipe()
    self._process = context.Process(
      target=_serve, args=(make_server, theirs), daemon=True
    )
    self._process.start()
    self.client = reverb.Client(f'localhost:{self._pipe.recv()}')

  def resident_bytes(self) -> int:
    """Memory that the process takes."""
    statm = pathlib.Path(f'/proc/{self._process.pid}/statm').read_text()
    return int(statm.split()[1]) * os.sysconf('SC_PAGE_SIZE')

  def num_items(self) -> int:
    """Sequences in its table."""
    (info,) = self.client.server_info().values()
    return int(info.current_size)

  def stop(self) -> None:
    self._pipe.send(None)
    self._process.join(10)
    self._process.kill()


class _Recording(NamedTuple):
  """Steps of a random policy; `timesteps` has one more than `actions`."""

  timesteps: List[dm_env.TimeStep]
  actions: np.ndarray


def _cut(recording: _Recording, steps: int) -> _Recording:
  """The first steps of a recording; its last episode ends there."""
  timesteps = recording.timesteps[: steps + 1]
  if timesteps[-1].first():
    timesteps.pop()
  timesteps[-1] = timesteps[-1]._replace(step_type=dm_env.StepType.LAST)
  return _Recording(timesteps, recording.actions[: len(timesteps) - 1])


def _record(game: str, steps: int) -> _Recording:
  environment = environments.make(game, seed=0)
  num_actions = environment.action_spec().num_values
  actions = np.random.default_rng(0).integers(
    num_actions, size=steps, dtype=np.int32
  )
  timesteps = [environment.reset()]
  timesteps += [environment.step(action) for action in actions]
  environment.close()
  return _cut(_Recording(timesteps, actions), steps)


def _states(num: int) -> np.ndarray:
  """Recurrent states [num, 2, 512]: no compression gets at them."""
  return np.random.default_rng(0).uniform(-1, 1, (num, 2, 512)).astype('f4')


class _OurWriter:
  """A recording as `VectorActor` hands it to one game's sink."""

  def __init__(self, agent: Any, client: reverb.Client):
    builder = builders_lib.AgentBuilder(agent)
    self._sink, self._writer = builder.make_sink(client)

  def prepare(self, recording: _Recording) -> List[Any]:
    """The calls of a recording, made ahead."""
    calls: List[Any] = []
    states = itertools.cycle(_states(100))
    timesteps, actions = recording
    for before, action, after in zip(
      timesteps, actions, timesteps[1:], strict=False
    ):
      if before.last():
        continue
      # Frame by frame in memory, as the vector environment gives them.
      frames = np.moveaxis(before.observation, -1, 0).copy()
      calls.append(
        transition_lib.Transition(
          observation=np.moveaxis(frames, 0, -1),
          prev_action=action,
          prev_reward=0.0,
          recurrent_state=types.LSTMState(*next(states)),
          action=action,
          choice=action,
          source=0,
          probability=1.0,
          reward=after.reward,
          discount=after.discount,
        )
      )
      if after.last():
        calls.append(after)
    return calls

  def write(self, calls: List[Any]) -> float:
    """Writes one round; returns microseconds a step."""
    start = harness.clock()
    for call in calls:
      if isinstance(call, transition_lib.Transition):
        self._sink.add(call)
      else:
        self._sink.end_episode(call.observation, 0, 0.0)
    elapsed = harness.clock() - start
    return 1e6 * elapsed / len(calls)

  def flush(self) -> None:
    self._writer.flush()


class _AcmeWriter:
  """The same through dm-acme's `SequenceAdder`."""

  def __init__(self, builder: Any, client: reverb.Client):
    self._adder = builder.make_adder(client)

  def prepare(self, recording: _Recording) -> List[Any]:
    """The calls of a recording, made ahead."""

    def wrap(timestep: dm_env.TimeStep) -> dm_env.TimeStep:
      return timestep._replace(
        observation=observation_action_reward.OAR(
          timestep.observation, np.int32(0), np.float32(0)
        )
      )

    states = [hk.LSTMState(*state) for state in _states(100)]
    timesteps = [wrap(timestep) for timestep in recording.timesteps]
    extras = itertools.cycle({'core_state': state} for state in states)
    actions = [np.int32(0), *recording.actions]
    return list(zip(actions, timesteps, extras, strict=False))

  def write(self, calls: List[Any]) -> float:
    """Writes one round; returns microseconds a step."""
    start = harness.clock()
    for action, timestep, extras in calls:
      if timestep.first():
        self._adder.add_first(timestep)
      else:
        self._adder.add(action, timestep, extras)
    elapsed = harness.clock() - start
    return 1e6 * elapsed / len(calls)


def _compress_seconds(recording: _Recording) -> float:
  """Of one step's share of a compressed block of frames."""
  compress = zstandard.ZstdCompressor(level=1).compress
  frames = np.stack([t.observation[..., -1] for t in recording.timesteps])
  chunks = [frames[i : i + _PERIOD] for i in range(0, 800, _PERIOD)]
  return harness.seconds_per_call(
    lambda: [compress(chunk) for chunk in chunks], 0.5
  ) / (len(chunks) * _PERIOD)


def adder(settings: harness.Settings) -> List[harness.Row]:
  """Microseconds of the actor's thread; the server has another core."""
  recording = _record(_GAME, settings.pick(2_000, 800))
  agent = our_side.make_agent(_GAME)
  config = acme_side.make_config()
  our_server = _ServerProcess(functools.partial(our_side.start_replay, agent))
  acme_server = _ServerProcess(functools.partial(_acme_server, _GAME, config))
  builder = acme_side.make_builder(acme_side.make_spec(_GAME), config)
  ours = _OurWriter(agent, our_server.client)
  theirs = _AcmeWriter(builder, acme_server.client)
  our_calls, their_calls = ours.prepare(recording), theirs.prepare(recording)
  try:
    return [
      harness.compare(
        'adder',
        'us/step',
        lambda: ours.write(our_calls),
        lambda: theirs.write(their_calls),
        rounds=settings.rounds,
        lower_is_better=True,
        limit=1e6 * _compress_seconds(recording),
      )
    ]
  finally:
    our_server.stop()
    acme_server.stop()


def _fill(writer: Any, server: _ServerProcess, num: int, calls: Any) -> None:
  while server.num_items() < num:
    writer.write(calls)


def replay_sample(settings: harness.Settings) -> List[harness.Row]:
  """Batches of 64 sequences of 160 steps from a server on the same two cores.

  dm-acme's dataset with one parallel call, its fastest here; its default of 16
  would hold 15 GB of sequences in flight.
  """
  num = settings.pick(100, 10)
  batch_size = settings.pick(_BATCH, 4)
  recording = _record(_GAME, settings.pick(1_000, 400))
  replay = config_lib.ReplayConfig(
    min_replay_size=num, samples_per_insert=1e6, max_replay_size=10 * num
  )
  our_config = config_lib.R2D2Config(
    replay=replay, learner=config_lib.LearnerConfig(batch_size=batch_size)
  )
  agent = our_side.make_agent(_GAME, our_config)
  config = acme_side.make_config(
    min_replay_size=num,
    samples_per_insert=0,
    batch_size=batch_size,
    num_parallel_calls=1,
  )
  our_server = _ServerProcess(functools.partial(our_side.start_replay, agent))
  acme_server = _ServerProcess(functools.partial(_acme_server, _GAME, config))
  acme_builder = acme_side.make_builder(acme_side.make_spec(_GAME), config)
  our_builder = builders_lib.AgentBuilder(agent)
  our_writer = _OurWriter(agent, our_server.client)
  acme_writer = _AcmeWriter(acme_builder, acme_server.client)
  _fill(our_writer, our_server, num, our_writer.prepare(recording))
  _fill(acme_writer, acme_server, num, acme_writer.prepare(recording))

  def batches_per_second(take: Callable[[], Any], warm: int) -> float:
    for _ in range(warm):  # What was prefetched while nothing was measured.
      take()
    return 1 / harness.seconds_per_call(take, settings.seconds)

  def our_round() -> float:
    dataset = our_builder.make_dataset_iterator(our_server.client)
    # As the learner does, which hands each batch back.
    rate = batches_per_second(lambda: dataset.release(next(dataset)), warm=5)
    dataset.stop()
    return rate

  def their_round() -> float:
    dataset = acme_builder.make_dataset_iterator(acme_server.client)
    return batches_per_second(lambda: next(dataset), warm=2)

  batch = blocks.empty_batch(replay, agent.replay_shapes, batch_size)
  num_bytes = sum(x.nbytes for x in jax.tree.leaves(batch))
  try:
    return [
      harness.compare(
        f'replay-sample B={batch_size} T=160',
        'batches/s',
        our_round,
        their_round,
        rounds=settings.rounds,
        limit=floors.copy_bytes_per_second() / num_bytes,
      )
    ]
  finally:
    our_server.stop()
    acme_server.stop()


def replay_bytes(settings: harness.Settings) -> List[harness.Row]:
  """Growth of the server's resident memory, a step, over ten games."""
  our_steps = settings.pick(3_200, 800)
  their_steps = settings.pick(1_600, 800)
  games = settings.pick(_GAMES, _GAMES[:1])
  agent = our_side.make_agent(_GAME)
  config = acme_side.make_config()
  our_server = _ServerProcess(functools.partial(our_side.start_replay, agent))
  acme_server = _ServerProcess(functools.partial(_acme_server, _GAME, config))
  builder = acme_side.make_builder(acme_side.make_spec(_GAME), config)
  ours = _OurWriter(agent, our_server.client)
  theirs = _AcmeWriter(builder, acme_server.client)
  compress = zstandard.ZstdCompressor(level=1).compress
  warm = _record(_GAME, 800)  # What a server needs once is not counted.
  ours.write(ours.prepare(warm))
  theirs.write(theirs.prepare(warm))
  ours.flush()
  before = our_server.resident_bytes(), acme_server.resident_bytes()
  compressed, per_game = 0, {}
  for game in games:
    recording = _record(game, our_steps)
    start = our_server.resident_bytes()
    ours.write(ours.prepare(recording))
    ours.flush()
    per_game[game] = (our_server.resident_bytes() - start) / our_steps
    theirs.write(theirs.prepare(_cut(recording, their_steps)))
    frames = np.stack([t.observation[..., -1] for t in recording.timesteps[1:]])
    compressed += sum(
      len(compress(frames[i : i + 160])) for i in range(0, our_steps, 160)
    )
  our_bytes = (our_server.resident_bytes() - before[0]) / (
    len(games) * our_steps
  )
  their_bytes = (acme_server.resident_bytes() - before[1]) / (
    len(games) * their_steps
  )
  our_server.stop()
  acme_server.stop()
  state_bytes = 2 * 4 * 512 / _PERIOD
  paper_gb = our_bytes * _PAPER_SEQUENCES * _PERIOD / 1e9
  games_text = ', '.join(f'{g} {b:,.0f}' for g, b in per_game.items())
  return [
    harness.compare(
      f'replay-bytes, {len(games)} games',
      'bytes/step',
      lambda: our_bytes,
      lambda: their_bytes,
      rounds=0,
      lower_is_better=True,
      # Frames compressed 160 at a time, and one recurrent state a block.
      limit=compressed / (len(games) * our_steps) + state_bytes,
      note=f'{_PAPER_SEQUENCES:,} sequences take {paper_gb:.1f} GB; '
      f'{games_text}',
    )
  ]


def h2d(settings: harness.Settings) -> List[harness.Row]:
  """Counted, not measured: the arrays of one batch of 64 x 160."""
  del settings
  agent = our_side.make_agent(_GAME)
  batch = blocks.empty_batch(agent.config.replay, agent.replay_shapes, _BATCH)
  config = acme_side.make_config()
  spec = acme_side.make_spec(_GAME)
  builder = acme_side.make_builder(spec, config)
  (table,) = builder.make_replay_tables(spec)
  length = config.burn_in_length + config.trace_length + 1
  theirs = sum(
    _BATCH
    * length
    * int(np.prod(x.shape[1:]))
    * x.dtype.as_numpy_dtype().nbytes
    for x in jax.tree.leaves(table.info.signature)
  )
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


def params(settings: harness.Settings) -> List[harness.Row]:
  """Counted: what 16 games fetch in 1000 agent steps; one client each there."""
  agent_steps = settings.pick(32_000, 16_000)
  agent = our_side.make_agent(_GAME)
  ours = our_side.ActorLoop(agent)
  theirs = acme_side.ActorLoop(_GAME)

  def megabytes(source: Any, update: Any, turns: int) -> float:
    before = source.fetched_bytes
    for _ in range(turns):
      update()
    return (source.fetched_bytes - before) / 1e6 / (agent_steps / 1000)

  return [
    harness.compare(
      'params',
      'MB/1000 steps',
      lambda: megabytes(
        ours.source, ours.update_variables, agent_steps // our_side.NUM_GAMES
      ),
      lambda: megabytes(theirs.source, theirs.update_variables, agent_steps),
      rounds=0,
      lower_is_better=True,
    )
  ]
