"""A run in one process with a workdir: stopped anywhere, it ends the same."""

import csv
import json
import os
import pathlib
import shutil
import signal
import time

import jax
import numpy as np
import pytest

from bt_acme import assembly, behaviors
from bt_acme import config as config_lib
from bt_acme.config import run as run_config
from bt_acme.runtime import in_process_program, metrics
from tests.agents import fakes

pytestmark = pytest.mark.usefixtures('shared_functions')

ENV = 'Chain-5'
STEPS = 300


class Display:
  """Keeps what it is shown, and does something at some numbers of steps."""

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


@pytest.fixture(name='agent', scope='module')
def make_agent():
  replay = config_lib.ReplayConfig(
    trace_length=fakes.T,
    sequence_period=fakes.P,
    min_replay_size=4,
    max_replay_size=25,
    samples_per_insert=4.0,
  )
  config = fakes.make_config(config_lib.NGUConfig, replay=replay)
  return assembly.Agent(config, assembly.spec_by_name(ENV))


def configuration(folder, **changes):
  settings = {
    'env': ENV,
    'num_actors': 1,
    'envs_per_actor': 2,
    'max_actor_steps': STEPS,
    'workdir': str(folder),
    'evaluation_period': 100,
    'evaluation_episodes': 2,
    **changes,
  }
  return run_config.RunConfig(**settings)


def start(folder, agent, actions=(), **changes):
  displays = []

  def make_display(max_actor_steps):
    displays.append(Display(max_actor_steps, actions))
    return displays[-1]

  ended = in_process_program.run(
    configuration(folder, **changes), agent, make_display=make_display
  )
  (display,) = displays
  assert display.is_closed
  return ended, display


@pytest.fixture(name='whole', scope='module')
def run_whole(agent, tmp_path_factory, shared_functions):
  folder = tmp_path_factory.mktemp('whole') / 'run'
  return folder, *start(folder, agent)


def read_marks(folder, label):
  """Rows with what tells when they were written."""
  with (folder / 'logs' / label / 'logs.csv').open() as file:
    return list(csv.DictReader(file))


def read(folder, label):
  rows = read_marks(folder, label)
  for row in rows:
    for name in metrics.MARKS:
      del row[name]
  return rows


def assert_same(folder, ended, whole):
  expected_folder, expected, _ = whole
  jax.tree.map(
    np.testing.assert_array_equal,
    (ended.result, ended.evaluations),
    (expected.result, expected.evaluations),
  )
  for label in ('actor', 'learner', 'evaluator'):
    assert read(folder, label) == read(expected_folder, label)


def interrupt():
  os.kill(os.getpid(), signal.SIGINT)


def test_what_a_run_leaves_behind(whole):
  folder, ended, display = whole
  result = ended.result
  assert ended.interrupt is None
  assert STEPS <= result.actor_steps < STEPS + 2
  assert {path.name for path in folder.iterdir()} == {
    *('config.json', 'completed.json', 'logs', 'checkpoints', 'behavior'),
    'provenance.json',
  }
  assert json.loads((folder / 'config.json').read_text())['engine'] == (
    'in_process'
  )
  assert len(read(folder, 'actor')) == len(result.episodes) > 3
  assert len(read(folder, 'learner')) == len(result.learner) > 1
  steps = [int(row['actor_steps']) for row in ended.evaluations]
  assert steps == [0, 0, 100, 100, 200, 200, *[result.actor_steps] * 2]
  points = [int(row['evaluation_point']) for row in ended.evaluations]
  assert points == [0, 0, 100, 100, 200, 200, STEPS, STEPS]
  assert any((folder / 'logs' / 'actor').glob('events*'))
  behavior = behaviors.Exported(str(folder / 'behavior'))
  assert behavior.actor_steps == result.actor_steps
  # It is shown from the first step on.
  assert display.max_actor_steps == STEPS
  assert display.shown[0]['actor_steps'] == 0
  last = display.shown[-1]
  assert last['actor_steps'] == result.actor_steps
  assert {'learner_steps', 'replay_size', 'episode_return'} <= set(last)
  assert 'evaluator_return' in last


@pytest.mark.parametrize('steps', [1, 150, STEPS])
def test_ctrl_c_stops_it_and_the_same_command_goes_on(
  whole, agent, tmp_path, steps
):
  before = signal.getsignal(signal.SIGINT)
  ended, _ = start(tmp_path / 'run', agent, {steps: interrupt})
  assert ended.interrupt.signum == signal.SIGINT
  assert steps <= ended.result.actor_steps < steps + 2
  assert signal.getsignal(signal.SIGINT) == before
  ended, display = start(tmp_path / 'run', agent)
  assert ended.interrupt is None
  assert display.shown[0]['actor_steps'] >= steps
  assert_same(tmp_path / 'run', ended, whole)


def test_a_second_ctrl_c_ends_it_at_once(agent, tmp_path):
  def twice():
    handler = signal.getsignal(signal.SIGINT)
    interrupt()
    # The system keeps one signal of a kind that nobody has taken yet.
    while signal.getsignal(signal.SIGINT) is handler:
      time.sleep(0.01)
    interrupt()

  with pytest.raises(KeyboardInterrupt):
    start(tmp_path / 'run', agent, {1: twice})


def test_a_run_that_was_killed_goes_on_from_its_checkpoint(
  whole, agent, tmp_path
):
  folder = tmp_path / 'run'
  checkpoint = folder / 'checkpoints' / 'run'
  kept = tmp_path / 'kept'
  start(folder, agent, {90: interrupt})
  shutil.copy(checkpoint, kept)
  start(folder, agent, {230: interrupt})
  # As if it had been killed here, and had last saved there.
  kept.replace(checkpoint)
  ended, _ = start(folder, agent)
  assert_same(folder, ended, whole)
  # Each of its three sessions has left rows, and time only goes forward.
  rows = read_marks(folder, 'actor')
  assert {row['session'] for row in rows} == {'0', '2'}
  seconds = [float(row['seconds']) for row in rows]
  assert seconds == sorted(seconds) and seconds[0] > 0
  sessions = json.loads((folder / 'provenance.json').read_text())['sessions']
  before = [session['seconds_before'] for session in sessions]
  assert len(before) == 3 and before[0] == 0
  assert before == sorted(before) and seconds[-1] > before[2] > before[1] > 0
  assert all(session['ended'] > session['started'] for session in sessions)


def test_actors_rows_tell_environment_and_epsilon(whole):
  rows = read(whole[0], 'actor')
  epsilons = {row['environment']: row['epsilon'] for row in rows}
  # Two actors have the epsilons 0.4 ** (1 + 7 i / (2 - 1)).
  assert float(epsilons['0']) == pytest.approx(0.4)
  assert float(epsilons['1']) == pytest.approx(0.4**8, rel=1e-5)
  evaluated = read(whole[0], 'evaluator')
  assert {row['epsilon'] for row in evaluated} == {'0.01'}


def test_without_a_checkpoint_it_begins_anew(whole, agent, tmp_path):
  folder = tmp_path / 'run'
  start(folder, agent, {230: interrupt})
  (folder / 'checkpoints' / 'run').unlink()
  ended, _ = start(folder, agent)
  assert_same(folder, ended, whole)


def test_a_larger_budget_goes_on(whole, agent, tmp_path):
  folder = tmp_path / 'run'
  start(folder, agent, max_actor_steps=120)
  ended, display = start(folder, agent)
  assert display.shown[0]['actor_steps'] >= 120
  assert ended.result.actor_steps >= STEPS
  # The shorter run had an evaluation at its end.
  assert len(ended.evaluations) == len(whole[1].evaluations) + 2
  jax.tree.map(np.testing.assert_array_equal, ended.result, whole[1].result)


def test_a_completed_run_takes_no_step(whole, agent):
  folder, expected, _ = whole
  times = {path: path.stat().st_mtime_ns for path in folder.rglob('*')}
  ended, display = start(folder, agent)
  assert_same(folder, ended, whole)
  assert len(display.shown) == 1
  checkpoint = folder / 'checkpoints' / 'run'
  assert checkpoint.stat().st_mtime_ns == times[checkpoint]


def test_it_can_be_loaded(whole, agent):
  folder, expected, _ = whole
  loaded = in_process_program.load(configuration(folder), agent)
  assert_same(folder, loaded, whole)


def leaves_of(folder):
  return jax.tree.leaves(behaviors.Exported(str(folder)).variables)


def test_snapshots_are_what_shorter_runs_export(whole, agent, tmp_path):
  folder = tmp_path / 'run'
  settings = {'snapshot_steps': f'1,120,{STEPS}', 'num_evaluators': 0}
  start(folder, agent, **settings)
  start(tmp_path / 'short', agent, max_actor_steps=120, num_evaluators=0)
  for steps, same in (
    (120, tmp_path / 'short' / 'behavior'),
    (STEPS, whole[0] / 'behavior'),
  ):
    snapshot = folder / f'behavior-{steps}'
    taken = behaviors.Exported(str(snapshot)).actor_steps
    assert steps <= taken < steps + 2
    assert taken == behaviors.Exported(str(same)).actor_steps
    jax.tree.map(
      np.testing.assert_array_equal, leaves_of(snapshot), leaves_of(same)
    )
  assert behaviors.Exported(str(folder / 'behavior-1')).actor_steps <= 2


def test_a_resumed_run_neither_repeats_nor_loses_a_snapshot(
  agent, tmp_path, caplog
):
  folder = tmp_path / 'run'
  settings = {'snapshot_steps': '50,120,200', 'num_evaluators': 0}
  start(folder, agent, {90: interrupt}, **settings)
  shutil.copy(folder / 'checkpoints' / 'run', tmp_path / 'kept')
  start(folder, agent, {150: interrupt}, **settings)
  assert not (folder / 'behavior-200').exists()
  times = {
    steps: (folder / f'behavior-{steps}' / 'params.npz').stat().st_mtime_ns
    for steps in (50, 120)
  }
  # As if it had been killed here, and had last saved there.
  (tmp_path / 'kept').replace(folder / 'checkpoints' / 'run')
  # One more is asked for when it is too late.
  start(folder, agent, **{**settings, 'snapshot_steps': '20,50,120,200'})
  for steps, before in times.items():
    path = folder / f'behavior-{steps}' / 'params.npz'
    assert path.stat().st_mtime_ns == before
  assert behaviors.Exported(str(folder / 'behavior-200')).actor_steps < 202
  assert not (folder / 'behavior-20').exists()
  assert 'the run has passed 20 steps before' in caplog.text


def test_no_evaluation_is_asked_for(agent, tmp_path):
  ended, _ = start(tmp_path / 'run', agent, num_evaluators=0)
  assert ended.evaluations == []


def test_it_checkpoints_meanwhile(agent, tmp_path):
  folder = tmp_path / 'run'
  seen = []

  def look():
    seen.append((folder / 'checkpoints' / 'run').is_file())

  start(folder, agent, {50: look}, checkpoint_period=1e-6)
  assert seen == [True]


def test_refusals_come_before_anything_is_written(whole, agent, tmp_path):
  with pytest.raises(ValueError, match='would never start'):
    start(tmp_path / 'run', agent, max_actor_steps=3)
  assert not (tmp_path / 'run').exists()
  folder = whole[0]
  with pytest.raises(ValueError, match='seed=0 there and 1 here'):
    start(folder, agent, seed=1)
  (tmp_path / 'many').mkdir()
  identity = json.loads((folder / 'config.json').read_text())
  del identity['engine']
  (tmp_path / 'many' / 'config.json').write_text(json.dumps(identity))
  with pytest.raises(ValueError, match="engine=None there and 'in_process'"):
    start(tmp_path / 'many', agent)
  assert [path.name for path in pathlib.Path(tmp_path / 'many').iterdir()] == [
    'config.json'
  ]
