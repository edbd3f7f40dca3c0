"""From an environment's step to the learner's batch, through a real server."""

import dataclasses
import threading
import time

import dm_env
import numpy as np
import pytest

pytest.importorskip('reverb', reason='needs the full environment')

import reverb

from bt_acme.core import types
from bt_acme.replay import blocks, table, writer
from bt_acme.replay import in_process as in_process_replay
from bt_acme.replay import sampler as sampler_lib
from bt_acme.replay import sinks as adder
from tests.replay import episodes

P, T = episodes.PERIOD, episodes.LENGTH


class Replay:
  """A server, and what one actor and one learner make for it."""

  def __init__(self, shapes=None, *, batch_size=1000, **changes):
    self.config = episodes.make_config(**changes)
    self.shapes = shapes or episodes.make_shapes()
    # A large batch lets the two sides of a test be far apart.
    sequences = table.make_table(
      self.config, self.shapes, batch_size=batch_size
    )
    self.server = reverb.Server([sequences], port=None)
    self.client = reverb.Client(f'localhost:{self.server.port}')
    self.writers, self.samplers = [], []

  def builder(self):
    return blocks.SequenceBuilder(self.config, self.shapes)

  def sink(self, **kwargs):
    self.writers.append(
      writer.ReverbWriter(self.client, self.config, self.shapes)
    )
    return adder.SequenceSink(self.builder(), self.writers[-1], **kwargs)

  def sampler(self, batch_size=4, **kwargs):
    self.samplers.append(
      sampler_lib.SequenceSampler(
        self.client, self.config, self.shapes, batch_size=batch_size, **kwargs
      )
    )
    return self.samplers[-1]

  def info(self):
    return self.client.server_info(timeout=5)[table.TABLE]

  def close(self):
    for replay_writer in self.writers:
      replay_writer.close()
    for sampler in self.samplers:
      sampler.stop()
    self.server.stop()


@pytest.fixture
def make_replay():
  replays = []

  def make(*args, **kwargs):
    replays.append(Replay(*args, **kwargs))
    return replays[-1]

  yield make
  for replay in replays:
    replay.close()


def fill(sink, episode):
  for step in episode.steps:
    sink.add(step)
  sink.end_episode(*episode.final)


def wait_until(condition, timeout_s=10.0):
  deadline = time.monotonic() + timeout_s
  while not condition():
    assert time.monotonic() < deadline
    time.sleep(0.01)


def collect(sampler, wanted, num_batches=100):
  """Samples until each wanted marker (first entry of the state) was seen."""
  found = {}
  for _ in range(num_batches):
    sample = next(sampler)
    for index, marker in enumerate(sample.batch.recurrent_state.hidden[:, 0]):
      found[float(marker)] = sample.batch, index
    if set(found) == set(wanted):
      return found
  raise AssertionError(f'Saw {len(found)} sequences, wanted {len(wanted)}.')


@pytest.mark.parametrize('codec', ('blocks', 'tensors'))
@pytest.mark.parametrize('num_stacked, channels', ((4, 1), (1, 3), (2, 3)))
def test_every_sequence_arrives_as_from_a_local_replay(
  make_replay, num_stacked, channels, codec
):
  replay = make_replay(episodes.make_shapes(num_stacked, channels), codec=codec)
  local_replay = in_process_replay.LocalReplay(
    replay.config, replay.shapes, seed=0
  )
  sinks = [
    replay.sink(),
    adder.SequenceSink(replay.builder(), local_replay.writer()),
  ]
  rng = np.random.default_rng(num_stacked)
  wanted = {}
  for num_steps in (3, 1, P, P + 1, T, T + 1, 2 * T + 3):
    episode = episodes.make_episode(
      rng, num_steps, replay.shapes, truncated=num_steps % 2 == 0
    )
    for sink in sinks:
      fill(sink, episode)
    for start in episodes.starts(episode):
      wanted[float(episode.steps[start][3].hidden[0])] = episode, start
  replay.writers[0].flush()
  assert replay.info().current_size == len(local_replay) == len(wanted)

  found = collect(replay.sampler(num_threads=2), wanted)
  for marker, (batch, index) in found.items():
    episodes.assert_is_sequence(batch, index, *wanted[marker], replay.shapes)
  sample = local_replay.sample(500).batch
  for index, marker in enumerate(sample.recurrent_state.hidden[:, 0]):
    batch, other = found[float(marker)]
    for name in types.SequenceBatch._fields[:-1]:
      np.testing.assert_array_equal(
        getattr(sample, name)[:, index], getattr(batch, name)[:, other]
      )


def test_one_marked_step_from_adder_to_batch(make_replay):
  replay = make_replay(episodes.make_shapes(num_stacked=2))
  sequence_adder = adder.SequenceAdder(replay.sink())

  def observation(t):  # Frames t - 1 and t.
    return np.stack(
      [np.full((5, 6), 100 + max(t - 1, 0)), np.full((5, 6), 100 + t)], axis=-1
    ).astype(np.uint8)

  num_steps, marked = T, 5
  sequence_adder.add_first(dm_env.restart(observation(0)))
  for t in range(num_steps):
    last = t == num_steps - 1
    make_step = dm_env.termination if last else dm_env.transition
    next_timestep = make_step(reward=1000.0 + t, observation=observation(t + 1))
    sequence_adder.add(
      np.int32(10 + t),
      next_timestep,
      {
        'prev_action': 9 + t if t else types.NO_ACTION,
        'prev_reward': 499.5 + t if t else 0.0,
        'recurrent_state': types.LSTMState(
          np.full(3, t, np.float32), np.full(3, -t, np.float32)
        ),
        'choice': np.int32(18 if t == marked else 10 + t),
        'source': types.FLIGHT if t == marked else types.OWN,
        'probability': 0.5 if t == marked else 0.25,
        'reward': 500.5 + t,  # Intrinsic: the task's must not be seen.
      },
    )
  sample = next(replay.sampler(batch_size=2))
  batch = sample.batch
  assert sample.keys.shape == sample.probabilities.shape == (2,)
  assert sample.keys.dtype == np.uint64 and sample.table_size == 1
  assert batch.frames.shape == (2 + T, 2, 5, 6, 1)
  for b in range(2):
    stack = batch.frames[marked : marked + 2, b, 0, 0, 0]
    np.testing.assert_array_equal(stack, [104, 105])
    assert batch.prev_action[marked, b] == 14
    assert batch.prev_reward[marked, b] == 504.5
    assert batch.action[marked, b] == 15
    assert batch.choice[marked, b] == 18
    assert np.flatnonzero(batch.source[:, b]).tolist() == [marked]
    assert np.flatnonzero(batch.probability[:, b] == 0.5).tolist() == [marked]
    assert batch.reward[marked, b] == 505.5
    np.testing.assert_array_equal(batch.reward[:, b], 500.5 + np.arange(T))
    np.testing.assert_array_equal(batch.discount[:, b], [1] * (T - 1) + [0])
    np.testing.assert_array_equal(batch.valid[:, b], 1)
    assert batch.prev_action[0, b] == types.NO_ACTION
    assert batch.prev_reward[0, b] == 0
    assert batch.prev_action[T, b] == 10 + T - 1
    assert batch.prev_reward[T, b] == 500.5 + T - 1
    np.testing.assert_array_equal(batch.frames[-2:, b, 0, 0, 0], [111, 112])
    np.testing.assert_array_equal(batch.recurrent_state.hidden[b], 0)


def test_recurrent_state_is_the_one_before_the_sequence(make_replay):
  replay = make_replay()
  episode = episodes.make_episode(
    np.random.default_rng(0), T + P, replay.shapes
  )
  fill(replay.sink(), episode)
  wanted = {float(episode.steps[t][3].hidden[0]): t for t in (0, P)}
  for marker, (batch, index) in collect(replay.sampler(), wanted).items():
    step = episode.steps[wanted[marker]]
    np.testing.assert_array_equal(
      batch.recurrent_state.cell[index], step[3].cell
    )
    assert batch.action[0, index] == step[4]


def test_sequence_can_be_sampled_before_its_episode_ends(make_replay):
  replay = make_replay()
  episode = episodes.make_episode(
    np.random.default_rng(0), 2 * T, replay.shapes
  )
  sink = replay.sink()
  for step in episode.steps[:T]:
    sink.add(step)
  assert replay.info().current_size == 0
  sink.add(episode.steps[T])
  wait_until(lambda: replay.info().current_size == 1)


def test_reset_drops_what_was_not_written(make_replay):
  replay = make_replay()
  sequence_adder = adder.SequenceAdder(replay.sink())
  rng = np.random.default_rng(0)
  unfinished = episodes.make_episode(rng, 2 * P, replay.shapes)
  whole = episodes.make_episode(rng, 2, replay.shapes)
  for episode, num_steps in ((unfinished, 2 * P - 1), (whole, 2)):
    sequence_adder.add_first(dm_env.restart(episode.steps[0][0]))
    observations = [step[0] for step in episode.steps] + [episode.final[0]]
    for t, step in enumerate(episode.steps[:num_steps]):
      last = t == len(episode.steps) - 1
      make_step = dm_env.termination if last else dm_env.transition
      names = ('prev_action', 'prev_reward', 'recurrent_state')
      extras = dict(zip(names, step[1:4], strict=True))
      names = ('choice', 'source', 'probability')
      extras.update(zip(names, step[5:8], strict=True))
      next_timestep = make_step(reward=step[8], observation=observations[t + 1])
      sequence_adder.add(step[4], next_timestep, extras)
    sequence_adder.reset()
  replay.writers[0].flush()
  assert replay.info().current_size == 1
  sample = next(replay.sampler(batch_size=1))
  episodes.assert_is_sequence(sample.batch, 0, whole, 0, replay.shapes)
  with pytest.raises(ValueError, match='add_first'):
    sequence_adder.add(0, dm_env.restart(None), {})


def test_released_batches_are_filled_again(make_replay):
  replay = make_replay()
  episode = episodes.make_episode(np.random.default_rng(0), 3, replay.shapes)
  fill(replay.sink(), episode)
  sampler = replay.sampler()
  released = set()
  for _ in range(20):
    sample = next(sampler)
    episodes.assert_is_sequence(sample.batch, 3, episode, 0, replay.shapes)
    if id(sample.batch.frames) in released:
      return
    released.add(id(sample.batch.frames))
    sampler.release(sample)
    del sample
  raise AssertionError('No batch was filled again.')


def test_stop_while_waiting_for_data(make_replay):
  sampler = make_replay().sampler(num_threads=2)
  outcomes = []

  def consume():
    outcomes.append(list(sampler))

  consumer = threading.Thread(target=consume)
  consumer.start()
  time.sleep(0.1)
  start = time.monotonic()
  sampler.stop()
  consumer.join(5)
  assert outcomes == [[]]
  assert time.monotonic() - start < 5
  assert not any(
    thread.name.startswith('sampler-') for thread in threading.enumerate()
  )


def test_error_of_a_thread_reaches_the_learner(make_replay):
  sampler = make_replay().sampler(table='another')
  with pytest.raises(RuntimeError, match='Sampling') as error:
    next(sampler)
  assert 'another' in str(error.value.__cause__)


def test_priorities_reach_the_table(make_replay):
  replay = make_replay(priority_exponent=1.0)
  sink = replay.sink(initial_priority=lambda: 3.0)
  rng = np.random.default_rng(0)
  for _ in range(3):
    fill(sink, episodes.make_episode(rng, 2, replay.shapes))
  replay.writers[0].flush()

  def priorities():
    samples = replay.client.sample(table.TABLE, 100, emit_timesteps=False)
    return {sample.info.key: sample.info.priority for sample in samples}

  before = priorities()
  assert list(before.values()) == [3.0] * 3
  updater = sampler_lib.PriorityUpdater(replay.client)
  assert updater.max_priority == 1.0
  keys = np.array(sorted(before), np.uint64)
  updater.update(keys, np.float32([0.25, 7.0, 0.5]))
  updater.update(keys[:1], np.float32([0.75]))
  updater.flush()
  assert updater.max_priority == 7.0
  assert priorities() == dict(zip(keys.tolist(), (0.75, 7, 0.5), strict=True))
  with pytest.raises(ValueError, match='finite'):
    updater.update(keys, np.float32([1, np.nan, 1]))
  updater.stop()


def test_failed_priority_update_is_reported(make_replay):
  replay = make_replay()
  updater = sampler_lib.PriorityUpdater(replay.client, table='another')
  updater.update(np.uint64([1]), np.ones(1))
  with pytest.raises(RuntimeError, match='priorities') as error:
    updater.flush()
  assert 'another' in str(error.value.__cause__)
  updater.stop()


def test_initial_priority_decides_what_is_sampled(make_replay):
  replay = make_replay(priority_exponent=1.0)
  priorities = iter([0.0, 5.0, 0.0])
  sink = replay.sink(initial_priority=lambda: next(priorities))
  rng = np.random.default_rng(0)
  wanted = [episodes.make_episode(rng, 2, replay.shapes) for _ in range(3)]
  for episode in wanted:
    fill(sink, episode)
  replay.writers[0].flush()
  sample = next(replay.sampler())
  for index in range(4):
    episodes.assert_is_sequence(
      sample.batch, index, wanted[1], 0, replay.shapes
    )


def overfill(replay):
  """Writes in a thread until the table takes no more; returns the thread."""
  sink, errors = replay.sink(), []
  episode = episodes.make_episode(np.random.default_rng(0), 2, replay.shapes)

  def work():
    try:
      for _ in range(200):
        fill(sink, episode)
    except ConnectionError as error:
      errors.append(error)

  thread = threading.Thread(target=work, daemon=True)
  thread.start()
  wait_until(lambda: replay.info().current_size > 0)
  sizes = []

  def settled():
    sizes.append(replay.info().current_size)
    time.sleep(0.1)
    return len(sizes) > 3 and len(set(sizes[-3:])) == 1

  wait_until(settled)
  assert thread.is_alive() and sizes[-1] < 100
  return thread, errors


def test_actors_wait_for_the_learner_and_can_be_stopped(make_replay):
  replay = make_replay(batch_size=4)
  thread, errors = overfill(replay)
  size = replay.info().current_size
  sampler = replay.sampler()
  next(sampler)
  wait_until(lambda: replay.info().current_size > size)
  sampler.stop()
  replay.writers[0].stop()
  thread.join(5)
  assert not thread.is_alive() and not errors


def test_wait_for_a_server_that_does_not_answer_ends(make_replay, monkeypatch):
  replay = make_replay(batch_size=4)
  monkeypatch.setattr(writer, '_PROBE_S', 1)
  thread, errors = overfill(replay)

  def server_info(timeout):
    raise reverb.DeadlineExceededError('')

  monkeypatch.setattr(replay.client, 'server_info', server_info)
  thread.join(5)
  assert not thread.is_alive()
  assert 'does not answer' in str(errors[0])


def test_learner_is_not_starved_by_a_batch_larger_than_the_table(make_replay):
  replay = make_replay(batch_size=4, samples_per_insert=0.4, min_replay_size=2)
  sink = replay.sink()
  rng = np.random.default_rng(0)
  for _ in range(2):
    fill(sink, episodes.make_episode(rng, 2, replay.shapes))
  assert next(replay.sampler()).batch.action.shape == (T, 4)


def test_memory_estimate():
  config = episodes.make_config(
    trace_length=160, sequence_period=80, max_replay_size=125_000
  )
  shapes = types.ReplayShapes((84, 84, 1), num_stacked=4, lstm_size=512)
  estimate = table.memory_estimate(config, shapes)
  # 84 frames of 7056 bytes, 33 bytes a step, 8 a block, 4096 of the state.
  block = 84 * 7056 + 80 * 33 + 8 + 4096
  assert estimate.raw == 125_001 * block
  assert 3e9 < estimate.compressed < 10e9
  assert str(estimate).startswith('A full replay holds 74.9 GB')
  # 161 stacks, 33 bytes a row of the rest, the state once.
  tensors = table.memory_estimate(
    dataclasses.replace(config, codec='tensors'), shapes
  )
  assert tensors.raw == 125_000 * (161 * (4 * 7056 + 34) + 4096)
  assert tensors.compressed > 10 * estimate.compressed
  small = table.MemoryEstimate(raw=2_500_000, compressed=30_000)
  assert '2.5 MB of steps, compressed to about 0.0 MB' in str(small)


def test_replay_larger_than_the_machine_is_refused():
  with pytest.raises(ValueError, match='max_replay_size'):
    table.check_memory(table.MemoryEstimate(raw=10**18, compressed=10**16))
  table.check_memory(table.MemoryEstimate(raw=10**18, compressed=1))


@pytest.mark.parametrize(
  'compressed, memory, fits',
  [(5, 8, True), (7, 8, False), (0.4, 1, True), (0.6, 1, False)],
)
def test_other_processes_need_memory_too(compressed, memory, fits):
  estimate = table.MemoryEstimate(raw=10**11, compressed=int(compressed * 1e9))
  if fits:
    table.check_memory(estimate, memory * 10**9)
    return
  with pytest.raises(ValueError, match='the other processes'):
    table.check_memory(estimate, memory * 10**9)


@pytest.mark.parametrize(
  'own, limits, expected',
  [
    ('0::/', {'memory.max': '7000'}, 7000),
    ('0::/a/b', {'a/b/memory.max': 'max', 'a/memory.max': '6000'}, 6000),
    (
      '4:cpu,memory:/a\n0::/',
      {
        'memory/memory.limit_in_bytes': str(2**63 - 4096),
        'memory/a/memory.limit_in_bytes': '5000',
      },
      5000,
    ),
    # Seen from within a container.
    ('4:memory:/not/here', {'memory/memory.limit_in_bytes': '4000'}, 4000),
    ('0::/', {'memory.max': 'max'}, None),
    ('4:cpu:/', {'memory/memory.limit_in_bytes': '3000'}, None),
  ],
)
def test_limits_of_control_groups_count(tmp_path, own, limits, expected):
  (tmp_path / 'own').write_text(own + '\n')
  for name, limit in limits.items():
    path = tmp_path / 'groups' / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(limit + '\n')
  physical = table.available_memory(own_groups=tmp_path / 'none')
  actual = table.available_memory(tmp_path / 'groups', tmp_path / 'own')
  assert actual == (expected or physical)
