"""Checkpoints of the tables of a real Reverb server, with faults."""

import contextlib
import gc
import itertools
import pathlib
import shutil
import threading

import numpy as np
import pytest

from bt_acme.config import run as run_config
from bt_acme.replay import table
from bt_acme.runtime import (
  checkpoints,
  replay_checkpoints,
  replay_server,
  saver,
)
from tests.replay import episodes, reverb_replay
from tests.runtime import round_trips

_SIZES = {'max_replay_size': 12, 'samples_per_insert': 100.0}


def make_run(folder, **changes):
  return run_config.RunConfig(workdir=str(folder), **changes)


def serve(run, **changes):
  """Starts a server like the node."""
  return reverb_replay.Replay(
    checkpointer=replay_server.make_checkpointer(run), **{**_SIZES, **changes}
  )


def fill(replay, steps, first_priority=1):
  """Writes an episode; the priorities of its sequences count up."""
  count = itertools.count(first_priority)
  sink = replay.sink(largest_priority=lambda: float(next(count)))
  rng = np.random.default_rng(first_priority)
  episodes.play(episodes.make_episode(rng, steps, replay.layout), sink)
  replay.writers[-1].flush()


def contents(replay):
  """Returns the priority and the contents of each sequence, by key."""
  found = {}
  while len(found) < replay.info().current_size:
    for sample in replay.client.sample(
      table.TABLE, num_samples=400, emit_timesteps=False
    ):
      content = [np.asarray(x).tolist() for x in sample[1]]
      found[sample.info.key] = (sample.info.priority, content)
  return found


def make_saver(run, replay):
  return saver.Saver(
    run.checkpoint_folder,
    lambda: replay_checkpoints.take(run, replay.layout.config, replay.client),
    lambda: replay_checkpoints.clear(run),
  )


@pytest.fixture(name='saved', scope='module')
def save_one(tmp_path_factory):
  """Returns a run with a checkpoint, and the contents of its replay."""
  run = make_run(tmp_path_factory.mktemp('saved'))
  replay = serve(run)
  fill(replay, 48)  # Ten sequences.
  updates = dict.fromkeys(list(contents(replay))[:4], 3.5)
  replay.client.mutate_priorities(table.TABLE, updates)
  held = contents(replay)
  limiter = replay.info().rate_limiter_info
  save(make_saver(run, replay), ({'n': np.zeros([2])}, {}))
  replay.close()
  return run, held, limiter


def save(writer, state):
  writer.begin(state)
  writer._task.join()


def copy(saved, tmp_path):
  run, held, limiter = saved
  shutil.copytree(run.workdir, tmp_path / 'run')
  return make_run(tmp_path / 'run'), held, limiter


def test_a_replay_is_restored_exactly(saved, tmp_path):
  run, held, limiter = copy(saved, tmp_path)
  replay_checkpoints.check(run, episodes.make_config())
  # The scratch directory is empty again.
  assert not list(replay_checkpoints.scratch(run).iterdir())
  assert len(held) == 10
  assert [priority for priority, _ in held.values()].count(3.5) == 4
  # An interrupted save is removed.
  (replay_checkpoints.scratch(run) / 'partial').mkdir()
  with contextlib.closing(serve(run)) as replay:
    assert not list(replay_checkpoints.scratch(run).iterdir())
    # Sampling resumes immediately, at the same rate.
    assert replay.info().rate_limiter_info == limiter
    assert contents(replay) == held
    # The oldest sequences are evicted first.
    fill(replay, 20, first_priority=100)  # Three sequences.
    after = contents(replay)
    priorities = {priority for priority, _ in after.values()}
    assert len(after) == 12 and priorities >= {100, 101, 102}
    assert len(set(held) - set(after)) == 1


@pytest.mark.parametrize(
  'damage, name',
  [(round_trips.flip, 'chunks.tfrecord'), (pathlib.Path.unlink, 'DONE')],
)
def test_a_damaged_replay_is_an_error_until_it_is_deleted(
  saved, tmp_path, damage, name
):
  run, _, _ = copy(saved, tmp_path)
  folder = pathlib.Path(run.checkpoint_folder) / 'checkpoint-1' / 'replay'
  damage(folder / name)
  with pytest.raises(ValueError, match=f'no intact file {name} ') as info:
    replay_checkpoints.check(run, episodes.make_config())
  text = str(info.value)
  assert '\n' not in text and str(folder) in text
  assert 'Delete this directory to resume with an empty replay' in text
  without = make_run(run.workdir, checkpoint_replay=False)
  replay_checkpoints.check(without, episodes.make_config())
  assert replay_server.make_checkpointer(without) is None
  shutil.rmtree(folder)
  replay_checkpoints.check(run, episodes.make_config())


def test_a_replay_with_another_codec_is_an_error(saved):
  run, _, _ = saved
  with pytest.raises(ValueError, match="has .*'blocks'.* needs .*'tensors'"):
    replay_checkpoints.check(run, episodes.make_config(codec='tensors'))


def test_the_server_waits_for_the_learner(tmp_path):
  run = make_run(tmp_path)
  # No learner has started.
  replay_checkpoints.wait_until_unused(run, 100)
  with replay_checkpoints.in_use(run):
    replay_checkpoints.wait_until_unused(run, 0.1)  # The wait times out.
    thread = threading.Thread(
      target=replay_checkpoints.wait_until_unused, args=(run, 100), daemon=True
    )
    thread.start()
    thread.join(0.2)
    assert thread.is_alive()
  thread.join(10)
  assert not thread.is_alive()


def test_a_warning_about_a_small_disk(tmp_path):
  run = make_run(tmp_path)
  assert replay_checkpoints.shortage(run, 1000) == ''
  text = replay_checkpoints.shortage(run, 10**18)
  assert 'need about 2,000,000,000.0 GB' in text and str(tmp_path) in text
  without = make_run(tmp_path, checkpoint_replay=False)
  assert replay_checkpoints.shortage(without, 10**18) == ''


_ARRAYS = {'n': np.zeros([100_000])}  # 800 kB.
_FRAMES = episodes.make_layout(
  max_replay_size=1000, samples_per_insert=1.0
)._replace(frame=(42, 42, 1))


def save_number(writer, number):
  save(writer, ({'n': _ARRAYS['n'] + number}, {'n': number}))


def newest_intact(run):
  """Returns the number of the newest checkpoint, after verifying it."""
  arrays, values = checkpoints.restore(run.checkpoint_folder, _ARRAYS)
  assert set(arrays['n']) == {values['n']}
  replay_checkpoints.check(run, episodes.make_config())
  replay = checkpoints.newest_replay(run.checkpoint_folder)
  assert sum(p.stat().st_size for p in replay.folder.iterdir()) > 2 << 20
  return values['n']


# If writing fails, NumPy leaves its archive open, which then cannot be closed.
@pytest.mark.filterwarnings('ignore::pytest.PytestUnraisableExceptionWarning')
def test_a_full_disk_leaves_a_complete_checkpoint(
  tmp_path, caplog, limit_file_size
):
  run = make_run(tmp_path)
  replay = serve(run, layout=_FRAMES)
  writer = make_saver(run, replay)
  try:
    fill(replay, 1200)  # Some megabytes.
    save_number(writer, 1)
    limit_file_size(1 << 20)  # Enough for the arrays, but not the replay.
    save_number(writer, 2)
    save_number(writer, 3)
    limit_file_size(None)
    assert 'Replay not saved' in caplog.text
    assert newest_intact(run) == 3
    # Both checkpoints link to the replay of the first.
    paths = list(tmp_path.rglob('chunks.tfrecord'))
    assert len({path.stat().st_ino for path in paths}) == 1
    limit_file_size(1 << 18)
    save_number(writer, 4)
    limit_file_size(None)
    assert 'Checkpoint failed; keeping' in caplog.text
    assert newest_intact(run) == 3
    assert not list(replay_checkpoints.scratch(run).iterdir())
    save_number(writer, 5)
    assert newest_intact(run) == 5
  finally:
    replay.close()
    gc.collect()  # Closes the open archives within this test.
