"""A run in one process: the same agent, and the same every time."""

import dataclasses

import jax
import numpy as np
import pytest

from bt_acme import assembly, environments
from bt_acme import config as config_lib
from bt_acme import learner as learner_lib
from bt_acme.core import data_parallel
from bt_acme.environments import vector
from bt_acme.runtime import saved_run
from bt_acme.runtime.engines import in_process, in_process_learner
from tests.agents import fakes

pytestmark = pytest.mark.usefixtures('shared_functions')

N, STEPS = 3, 240


@pytest.fixture(name='fake_environments')
def make_fake_environments(monkeypatch):
  monkeypatch.setattr(
    environments,
    'make_vector',
    lambda name, num_environments, *, seed, num_stacked: (
      vector.VectorEnvironment(
        [
          fakes.MarkedEnvironment(environments.seed_of(seed, i) % 200)
          for i in range(num_environments)
        ]
      )
    ),
  )


@pytest.fixture(name='run')
def make_run(fake_environments):
  def run(kind, seed=0, **settings):
    return in_process.run(
      fakes.make_agent(kind),
      num_environments=N,
      max_actor_steps=STEPS,
      seed=seed,
      **settings,
    )

  return run


@pytest.mark.parametrize('kind', ['r2d2', 'ngu', 'bt'])
def test_a_run(run, kind):
  seen = []
  result = run(kind, on_episode=seen.append)
  assert STEPS <= result.actor_steps < STEPS + N
  assert seen == result.episodes and len(seen) > 5
  steps = [row['actor_steps'] for row in seen]
  assert steps == sorted(steps) and steps[-1] <= result.actor_steps
  assert result.learner[0]['learner_steps'] == 10
  assert all(np.isfinite(list(row.values())).all() for row in result.learner)
  for row in result.learner:
    assert 0 <= row['first_visit_share'] <= 1
    assert row['priority_over_uniform'] > 0
    assert row['target_copies'] == 0  # The period is longer than the run.
  assert result.learner[-1]['first_visit_share'] < 1
  if kind == 'ngu':
    # One set of statistics, of each step that was taken.
    assert result.statistics.error_count == result.actor_steps
    assert any(row['intrinsic_return'] > 0 for row in seen)
  else:
    assert result.statistics is None
    assert not result.variables.intrinsic
  assert any(row['flights'] for row in seen) == (kind == 'bt')


def test_the_seed_decides(run):
  first, again, other = run('r2d2'), run('r2d2'), run('r2d2', seed=1)
  assert first.episodes == again.episodes != other.episodes
  assert first.learner == again.learner
  jax.tree.map(np.testing.assert_array_equal, first.variables, again.variables)


def test_the_learner_compiles_once(run, monkeypatch, tmp_path):
  steps = []
  jit_step = data_parallel.jit_step

  def keep(*args):
    steps.append(jit_step(*args))
    return steps[-1]

  learner_lib._compiled.cache_clear()  # Of earlier tests.
  monkeypatch.setattr(data_parallel, 'jit_step', keep)
  run('r2d2')
  (step,) = steps
  assert step._cache_size() == 1
  # A run that is saved, and one that is loaded, take what is there.
  agent = fakes.make_agent('r2d2')

  def make():
    return in_process.InProcessRun(agent, num_environments=N, seed=0)

  stop_and_go(make, (100, STEPS), tmp_path / 'run')
  assert steps == [step] and step._cache_size() == 1


@pytest.mark.parametrize('num_allowed', [1, 3, 8, 20, 24])
def test_learner_steps_are_spread_over_the_turns(monkeypatch, num_allowed):
  period, bursts = 20, 4
  learner = in_process_learner.Learner(fakes.make_agent('r2d2'), 0, None)
  learner._sequence_period = period
  left, started = 0, np.zeros([bursts, period], int)

  def start():
    nonlocal left
    left -= 1
    started[turn] += 1

  monkeypatch.setattr(learner.replay, 'num_allowed', lambda batch_size: left)
  monkeypatch.setattr(learner, '_start', start)
  for turn in np.ndindex(bursts, period):
    if turn[1] == 0:  # All environments finish a sequence.
      left += num_allowed
    learner.advance()
  # Almost all of a burst, and then as many as each burst allows.
  assert started[0].sum() >= 0.7 * num_allowed
  assert started[-1].sum() == num_allowed
  assert started.max() <= -(-num_allowed // period) + 1
  gaps = np.diff(np.flatnonzero(started[-1]))
  assert np.all(gaps == max(period // num_allowed, 1))


def test_initial_parameters_are_where_it_starts(run):
  agent = fakes.make_agent('r2d2')
  params = fakes.variables_of(agent, 9).agent
  frozen = dataclasses.replace(
    agent,
    config=dataclasses.replace(
      agent.config,
      learner=dataclasses.replace(agent.config.learner, learning_rate=1e-12),
    ),
  )
  result = in_process.run(
    frozen,
    num_environments=1,
    max_actor_steps=40,
    seed=0,
    initial_params=params,
  )
  jax.tree.map(
    lambda x, y: np.testing.assert_allclose(x, y, atol=1e-9),
    result.variables.agent,
    params,
  )


def test_snapshots(run):
  snapshots = []
  result = run('ngu', snapshot_period=50, on_snapshot=snapshots.append)
  expected = run('ngu')
  assert_same(result, expected)
  steps = [snapshot.actor_steps for snapshot in snapshots]
  assert len(steps) == 4 == STEPS // 50
  assert all(0 <= step - 50 * (i + 1) < N for i, step in enumerate(steps))
  for snapshot in snapshots:
    assert snapshot.statistics.error_count == snapshot.actor_steps
  first, last = (
    np.array(jax.tree.leaves(s.variables)[0]) for s in snapshots[::3]
  )
  assert (first != last).any()
  # Each shows the run as it would have ended there.
  stopped = in_process.InProcessRun(
    fakes.make_agent('ngu'), num_environments=N, seed=0
  )
  stopped.run(steps[1])
  assert_same(stopped.snapshot(), snapshots[1])


@pytest.mark.parametrize('period', [0, -3])
def test_a_period_is_positive(run, period):
  with pytest.raises(ValueError, match=f'snapshot_period={period}'):
    run('r2d2', snapshot_period=period)


def assert_same(one, other):
  """Compares to the last bit."""
  assert jax.tree.structure(one) == jax.tree.structure(other)
  jax.tree.map(np.testing.assert_array_equal, one, other)


def make_agent(kind, tmp_path, initial_priority='actor'):
  """An agent whose replay is soon full."""
  replay = config_lib.ReplayConfig(
    trace_length=fakes.T,
    sequence_period=fakes.P,
    min_replay_size=4,
    max_replay_size=25,
    samples_per_insert=4.0,
    initial_priority=initial_priority,
  )
  return fakes.make_agent(kind, tmp_path / 'behavior', replay=replay)


def stop_and_go(make, stops, path):
  """Runs to each stop in an object of its own; returns the last result."""
  for i, stop in enumerate(stops):
    run = make()
    if i:
      run.load(path)
    run.run(stop)
    run.save(path)
    run.close()
  return run.result()


@pytest.mark.usefixtures('fake_environments')
@pytest.mark.parametrize(
  'kind, initial_priority',
  [
    ('r2d2', 'largest'),
    ('ngu', 'actor'),
    ('ngu:reward_observation=next', 'actor'),
    ('bt', 'actor'),
  ],
)
def test_a_run_that_is_stopped_goes_on(kind, initial_priority, tmp_path):
  agent = make_agent(kind, tmp_path, initial_priority)

  def make():
    return in_process.InProcessRun(agent, num_environments=N, seed=3)

  whole = make()
  whole.run(STEPS)
  expected = whole.result()
  assert len(expected.learner) > 3 and len(expected.episodes) > 20
  stops = (0, 1, 7, 64, 65, 171, STEPS)
  result = stop_and_go(make, stops, tmp_path / 'run')
  assert_same(result, expected)
  assert [path.name for path in tmp_path.iterdir()] in (
    ['run'],
    ['behavior', 'run'],
    ['run', 'behavior'],
  )


@pytest.mark.parametrize(
  'name',
  ['MiniGrid-DoorKey-5x5-v0:door=0.3', 'MiniGrid-Dynamic-Obstacles-5x5-v0'],
)
def test_minigrid_goes_on(name, tmp_path):
  environment = environments.make(name, seed=0)
  agent = assembly.Agent(
    fakes.make_config(config_lib.NGUConfig),
    assembly.spec_of(environment, name),
  )

  def make():
    return in_process.InProcessRun(agent, num_environments=2, seed=1)

  whole = make()
  whole.run(700)
  expected = whole.result()
  assert len(expected.learner) > 3 and len(expected.episodes) > 1
  assert_same(stop_and_go(make, (33, 419, 700), tmp_path / 'run'), expected)


@pytest.fixture(name='saved')
def make_saved(fake_environments, tmp_path):
  """A saved run, and what makes others."""
  del fake_environments
  agent = fakes.make_agent('r2d2')

  def make(agent=agent, seed=0, num_environments=N):
    return in_process.InProcessRun(
      agent, num_environments=num_environments, seed=seed
    )

  run = make()
  run.run(60)
  run.save(tmp_path / 'run')
  return run, tmp_path / 'run', make


def test_the_file_of_another_run_is_refused(saved):
  _, path, make = saved
  before = path.read_bytes()
  slower = fakes.make_agent(
    'r2d2', learner=config_lib.LearnerConfig(batch_size=4, learning_rate=1e-9)
  )
  for settings, message in (
    ({'seed': 1}, 'seed=0 there and 1 here'),
    ({'num_environments': 2}, 'num_environments=3 there and 2 here'),
    ({'agent': slower}, 'learning_rate=.* there and 1e-09 here'),
    ({'agent': fakes.make_agent('ngu')}, "agent='R2D2Config' there"),
  ):
    with pytest.raises(ValueError, match=f'{path}.*another run.*{message}'):
      make(**settings).load(path)
  assert path.read_bytes() == before


def test_another_version_is_refused(saved, monkeypatch):
  _, path, make = saved
  monkeypatch.setitem(saved_run._VERSIONS, 'jax', '0.0.1')
  with pytest.raises(ValueError, match="jax='.*' there and '0.0.1' here"):
    make().load(path)


def test_a_run_that_has_begun_loads_nothing(saved):
  run, path, _ = saved
  with pytest.raises(RuntimeError, match='has begun'):
    run.load(path)


@pytest.mark.usefixtures('fake_environments')
def test_an_error_of_the_caller_loses_nothing(run):
  expected = run('ngu')

  def stop(row):
    del row
    raise KeyboardInterrupt

  stopped = in_process.InProcessRun(
    fakes.make_agent('ngu'), num_environments=N, seed=0
  )
  for _ in range(3):
    with pytest.raises(KeyboardInterrupt):
      stopped.run(STEPS, on_episode=stop)
  stopped.run(STEPS)
  assert_same(stopped.result(), expected)


def test_an_interrupted_turn_is_not_saved(saved, monkeypatch):
  run, path, make = saved
  before = path.read_bytes()

  def interrupt(self):
    raise KeyboardInterrupt

  with monkeypatch.context() as patch:
    patch.setattr(vector.VectorEnvironment, 'recv', interrupt)
    with pytest.raises(KeyboardInterrupt):
      run.run(STEPS)
  for action in (lambda: run.save(path), lambda: run.run(STEPS)):
    with pytest.raises(RuntimeError, match='load its last file'):
      action()
  assert path.read_bytes() == before
  again = make()
  again.load(path)
  again.run(STEPS)


class Stateless(fakes.MarkedEnvironment):
  """It cannot say its state."""

  state = None


def test_new_episodes_where_the_old_ones_cannot_be_kept(
  saved, monkeypatch, caplog
):
  _, path, make = saved
  seeds = []

  def make_vector(name, num_environments, *, seed, num_stacked):
    del name, num_stacked
    seeds.append(seed)
    return vector.VectorEnvironment(
      [Stateless(i) for i in range(num_environments)]
    )

  monkeypatch.setattr(environments, 'make_vector', make_vector)
  run = make()
  run.run(100)
  run.save(path)
  assert 'Stateless cannot be saved' in caplog.text
  steps, episodes = run.actor_steps, run.result().episodes
  again = make()
  again.load(path)
  assert again.actor_steps == steps and again.result().episodes == episodes
  again.run(160)
  result = again.result()
  assert result.episodes[: len(episodes)] == episodes
  # Each new episode began after the stop, and none of the old ones went on.
  started = [row['episode_length'] for row in result.episodes[len(episodes) :]]
  assert 0 < sum(started) <= result.actor_steps - steps
  assert len(set(seeds)) == 2  # Not the first episodes again.
