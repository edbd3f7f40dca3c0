"""In-process runs: the same result however often they are stopped."""

import json
import os
import shutil
import signal
import time

import jax
import numpy as np
import pytest

from bt_acme import assembly, behaviors, environments
from bt_acme import config as config_lib
from bt_acme import learner as learner_lib
from bt_acme.config import run as run_config
from bt_acme.core import data_parallel
from bt_acme.environments import vector
from bt_acme.launching import recorded_agent, starting
from bt_acme.runtime import checkpoints, metrics_logger, saved_nodes
from bt_acme.runtime.engines import in_process_learner
from tests.agents import fakes
from tests.launch import scripts
from tests.runtime import round_trips

pytestmark = pytest.mark.usefixtures('shared_functions')

ENV = 'Recall-3'
STEPS, SHORT = 300, 120


class Display:
  """Records all updates, and calls functions at given numbers of steps."""

  def __init__(self, max_actor_steps, actions=()):
    self.max_actor_steps = max_actor_steps
    self.shown = []
    self.is_closed = False
    self._actions = dict(actions)

  def update(self, values):
    self.shown.append(dict(values))
    for steps in sorted(self._actions):
      if values['actor_steps'] >= steps:
        self._actions.pop(steps)()

  def close(self):
    self.is_closed = True


def make_agent(kind, folder=None, initial_priority='largest'):
  """An agent whose replay is soon full; see `fakes.make_agent` for `kind`."""
  replay = config_lib.ReplayConfig(
    trace_length=fakes.T,
    sequence_period=fakes.P,
    min_replay_size=4,
    max_replay_size=25,
    samples_per_insert=4.0,
    initial_priority=initial_priority,
  )
  return fakes.make_agent(kind, folder, replay=replay)


@pytest.fixture(name='agent', scope='module')
def make_recall_agent():
  agent = make_agent('ngu', initial_priority='actor')
  # Evaluations depend on the signs and on random actions.
  agent = fakes.changed(agent, acting={'evaluation_epsilon': 0.5})
  return assembly.Agent(agent.config, assembly.spec_by_name(ENV))


def configuration(folder, **changes):
  settings = {
    'env': ENV,
    'lp_launch_type': 'in_process',
    'num_actors': 1,
    'envs_per_actor': 2,
    'max_actor_steps': STEPS,
    'workdir': str(folder),
    'evaluation_period': 100,
    'evaluation_episodes': 2,
    **changes,
  }
  return run_config.RunConfig(**settings)


def start(folder, agent, actions=(), callbacks=(), **changes):
  """Runs like `bt_acme.pretrain`; returns the exit code and the display."""
  displays = []

  def make_display(max_actor_steps):
    displays.append(Display(max_actor_steps, actions))
    return displays[-1]

  code = starting.start(
    configuration(folder, **changes),
    agent,
    make_display=make_display,
    callbacks=callbacks,
  )
  assert all(display.is_closed for display in displays)
  return code, displays[0] if displays else None


@pytest.fixture(name='whole', scope='module')
def run_whole(agent, tmp_path_factory, shared_functions):
  folder = tmp_path_factory.mktemp('whole') / 'run'
  snapshots = f'1,{SHORT},{STEPS}'
  code, display = start(folder, agent, snapshot_steps=snapshots)
  assert code == 0
  return folder, display


def read(folder, label):
  return [
    {k: v for k, v in row.items() if k not in metrics_logger.MARKS}
    for row in scripts.rows(folder, label)
  ]


def policy_of(folder, agent, **changes):
  return recorded_agent.read_policy(configuration(folder, **changes), agent)


def assert_same_policy(folder, other, agent):
  """Checks that two runs have learned exactly the same policy."""
  policies = (policy_of(path, agent) for path in (folder, other))
  jax.tree.map(np.testing.assert_array_equal, *policies)


def assert_same(folder, other, agent):
  """Checks that the policies and logs of two runs are exactly the same."""
  assert_same_policy(folder, other, agent)
  for log in sorted(other.glob('logs/*')):
    assert read(folder, log.name) == read(other, log.name)


def interrupt():
  os.kill(os.getpid(), signal.SIGINT)


def test_the_files_of_a_run(whole, agent):
  folder, display = whole
  result = policy_of(folder, agent)
  assert STEPS <= result.actor_steps < STEPS + 2
  # There is one set of statistics, with every step.
  assert result.statistics.error_count == result.actor_steps
  assert {path.name for path in folder.iterdir()} == {
    *('config.json', 'completed.json', 'logs', 'checkpoints', 'behavior'),
    *('provenance.json', 'behavior-1', f'behavior-{SHORT}'),
    f'behavior-{STEPS}',
  }
  assert [path.name for path in (folder / 'checkpoints').iterdir()] == [
    'checkpoint-1'
  ]
  assert json.loads((folder / 'config.json').read_text())['engine'] == (
    'in_process'
  )
  episodes = read(folder, 'actor')
  steps = [int(row['learner_steps']) for row in read(folder, 'learner')]
  assert len(episodes) > 3 and steps[:2] == [10, 20]
  assert any(float(row['intrinsic_return']) > 0 for row in episodes)
  evaluations = read(folder, 'evaluator')
  steps = [int(row['actor_steps']) for row in evaluations]
  assert steps == [0, 0, 100, 100, 200, 200, *[result.actor_steps] * 2]
  points = [int(row['evaluation_point']) for row in evaluations]
  assert points == [0, 0, 100, 100, 200, 200, STEPS, STEPS]
  assert {row['epsilon'] for row in evaluations} == {'0.5'}
  assert len({row['episode_return'] for row in evaluations}) > 2
  assert any((folder / 'logs' / 'actor').glob('events*'))
  behavior = behaviors.Exported(str(folder / 'behavior'))
  assert behavior.actor_steps == result.actor_steps
  # Two actors have the epsilons 0.4 ** (1 + 7 i / (2 - 1)).
  epsilons = {row['environment']: row['epsilon'] for row in episodes}
  assert float(epsilons['0']) == pytest.approx(0.4)
  assert float(epsilons['1']) == pytest.approx(0.4**8, rel=1e-5)
  # The display shows all steps, from the first one.
  assert display.max_actor_steps == STEPS
  assert display.shown[0]['actor_steps'] == 0
  last = display.shown[-1]
  assert last['actor_steps'] == result.actor_steps
  assert {
    *('learner_steps', 'replay_size', 'episode_return', 'evaluator_return')
  } <= set(last)


def test_a_second_ctrl_c_ends_a_run_at_once(agent, tmp_path):
  def twice():
    handler = signal.getsignal(signal.SIGINT)
    interrupt()
    # The kernel merges a signal with a pending one of the same kind.
    while signal.getsignal(signal.SIGINT) is handler:
      time.sleep(0.01)
    interrupt()

  with pytest.raises(KeyboardInterrupt):
    start(tmp_path / 'run', agent, {1: twice})


def test_a_run_that_was_killed_resumes_from_its_checkpoint(
  whole, agent, tmp_path, caplog, monkeypatch
):
  folder = tmp_path / 'run'
  snapshots = {'snapshot_steps': '50,120,200'}
  start(folder, agent, {90: interrupt}, **snapshots)
  start(folder, agent, {150: interrupt}, **snapshots)
  assert not (folder / 'behavior-200').exists()
  files = [folder / f'behavior-{steps}' / 'params.npz' for steps in (50, 120)]
  times = [path.stat().st_mtime_ns for path in files]
  # As if the power had failed here, while the second checkpoint was written.
  numbered = [folder / 'checkpoints' / f'checkpoint-{n}' for n in (1, 2)]
  round_trips.flip(numbered[1] / 'arrays.npz')
  log = folder / 'logs' / 'actor' / 'logs.csv'
  before = log.read_bytes()
  with monkeypatch.context() as patch:
    patch.setitem(saved_nodes._VERSIONS, 'jax', '0.0.1')
    with pytest.raises(ValueError, match='other versions'):
      start(folder, agent, snapshot_steps='20,50,120,200')
  assert log.read_bytes() == before
  # The snapshot at 20 steps is requested too late.
  start(folder, agent, snapshot_steps='20,50,120,200')
  assert_same(folder, whole[0], agent)
  # The resumed run neither repeated nor lost a snapshot.
  assert times == [path.stat().st_mtime_ns for path in files]
  assert behaviors.Exported(str(folder / 'behavior-200')).actor_steps < 202
  assert not (folder / 'behavior-20').exists()
  assert 'already past 20 steps' in caplog.text
  # The first checkpoint has become the previous one, not the damaged one.
  assert set((folder / 'checkpoints').iterdir()) == {*numbered}
  # Rows of two sessions are left, and time only increases.
  rows = scripts.rows(folder, 'actor')
  seconds = [float(row['seconds']) for row in rows]
  assert seconds == sorted(seconds) and seconds[0] > 0
  assert len({row[metrics_logger.MARKS[1]] for row in rows}) == 2


def test_without_a_checkpoint_a_run_restarts(whole, agent, tmp_path, capsys):
  folder = tmp_path / 'run'
  # One actor steps the environments of both.
  actors = {'num_actors': 2, 'envs_per_actor': 1}
  start(folder, agent, {60: interrupt}, **actors)
  shutil.rmtree(folder / 'checkpoints')
  # Without a display of its own, the run prints like a launch script.
  assert starting.start(configuration(folder, **actors), agent) == 0
  output = capsys.readouterr().out
  assert 'no checkpoint, so the run starts at step 0' in output
  assert_same(folder, whole[0], agent)


def test_a_larger_budget(whole, agent, tmp_path, monkeypatch):
  folder = tmp_path / 'run'
  start(folder, agent, max_actor_steps=SHORT)
  # Snapshots of a longer run equal the exports of shorter runs.
  for steps, parent in ((SHORT, folder), (STEPS, whole[0])):
    snapshot = behaviors.Exported(str(whole[0] / f'behavior-{steps}'))
    same = behaviors.Exported(str(parent / 'behavior'))
    assert steps <= snapshot.actor_steps < steps + 2
    assert snapshot.actor_steps == same.actor_steps
    jax.tree.map(
      np.testing.assert_array_equal, snapshot.variables, same.variables
    )
  assert behaviors.Exported(str(whole[0] / 'behavior-1')).actor_steps <= 2
  # As if the run had been killed just before its completion was recorded: it
  # resumes at its end without learning any more.
  (folder / 'completed.json').unlink()
  with monkeypatch.context() as patch:
    patch.setattr(in_process_learner.InProcessLearner, 'advance', pytest.fail)
    assert start(folder, agent, max_actor_steps=SHORT)[0] == 0
  code, display = start(folder, agent)
  assert code == 0 and display.shown[0]['actor_steps'] >= SHORT
  # The shorter run had an evaluation at its end.
  assert len(read(folder, 'evaluator')) == len(read(whole[0], 'evaluator')) + 2
  assert_same_policy(folder, whole[0], agent)


def test_a_completed_run_takes_no_steps(whole, agent):
  folder, _ = whole
  times = {path: path.stat().st_mtime_ns for path in folder.rglob('*')}
  assert start(folder, agent) == (0, None)
  assert times == {
    path: path.stat().st_mtime_ns
    for path in folder.rglob('*')
    if path.name != 'run.lock'
  }


def test_a_run_saves_checkpoints_periodically(agent, tmp_path):
  folder = tmp_path / 'run'
  seen = []

  def look():
    seen.append(checkpoints.newest_replay(str(folder / 'checkpoints')))

  settings = {'max_actor_steps': 40, 'num_evaluators': 0}
  start(folder, agent, {20: look}, checkpoint_period=1e-6, **settings)
  assert seen != [None]
  # Without evaluators, there are no evaluations.
  assert not (folder / 'logs' / 'evaluator').exists()


def test_a_refused_run_writes_nothing(whole, agent, tmp_path):
  with pytest.raises(ValueError, match='would never start.* example to 32,'):
    start(tmp_path / 'run', agent, max_actor_steps=3)
  assert not (tmp_path / 'run').exists()
  folder = whole[0]
  one, many = "lp_launch_type='in_process'", "'local_mp, local_mt or ray'"
  with pytest.raises(ValueError, match=f'{one} then, {many} now'):
    start(folder, agent, lp_launch_type='local_mt')
  (tmp_path / 'many').mkdir()
  identity = json.loads((folder / 'config.json').read_text())
  del identity['engine']
  (tmp_path / 'many' / 'config.json').write_text(json.dumps(identity))
  with pytest.raises(ValueError, match=f"={many} then, 'in_process' now"):
    start(tmp_path / 'many', agent)


# Other agents and environments.


@pytest.fixture(name='fake_environments')
def make_fake_environments(monkeypatch):
  """Returns the list of the seeds with which environments are made."""
  seeds = []

  def make_vector(name, num_environments, *, seed, **kwargs):
    seeds.append(seed)
    marks = [
      environments.seed_of(seed, i) % 200 for i in range(num_environments)
    ]
    return vector.VectorEnvironment([*map(fakes.MarkedEnvironment, marks)])

  monkeypatch.setattr(environments, 'make_vector', make_vector)
  return seeds


FAKE = {'env': 'fake', 'envs_per_actor': 3, 'num_evaluators': 0, 'seed': 3}


@pytest.mark.usefixtures('fake_environments')
@pytest.mark.parametrize(
  'kind, initial_priority',
  [
    ('r2d2', 'largest'),
    ('ngu:reward_observation=next', 'actor'),
    ('bt:flight_priorities=learned,kickstarting=0.5', 'actor'),
  ],
)
def test_a_run_that_is_stopped_ends_like_a_run_that_is_not(
  kind, initial_priority, tmp_path
):
  agent = make_agent(kind, tmp_path / 'behavior', initial_priority)
  start(tmp_path / 'whole', agent, **FAKE)
  folder, reached = tmp_path / 'run', 0
  before = signal.getsignal(signal.SIGINT)
  for stop in (1, 64, 65, STEPS - 4):
    code, display = start(folder, agent, {stop: interrupt}, **FAKE)
    assert code == 128 + signal.SIGINT
    assert display.shown[0]['actor_steps'] == reached
    reached = policy_of(folder, agent).actor_steps
    assert stop <= reached < stop + 3
    assert signal.getsignal(signal.SIGINT) == before
  code, display = start(folder, agent, **FAKE)
  assert code == 0 and display.shown[0]['actor_steps'] == reached
  assert_same(folder, tmp_path / 'whole', agent)
  policy = policy_of(folder, agent)
  episodes, learner = (read(folder, label) for label in ('actor', 'learner'))
  assert len(learner) > 3 and len(episodes) > 20
  flew = [float(row['flights']) > 0 for row in episodes]
  assert any(flew) == kind.startswith('bt')
  assert flew == [float(row.get('flight_share', 0)) > 0 for row in episodes]
  for row in learner:
    assert all(np.isfinite(float(value)) for value in row.values())
    assert 0 <= float(row['first_visit_share']) <= 1
  if not kind.startswith('ngu'):
    assert policy.statistics is None and not policy.variables.intrinsic


def test_new_episodes_start_where_the_old_ones_cannot_be_saved(
  fake_environments, tmp_path, monkeypatch, caplog
):
  monkeypatch.setattr(fakes.MarkedEnvironment, 'state', None)
  agent = make_agent('r2d2')
  folder = tmp_path / 'run'
  start(folder, agent, {100: interrupt}, **FAKE)
  assert 'MarkedEnvironment cannot be saved' in caplog.text
  before = read(folder, 'actor')
  steps = policy_of(folder, agent, **FAKE).actor_steps
  start(folder, agent, **FAKE)
  after = read(folder, 'actor')
  assert after[: len(before)] == before
  # Each new episode started after the stop; no old episode was continued.
  started = [int(row['episode_length']) for row in after[len(before) :]]
  assert 0 < sum(started) <= STEPS + 3 - steps
  assert len(set(fake_environments)) == 2  # Not the first episodes again.


@pytest.mark.usefixtures('fake_environments')
def test_a_script_reports_an_error_of_the_user_after_the_start_as_a_failure(
  tmp_path, monkeypatch
):
  def restore(self, state):
    vars(self).update(state, lives=state['lives'])

  def step(self, action):
    raise ValueError('not a wrong flag')

  agent = make_agent('r2d2')
  folder = tmp_path / 'run'
  start(folder, agent, {100: interrupt}, **FAKE)
  run = configuration(folder, **FAKE)
  with monkeypatch.context() as changed:
    changed.setattr(fakes.MarkedEnvironment, 'restore', restore)
    # To delete the checkpoint would not help.
    with pytest.raises(ValueError, match="'lives'.*\\). Use the env") as info:
      starting.start(run, agent)
    assert 'Delete' not in str(info.value)
  monkeypatch.setattr(fakes.MarkedEnvironment, 'step', step)
  with pytest.raises(RuntimeError) as info:
    starting.start(run, agent)
  assert str(info.value.__cause__) == 'not a wrong flag'
  with pytest.raises(ValueError, match='not a wrong flag'):
    start(folder, agent, **FAKE)


@pytest.mark.usefixtures('fake_environments')
def test_the_learner_compiles_once(tmp_path, monkeypatch):
  steps = []
  jit_step = data_parallel.jit_step

  def keep(*args):
    steps.append(jit_step(*args))
    return steps[-1]

  learner_lib._compiled.cache_clear()  # Of earlier tests.
  monkeypatch.setattr(data_parallel, 'jit_step', keep)
  agent = make_agent('r2d2')
  for seed in (0, 1):
    start(tmp_path / str(seed), agent, **{**FAKE, 'seed': seed})
  (step,) = steps
  assert step._cache_size() == 1


@pytest.mark.parametrize('num_allowed', [1, 8, 24])
def test_learner_steps_are_spread_over_the_iterations(monkeypatch, num_allowed):
  period, bursts = 20, 4
  learner = in_process_learner.InProcessLearner(
    fakes.make_agent('r2d2'), 0, None, logger=None, increment=None
  )
  learner._sequence_period = period
  left, started = 0, np.zeros([bursts, period], int)

  def start_step(sample):
    nonlocal left
    left -= 1
    started[iteration] += 1

  monkeypatch.setattr(learner.replay, 'num_allowed', lambda batch_size: left)
  monkeypatch.setattr(learner.replay, 'sample', lambda batch_size: None)
  monkeypatch.setattr(learner, 'start', start_step)
  for iteration in np.ndindex(bursts, period):
    if iteration[1] == 0:  # All environments finish a sequence.
      left += num_allowed
    learner.advance()
  # Almost all steps of the first burst, and then as many as each burst allows.
  assert started[0].sum() >= 0.7 * num_allowed
  assert started[-1].sum() == num_allowed
  assert started.max() <= -(-num_allowed // period) + 1
  gaps = np.diff(np.flatnonzero(started[-1]))
  assert np.all(gaps == max(period // num_allowed, 1))


@pytest.mark.usefixtures('fake_environments')
def test_training_starts_from_the_initial_parameters(tmp_path):
  agent = fakes.make_agent('r2d2')
  params = fakes.variables_of(agent, 9).agent
  frozen = fakes.changed(agent, learner={'learning_rate': 1e-12})
  settings = {**FAKE, 'envs_per_actor': 1, 'max_actor_steps': 40}
  run = configuration(tmp_path, **settings)
  starting.start(run, frozen, make_display=Display, initial_params=params)
  jax.tree.map(
    lambda x, y: np.testing.assert_allclose(x, y, atol=1e-9),
    recorded_agent.read_policy(run, frozen).variables.agent,
    params,
  )
