"""Tests the Python API: `bt_acme.pretrain` and the other public names."""

import copy
import io
import json
import os
import pathlib
import shutil
import signal
import types

import gymnasium
import matplotlib
import numpy as np
import pytest
from PIL import Image

import bt_acme
from bt_acme import assembly, behaviors
from bt_acme import config as config_lib
from bt_acme.api import card_text
from bt_acme.behaviors import cards
from bt_acme.config import names
from bt_acme.evaluation import episode_records, logs, plots
from bt_acme.launching import starting
from bt_acme.runtime import interrupts, workdir
from tests import python, small_examples
from tests.agents import fakes
from tests.launch import scripts

pytestmark = pytest.mark.usefixtures('shared_functions')
Box = gymnasium.spaces.Box

ENVIRONMENT = 'MiniGrid-Empty-5x5-v0'
TINY = {
  'max_actor_steps': 400,
  'num_environments': 4,
  'progress': 'off',
  **dict.fromkeys(('torso_size', 'lstm_size', 'head_size'), 8),
  'trace_length': 8,
  'sequence_period': 4,
  'min_replay_size': 10,
  'samples_per_insert': 4.0,
  'batch_size': 8,
  'evaluation_episodes': 2,
  'evaluation_period': 200,
}
# Evaluations compile another actor.
WITHOUT_EVALUATIONS = {**TINY, 'num_evaluators': 0}
UNTIL_THE_FIRST_STEP = {
  **WITHOUT_EVALUATIONS,
  'callbacks': [lambda values: True],
}


@pytest.fixture(name='ngu', scope='module')
def pretrain(shared_functions):
  return bt_acme.pretrain(f'{ENVIRONMENT}:no_goal', **TINY)


@pytest.fixture(name='behavior', scope='module')
def export(ngu, tmp_path_factory):
  return ngu.export(tmp_path_factory.mktemp('behavior') / 'explorer')


@pytest.fixture(name='bt', scope='module')
def transfer(behavior, tmp_path_factory):
  settings = {**TINY, 'workdir': tmp_path_factory.mktemp('bt') / 'run'}
  settings['min_flight_probability'] = 0.05
  return bt_acme.transfer(ENVIRONMENT, behavior, **settings)


@pytest.fixture(name='r2d2', scope='module')
def train(shared_functions):
  return bt_acme.train(ENVIRONMENT, **TINY)


def test_results_of_a_run(ngu, bt, behavior):
  for run in (ngu, bt):
    assert 400 <= run.actor_steps < 404
    columns = run.episodes
    assert len({values.shape for values in columns.values()}) == 1
    assert columns['episode_return'].size > 2
    assert run.learner['loss'].size > 2
    first, second, last = np.unique(run.evaluations['actor_steps'])
    # An evaluation happens in the first iteration at or after its step.
    assert (first, last) == (0, run.actor_steps)
    assert 200 <= second < 204
    assert (run.workdir / 'logs' / 'actor' / 'logs.csv').is_file()
  assert ngu.statistics is not None and bt.statistics is None
  assert bt.agent.config.transfer.min_flight_probability == 0.05
  # The preset's epsilon replaces that of the loaded behavior, and the
  # parameters are not read again.
  assert bt.agent.behaviors[0]._epsilon == 0.1 != behavior._epsilon
  assert bt.agent.behaviors[0].variables is behavior.variables


def test_a_temporary_workdir_is_deleted_with_the_run():
  run = bt_acme.train(ENVIRONMENT, **UNTIL_THE_FIRST_STEP)
  folder = run.workdir
  assert folder.is_dir()
  del run
  assert not folder.exists()


def test_a_run_whose_learner_takes_no_step_warns(caplog):
  settings = {**WITHOUT_EVALUATIONS, 'max_actor_steps': 52}
  bt_acme.train(ENVIRONMENT, **settings)
  assert 'held fewer than min_replay_size=10 sequences.' in caplog.text


def test_a_workdir_with_other_files_in_its_behavior_is_refused(tmp_path):
  note = tmp_path / 'run' / 'behavior' / 'note.txt'
  note.parent.mkdir(parents=True)
  note.write_text('mine')
  with pytest.raises(ValueError, match="run/behavior' contains 'note.txt'"):
    bt_acme.pretrain(ENVIRONMENT, **TINY, workdir=tmp_path / 'run')
  assert note.read_text() == 'mine'


def test_a_run_is_stopped_by_a_callback_and_resumed(r2d2):
  seen = []

  def stop(values):
    seen.append(values)
    return np.bool_(values['actor_steps'] >= 100)

  settings = {**TINY, 'max_actor_steps': np.int64(198), 'seed': np.int64(0)}
  run = bt_acme.train(ENVIRONMENT, **settings, callbacks=[stop, seen.append])
  assert seen[::2] == seen[1::2] and 'learner_steps' in seen[0]
  steps = [values['actor_steps'] for values in seen[::2]]
  assert steps[0] == 0 and set(np.diff(steps)) <= {1, 2, 3, 4}
  assert steps[-2] < 100 <= steps[-1] == run.actor_steps
  assert f'{run.actor_steps} of 198, stopped' in repr(run)
  assert run.exit_code == interrupts.STOPPED
  assert not (run.workdir / 'completed.json').exists()
  # The last vector step overshoots.
  assert 198 < run.resume(callbacks=[seen.append]).actor_steps < 202
  assert bt_acme.load_run(run.workdir).resume().max_actor_steps == 198
  with pytest.raises(ValueError, match="max_actor_steps='300' must be an int"):
    run.resume('300')
  with pytest.raises(ValueError, match='max_actor_steps=100 is less than'):
    run.resume(100)
  with pytest.raises(ValueError, match='is not a list of functions'):
    run.resume(callbacks=print)
  with pytest.raises(ValueError, match='is a run. Pass the directory that'):
    bt_acme.load_behavior(run)
  with pytest.raises(ValueError, match="folder='' is not a path"):
    bt_acme.load_behavior('')
  before = run.evaluations['actor_steps']
  assert run.evaluations['actor_steps'] is before  # Cached.
  assert run.resume(np.int64(400)) is run
  assert run.evaluations['actor_steps'].size > before.size
  # The run is as if never stopped.
  np.testing.assert_array_equal(run.learner['loss'], r2d2.learner['loss'])
  # The last iteration is reported too, with its evaluation.
  assert seen[-1]['actor_steps'] == run.actor_steps == 400
  last = run.evaluations['actor_steps'] == 400
  returns = run.evaluations['episode_return'][last]
  assert seen[-1]['evaluator_return'] == returns.mean()


def test_save_and_load(bt, behavior, tmp_path):
  bt.save(tmp_path / 'copy')
  (tmp_path / 'link').symlink_to(bt.workdir)
  for where in ('copy', bt.workdir / 'copy', 'link/copy'):
    with pytest.raises(ValueError, match='already exists or is in'):
      bt.save(tmp_path / where)
  for given in ((), bt.agent.behaviors[0]):
    loaded = bt_acme.load_run(tmp_path / 'copy', given)
    assert loaded.actor_steps == bt.actor_steps
    for name, values in bt.episodes.items():
      np.testing.assert_array_equal(loaded.episodes[name], values)
  # The copy includes the behavior; a behavior that is passed replaces it.
  (behavior,) = loaded.agent.behaviors
  assert behavior.folder != bt.agent.behaviors[0].folder or given
  with pytest.raises(ValueError, match="transfers \\['explorer'\\]"):
    bt_acme.load_run(tmp_path / 'copy', behaviors.Uniform())
  with pytest.raises(ValueError, match="'explorer' is not a behavior. Pass o"):
    bt_acme.load_run(tmp_path / 'copy', ['explorer'])
  with pytest.raises(ValueError, match='does not contain a run'):
    bt_acme.load_run(tmp_path / 'nothing')
  steps, returns = np.array([4, 9, 4]), np.array([3.0, 5.0, 1.0])
  loaded.evaluations = {'actor_steps': steps, 'episode_return': returns}
  assert 'evaluation return: 5.000 (1 episode)' in repr(loaded)


def test_a_transfer_run_is_exported_without_its_behaviors(bt, tmp_path):
  exported = bt.export(tmp_path / 'exported')
  assert exported.agent.transfer is None
  assert exported.actor_steps == bt.actor_steps
  output = 'head/advantage/~/linear_1'
  num_actions = bt.agent.spec.num_actions
  for name, value in exported.variables.agent[output].items():
    whole = bt.variables.agent[output][name]
    assert whole.shape[-1] == num_actions + 1
    np.testing.assert_array_equal(value, whole[..., :num_actions])
  assert bt_acme.evaluate(exported, episodes=2).returns.shape == (2,)


def test_a_bank_grows(bt, behavior, tmp_path, monkeypatch):
  small_examples.evaluate_few_episodes(monkeypatch)
  bank = bt_acme.Bank(tmp_path / 'new' / 'bank')
  assert bank.names() == [] == bank.behaviors()
  with pytest.raises(ValueError, match="bank='.*' contains no behaviors"):
    bt_acme.transfer(ENVIRONMENT, bank, **TINY)
  bank.add(bt, 'two')
  bank.add(behavior.folder, 'one')
  assert bank.names() == ['one', 'two']
  steps = [behavior.actor_steps, bt.actor_steps]
  assert [x.actor_steps for x in bank.behaviors()] == steps
  assert [card.markdown.split()[1] for card in bank.list()] == ['one', 'two']
  card = (bank.folder / 'two' / 'README.md').read_text()
  assert f'| `{ENVIRONMENT}` |' in card  # The score without learning.
  assert 'with the behaviors `explorer`' in card
  assert str(bank.list()[1]) == card
  run = bt_acme.transfer(ENVIRONMENT, bank, **UNTIL_THE_FIRST_STEP)
  assert [x.name for x in run.agent.behaviors] == ['one', 'two']
  bank.add(bt.workdir, 'unplayed', episodes=0)
  assert '## Scores' not in bank.list()[-1].markdown
  shutil.rmtree(bank.folder / 'unplayed')
  for name in ('one', '', '.a', 'a/b', 'a,b', None):
    with pytest.raises(ValueError, match='Choose a'):
      bank.add(behavior, name)
  assert not list(bank.folder.glob('.*'))
  assert 'behaviors, use `bt_acme.transfer` with them and their s' in card
  message = 'one of its sub.*--bank=FOLDER to run_bt.*to bt_acme.transfer'
  with pytest.raises(ValueError, match=message):
    bt_acme.load_behavior(bank.folder)
  other = bt_acme.train('Chain-5', **UNTIL_THE_FIRST_STEP)
  with pytest.raises(ValueError, match='expects actions 7'):
    bank.add(other, 'three')
  assert bank.names() == ['one', 'two']


def test_two_additions_to_a_bank_at_a_time(behavior, tmp_path, monkeypatch):
  bank, describe = bt_acme.Bank(tmp_path / 'bank'), card_text.describe

  def add_another(*args, **kwargs):
    monkeypatch.setattr(card_text, 'describe', describe)
    bank.add(behavior, 'two', episodes=0)
    return describe(*args, **kwargs)

  monkeypatch.setattr(card_text, 'describe', add_another)
  bank.add(behavior, 'one', episodes=0)
  assert bank.names() == ['one', 'two'] and len(bank.list()) == 2
  assert sorted(os.listdir(bank.folder)) == ['one', 'two']


def test_a_budget_below_the_steps_taken_is_refused(tmp_path, monkeypatch):
  settings = {**WITHOUT_EVALUATIONS, 'workdir': tmp_path / 'run'}
  run = bt_acme.train(
    'Chain-5', **settings, callbacks=[lambda now: now['actor_steps'] >= 200]
  )
  assert 200 <= run.actor_steps < 400
  before = scripts.contents(run.workdir)
  message = f'=100 is less than the {run.actor_steps} steps taken. Pass the'
  with pytest.raises(ValueError, match=message):
    bt_acme.train('Chain-5', **{**settings, 'max_actor_steps': 100})
  with pytest.raises(ValueError, match=message):
    run.resume(100)
  assert scripts.contents(run.workdir) == before
  # The last iteration exceeds this budget, and the run stops before its end.
  steps = run.actor_steps + 5
  monkeypatch.setattr(workdir, 'mark_completed', lambda run: None)
  assert run.resume(steps, callbacks=[]).actor_steps > steps
  monkeypatch.undo()
  settings['max_actor_steps'] = steps
  assert bt_acme.train('Chain-5', **settings).exit_code == 0
  assert workdir.completed_steps(str(run.workdir)) == steps


def test_continual_learning_fills_a_bank(tmp_path, monkeypatch):
  small_examples.evaluate_few_episodes(monkeypatch)
  names = [f'0{i}-minigrid-empty-5x5-v0-fixed-{i}' for i in range(2)]
  tasks = [f'{ENVIRONMENT}:fixed={i}' for i in range(2)]
  stops_at = [200]

  def learn(**changes):
    settings = {'workdir': tmp_path / 'runs', **WITHOUT_EVALUATIONS, **changes}
    return bt_acme.continual(
      tasks,
      tmp_path / 'bank',
      kickstarting=0.1,
      flights=False,  # So the second task needs exactly one behavior.
      # Like Ctrl-C in the second task.
      callbacks=[
        lambda now: len(bank.names()) == 1 and now['actor_steps'] >= stops_at[0]
      ],
      **settings,
    )

  bank = bt_acme.Bank(tmp_path / 'bank')
  first, second = learn()
  assert bank.names() == names[:1]
  assert second.actor_steps < 400 <= first.actor_steps
  assert first.agent.behaviors == ()
  stops_at[0] = 10**9
  # Ctrl-C while the card is written, in a script that Ctrl-C ends at once.
  outer = interrupts.handled([signal.SIGINT], lambda _: pytest.fail('ended'))
  with monkeypatch.context() as patch, outer:
    patch.setattr(
      *(card_text, 'describe'),
      lambda *args, **options: signal.raise_signal(signal.SIGINT),
    )
    assert learn()[-1].actor_steps >= 400
  assert bank.names() == names[:1]
  runs = learn()
  assert bank.names() == names
  assert [run.agent.spec.name for run in runs] == tasks
  assert runs[0].actor_steps == first.actor_steps
  for i, run in enumerate(runs):
    assert [x.name for x in run.agent.behaviors] == names[:i]
  # Nothing is left to do, and nothing is changed.
  before = scripts.contents(tmp_path)
  again = learn()
  assert [run.actor_steps for run in again] == [x.actor_steps for x in runs]
  for changes, message in (
    ({'lerning_rate': 0.5}, "lerning_rate=0.5 .*'learning_rate'"),
    ({'seed': 1}, f"{names[0]}' was created .* seed=0 then, 1 now. Use"),
    ({'extra_action_margin': 0.3}, f"{names[1]}' was .*margin=0.0 then, 0.3"),
  ):
    with pytest.raises(ValueError, match=message):
      learn(**changes)
  assert scripts.contents(tmp_path) == before
  with pytest.raises(ValueError, match=f'contains {names[0]!r} of another run'):
    learn(workdir=tmp_path / 'elsewhere')
  with pytest.raises(ValueError, match='=400, not with 800. Keep'):
    learn(max_actor_steps=800)
  shutil.copytree(tmp_path / 'runs', tmp_path / 'longer')
  later = bt_acme.load_run(tmp_path / 'longer' / names[1]).resume(480)
  message = f'continued to {later.actor_steps} actor steps, .* bank has 4'
  with pytest.raises(ValueError, match=message):
    learn(workdir=tmp_path / 'longer')
  first, second = (tmp_path / 'runs' / name for name in names)
  shutil.rmtree(second)
  shutil.copytree(first, second)
  with pytest.raises(ValueError, match=f'contains {names[1]!r} of another run'):
    learn()


def test_continual_learning_stops_after_an_interrupted_evaluation(
  tmp_path, monkeypatch
):
  start = starting.start
  codes = [130]

  def stop_at_the_end(*args, **options):
    return start(*args, **options) or codes.pop()

  monkeypatch.setattr(starting, 'start', stop_at_the_end)
  bank = bt_acme.Bank(tmp_path / 'bank')
  tasks = [ENVIRONMENT, f'{ENVIRONMENT}:fixed=1']
  (run,) = bt_acme.continual(tasks, bank, workdir=tmp_path / 'runs', **TINY)
  assert run.exit_code == 130
  assert run.actor_steps >= TINY['max_actor_steps']
  assert bank.names() == []


def test_two_sequences_with_one_bank(tmp_path):
  bank = bt_acme.Bank(tmp_path / 'bank')

  def learn(seed, **options):
    settings = {**WITHOUT_EVALUATIONS, **options, 'seed': seed}
    workdir = tmp_path / str(seed)
    return bt_acme.continual(['Chain-5'], bank, workdir=workdir, **settings)

  def finish_another(now):
    if now['actor_steps'] == 100:
      learn(1)

  message = r"bank'? already contains '00-chain-5' of another run. Choose "
  with pytest.raises(ValueError, match=message):
    learn(0, callbacks=[finish_another])
  with pytest.raises(ValueError, match=message):
    learn(0)
  (other,) = learn(1)
  assert bt_acme.load_run(tmp_path / '0' / '00-chain-5').actor_steps == 400
  assert bank.behaviors()[0].actor_steps == other.actor_steps == 400
  # The leftovers of a deleted policy are named before anything starts.
  (bank.folder / '00-chain-5' / 'behavior.json').unlink()
  with pytest.raises(ValueError, match=message):
    learn(2)
  assert not (tmp_path / '2').exists()


THREE = [f'{ENVIRONMENT}:fixed={i}' for i in range(3)]


@pytest.fixture(name='first_task', scope='module')
def learn_first_task(behavior, tmp_path_factory):
  """Returns the directory of a bank that contains the first task."""
  bank = bt_acme.Bank(tmp_path_factory.mktemp('first') / 'bank')
  bank.add(behavior, '01-minigrid-empty-5x5-v0-fixed-1', episodes=0)
  return bank.folder


@pytest.mark.parametrize(
  ('changes', 'message'),
  [
    ({'tasks': []}, 'a list with at least one'),
    ({'tasks': iter([ENVIRONMENT])}, 'is not a list of tasks'),
    ({'tasks': [ENVIRONMENT, 3]}, 'tasks contains 3'),
    ({'bank': 'other.txt'}, "^bank='other.txt' is a file"),
    (
      {'kickstarting': 0.1, 'flights': False, 'tasks': THREE},
      'but there are 2',
    ),
    ({'workdir': ''}, "^workdir='' is not a path"),
    ({'tasks': [ENVIRONMENT, 'MiniGrid-Emty-5x5-v0']}, 'MiniGrid-Empty-5x5-v0'),
    ({'tasks': ['Chain-5']}, 'expects actions 7|expects observations'),
    ({'flight_exponnt': 2.0}, 'flight_exponent'),
    ({'behavior_weights': (1,)}, 'Remove behavior_weights'),
    ({'env': ENVIRONMENT}, f'^env={ENVIRONMENT!r} does .* Remove env'),
    ({'workdir': 'bank'}, 'is the directory of the bank'),
    ({'workdir': 'other'}, "^bank='bank' already contains '01-minigrid-empty"),
  ],
)
def test_continual_learning_refuses_before_it_starts(
  changes, message, first_task, tmp_path, monkeypatch
):
  monkeypatch.chdir(tmp_path)
  shutil.copytree(first_task, 'bank')
  pathlib.Path('other.txt').touch()
  settings = {
    'bank': 'bank',
    'tasks': [ENVIRONMENT, f'{ENVIRONMENT}:fixed=1'],
    'workdir': 'runs',
    **TINY,
    **changes,
  }
  with pytest.raises(ValueError, match=message):
    bt_acme.continual(**settings)
  assert sorted(os.listdir()) == ['bank', 'other.txt']


def test_evaluate(bt, behavior):
  played = bt_acme.evaluate(bt, episodes=2, seed=1)
  assert played.returns.shape == played.lengths.shape == (2,)
  assert played.cells.min() >= 1
  names = {'solved', 'returns', 'lengths', 'extra_shares', 'cells'}
  assert set(played.summary()) == names
  assert '2 episodes' in repr(played) and '<table>' in played._repr_html_()
  again = bt_acme.evaluate(bt, episodes=2, seed=1)
  np.testing.assert_array_equal(again.lengths, played.lengths)
  larger = 'MiniGrid-Empty-6x6-v0'
  played = bt_acme.evaluate(behavior.folder, env=larger, episodes=2)
  assert played.env == larger
  forward = behaviors.FromCallable(lambda seed: lambda *_: 2, 'forward')
  played = bt_acme.evaluate(forward, env=larger, episodes=2)
  assert {*played.recordings[0].actions} == {2}

  class Masked(behaviors.Exported):
    def make_core(self, num_actions):
      core = super().make_core(num_actions)
      return core._replace(step=lambda *_: (2, core.step(*_)[1]))

  played = bt_acme.evaluate(Masked(behavior.folder), env=larger, episodes=2)
  assert {*played.recordings[0].actions} == {2}
  with pytest.raises(ValueError, match="env='': name an environment for 'uni"):
    bt_acme.evaluate('uniform')
  with pytest.raises(ValueError, match="folder='nowhere' is neither"):
    bt_acme.evaluate('nowhere')
  with pytest.raises(ValueError, match='Choose environments with equal'):
    bt_acme.evaluate(behavior, env='Chain-5')
  for wrong in ({'episodes': 0}, {'seed': -1}, {'episodes': 10**9}):
    ((name, value),) = wrong.items()
    with pytest.raises(ValueError, match=f'^{name}={value}'):
      bt_acme.evaluate(bt, **wrong)


def test_plots(bt, r2d2, behavior, tmp_path):
  backend = matplotlib.get_backend()
  path = tmp_path / 'curves.png'
  figure = bt_acme.plots.learning_curves(
    {'R2D2': [r2d2, r2d2], 'BT': bt}, window=3, path=str(path)
  )
  png = b'\x89PNG'
  assert path.read_bytes().startswith(png)
  (axes,) = figure.axes
  labels = [text.get_text() for text in axes.get_legend().get_texts()]
  assert labels == ['R2D2', 'BT']
  played = bt_acme.evaluate(bt, episodes=2)
  other = bt_acme.evaluate(bt, env=f'{ENVIRONMENT}:no_goal', episodes=2)
  maps = bt_acme.plots.visits({'BT': played, 'no goal': other})
  assert maps._repr_png_().startswith(png)
  one, two = (axes.images[0].get_array() for axes in maps.axes[:2])
  assert not np.array_equal(one, two)  # Each has its own environment.
  assert matplotlib.get_backend() == backend
  with pytest.raises(ValueError, match="value='nothing'"):
    bt_acme.plots.learning_curves({'BT': bt.workdir}, value='nothing')
  started = copy.copy(bt)
  started.episodes = {}
  with pytest.raises(ValueError, match="Run 'BT' has no finished episode yet."):
    bt_acme.plots.learning_curves({'BT': started})
  for wrong in (bt, {}):
    with pytest.raises(ValueError, match='is not a dictionary of runs. Pass {'):
      bt_acme.plots.learning_curves(wrong)
    with pytest.raises(ValueError, match='not a dictionary of evaluations.'):
      bt_acme.plots.visits(wrong)
  larger = bt_acme.evaluate(bt, env='MiniGrid-Empty-8x8-v0', episodes=2)
  with pytest.raises(ValueError, match='has no grid of cells, or several'):
    bt_acme.plots.visits({'BT': played, 'larger': larger})
  for window in (0, 2.5):
    with pytest.raises(ValueError, match=f'window={window} must be'):
      bt_acme.plots.learning_curves({'BT': bt}, window=window)
  with pytest.raises(ValueError, match='no learned priorities'):
    bt_acme.plots.priorities(bt.workdir)


def test_video(bt, tmp_path):
  video = bt_acme.video.show(bt, seed=1, max_frames=5)
  assert video.data.startswith(b'\x1aE\xdf\xa3')  # The WebM signature.
  assert '<video' in video._repr_html_()
  assert len(repr(video)) < 100
  video.save(tmp_path / 'new' / 'v.webm')
  assert (tmp_path / 'new' / 'v.webm').read_bytes() == video.data
  with pytest.raises(ValueError, match="v.gif' must end in .webm"):
    video.save(tmp_path / 'v.gif')


class _Lights(gymnasium.Env):
  """Rewards the action that the observation shows."""

  # The shapes of MiniGrid, so that nothing is compiled for them.
  observation_space = Box(0, 255, (7, 7, 3), np.uint8)
  action_space = gymnasium.spaces.Discrete(7)

  def reset(self, *, seed=None, options=None):
    super().reset(seed=seed)
    self._steps, self._lit = 0, 0
    return self._observation(), {}

  def step(self, action):
    reward = float(action == self._lit)
    self._steps, self._lit = self._steps + 1, int(self.np_random.integers(2))
    return self._observation(), reward, False, self._steps == 6, {}

  def _observation(self):
    return np.full((7, 7, 3), 9 * self._lit, np.uint8)


def test_register_gymnasium_environment():
  bt_acme.register_environment('lights', lambda seed: _Lights())
  settings = {**WITHOUT_EVALUATIONS, 'max_actor_steps': 200}
  run = bt_acme.train('lights', **settings)
  again = bt_acme.train('lights', **{**settings, 'max_actor_steps': 100})
  again.resume(200)
  returns = run.episodes['episode_return']
  np.testing.assert_array_equal(again.episodes['episode_return'], returns)
  assert len(np.unique(returns)) > 2
  assert bt_acme.evaluate(run, episodes=2).cells is None
  with pytest.raises(ValueError, match='does not render images'):
    bt_acme.video.show(run)


def test_a_run_whose_episodes_cannot_be_repeated_starts_new_ones(caplog):
  class Unrepeatable(_Lights):
    np_random = np.random.default_rng(0)  # Shared by all environments.

    def reset(self, *, seed=None, options=None):
      self._steps, self._lit = 0, int(self.np_random.integers(100))
      return self._observation(), {}

  bt_acme.register_environment('unrepeatable', lambda seed: Unrepeatable())
  stop = [lambda values: values['actor_steps'] >= 100]
  run = bt_acme.train('unrepeatable', callbacks=stop, **WITHOUT_EVALUATIONS)
  assert run.resume(callbacks=()).actor_steps == TINY['max_actor_steps']
  assert 'starts a new episode' in caplog.text


def test_a_state_that_cannot_be_saved_stops_a_run_at_its_first_step():
  class Unsaved(_Lights):
    state, restore = (lambda self: {'x': object()}), print

  bt_acme.register_environment('unsaved', lambda seed: Unsaved())
  steps = []
  callbacks = [lambda values: steps.append(values['actor_steps'])]
  with pytest.raises(ValueError, match='object cannot be saved'):
    bt_acme.train('unsaved', callbacks=callbacks, **WITHOUT_EVALUATIONS)
  assert max(steps) <= 2 * TINY['num_environments']


@pytest.mark.parametrize(
  'base, attributes, message',
  [
    (
      _Lights,
      {'observation_space': Box(0, 1, (5, 5, 1))},
      'observations .* return uint8',
    ),
    (
      _Lights,
      {'observation_space': Box(0, 1, (7, 7, 0), 'u1')},
      r'observations uint8 \(7, 7, 0\).* return uint8',
    ),
    (
      _Lights,
      {'action_space': Box(0, 1, (2,))},
      'has actions .* numbered from 0',
    ),
    (
      fakes.MarkedEnvironment,
      {'observation_spec': dict},
      "observations <class 'dict'> .* return uint8",
    ),
    (object, {}, 'constructor returned a Other'),
  ],
)
def test_environments_that_do_not_fit(base, attributes, message):
  make = type('Other', (base,), attributes)
  with pytest.raises(ValueError, match='cannot be called with seed=0'):
    bt_acme.register_environment('other', make)
  bt_acme.register_environment('other', lambda seed: make())
  with pytest.raises(ValueError, match=message):
    bt_acme.train('other', **TINY)


def test_rows_are_split_by_environment(monkeypatch):
  names = [ENVIRONMENT, f'{ENVIRONMENT}:fixed=1']
  run = bt_acme.train(','.join(names), **TINY)
  for columns, environments in ((run.episodes, 4), (run.evaluations, 2)):
    split = run.by_environment(columns)
    assert list(split) == names
    found = [part['environment'] for part in split.values()]
    assert sum(map(len, found)) == len(columns['environment'])
    assert all((found[i] % 2 == i).all() for i in range(2))
    assert len(np.unique(columns['environment'])) == environments
  assert run.by_environment({}) == {name: {} for name in names}
  with pytest.raises(ValueError, match="lacks the column 'environment'"):
    run.by_environment(run.learner)
  run.agent = run.agent.named('A,A,B')
  split = run.by_environment({'environment': np.arange(6.0)})
  found = {k: v['environment'].tolist() for k, v in split.items()}
  assert found == {'A': [0, 1, 3, 4], 'B': [2, 5]}
  run.agent = run.agent.named(','.join(names))
  split = bt_acme.evaluate(run, episodes=3).by_environment()
  counts = {k: len(v.recordings) for k, v in split.items()}
  assert counts == {names[0]: 2, names[1]: 1}
  with pytest.raises(ValueError, match='episodes=1 is less than the 2 env'):
    bt_acme.evaluate(run, episodes=1)
  played = []
  monkeypatch.setattr(
    episode_records, 'film', lambda agent, *_, **__: played.append(agent.spec)
  )
  bt_acme.video.show(run)
  assert [spec.name for spec in played] == names[:1]


def test_names_are_imported_on_first_use():
  with pytest.raises(AttributeError, match="no attribute 'nothing'"):
    bt_acme.nothing  # noqa: B018
  assert {'pretrain', 'plots', '__version__'} <= set(dir(bt_acme))
  heavy = {'jax', 'haiku', 'matplotlib', 'tensorflow', 'reverb', 'acme'}
  code = f'import sys, bt_acme; assert not {heavy} & set(sys.modules)'
  python.check('-c', code)


def test_a_stopped_run_is_loaded_with_its_budget(tmp_path):
  workdir = tmp_path / 'run'
  bt_acme.train(ENVIRONMENT, workdir=workdir, **UNTIL_THE_FIRST_STEP)
  run = bt_acme.load_run(workdir)
  assert run.actor_steps < run.max_actor_steps == TINY['max_actor_steps']
  assert ', stopped' in repr(run)
  # Loading needs no lock, but resuming does.
  (workdir / 'run.lock').write_text('{"host": "elsewhere", "pid": 1}')
  run = bt_acme.load_run(workdir)
  with pytest.raises(ValueError, match='process 1 on elsewhere.*delete'):
    run.resume()
  (workdir / 'run.lock').unlink()
  assert run.resume().actor_steps == TINY['max_actor_steps']
  # Earlier versions did not record the budget.
  path = workdir / 'provenance.json'
  record = json.loads(path.read_text())
  for session in record['sessions']:
    del session['max_actor_steps']
  path.write_text(json.dumps(record))
  run = bt_acme.load_run(workdir)
  assert run.max_actor_steps == run.actor_steps


def test_a_loaded_run_ends_the_program_after_sigterm(
  tmp_path, monkeypatch, capsys
):
  def stop(values):
    if values['actor_steps'] > 8:
      signal.raise_signal(signal.SIGTERM)

  monkeypatch.chdir(tmp_path)
  first = bt_acme.train(ENVIRONMENT, workdir='run', **UNTIL_THE_FIRST_STEP)
  run = bt_acme.load_run('run')
  monkeypatch.chdir('/')
  with pytest.raises(SystemExit, match='143'):
    run.resume(callbacks=[stop], progress='off')
  assert 'actor steps' not in capsys.readouterr().err  # No progress is shown.
  assert bt_acme.load_run(run.workdir).actor_steps > first.actor_steps
  shutil.rmtree(tmp_path / 'run')
  for each in (first, run):
    with pytest.raises(ValueError, match="run' no longer contains the run"):
      each.resume()


def test_a_loaded_run_has_the_settings_of_its_last_session(tmp_path):
  def learn(stop_at, **settings):
    callbacks = [lambda now: now['actor_steps'] >= stop_at]
    settings = {**WITHOUT_EVALUATIONS, 'callbacks': callbacks, **settings}
    bt_acme.pretrain(ENVIRONMENT, workdir=tmp_path, **settings)

  last = {'snapshot_steps': '100,300', 'max_episode_rows': 7}
  learn(1, evaluation_period=200)
  learn(200, evaluation_period=300, **last)
  run = bt_acme.load_run(tmp_path)
  last.update(evaluation_period=300, max_actor_steps=400, num_evaluators=0)
  assert {name: getattr(run._config, name) for name in last} == last
  assert run.resume().actor_steps == 400
  exported = sorted(path.name for path in tmp_path.glob('behavior*'))
  assert exported == ['behavior', 'behavior-100', 'behavior-300']


def test_saved_settings_that_need_too_much_memory(tmp_path):
  """Settings that need terabytes are refused before memory is allocated."""
  workdir = tmp_path / 'run'
  run = bt_acme.train(ENVIRONMENT, workdir=workdir, **UNTIL_THE_FIRST_STEP)
  run.save(tmp_path / 'copy')
  path = tmp_path / 'copy' / 'config.json'
  identity = json.loads(path.read_text())
  # Loading needs memory for the network, resuming for the whole run.
  for group, name, value in (
    ('run', 'envs_per_actor', 10**6),
    ('config', 'network', {'lstm_size': 10**5}),
  ):
    changed = json.loads(json.dumps(identity))
    changed[group][name] = value
    path.write_text(json.dumps(changed))
    with pytest.raises(ValueError, match='this machine has|must not exceed'):
      bt_acme.load_run(tmp_path / 'copy').resume(10**6)


def test_a_card_has_facts_film_scores_curve_command_and_notes(ngu):
  notes = '## Limits\n\nNone known.'
  settings = {'videos': ENVIRONMENT, 'episodes': 2, 'notes': notes}
  card = bt_acme.describe(ngu.workdir, ENVIRONMENT, **settings)
  behavior = bt_acme.load_behavior(ngu.workdir)
  for part in (
    '- Agent: NGU',
    f'- Trained for 400 actor steps in `{ENVIRONMENT}:no_goal`',
    f'`{behavior.params_sha256}`',
    f'![An episode in {ENVIRONMENT}](minigrid-empty-5x5-v0.gif)',
    '2 episodes in each environment with epsilon 0.05 and seed 0',
    '![Learning curve](curve.png)',
    f'| `{ENVIRONMENT}` | ',
    'run = bt_acme.pretrain(',
    "run.export('behavior')",
  ):
    assert part in card.markdown
  assert card.markdown.endswith(f'{notes}\n')
  film, curve = (
    Image.open(io.BytesIO(card.pictures[name]))
    for name in ('minigrid-empty-5x5-v0.gif', 'curve.png')
  )
  assert film.n_frames > 1 and film.size == (80, 80)
  assert curve.format == 'PNG'


def test_the_curve_of_a_snapshot_ends_with_it(behavior, tmp_path, monkeypatch):
  drawn = []
  monkeypatch.setattr(
    plots.Picture, '_repr_png_', lambda figure: drawn.append(figure)
  )
  path = logs.path_of(tmp_path, 'actor')
  path.parent.mkdir(parents=True)
  path.write_text('actor_steps,intrinsic_return\n8,1\n16,2\n24,3\n')
  snapshot = bt_acme.load_behavior(
    shutil.copytree(behavior.folder, tmp_path / 'behavior-20')
  )
  for snapshot.actor_steps in (7, 20, 24):
    card_text._curve(snapshot)
  ends = [figure.axes[0].lines[0].get_xdata()[-1] for figure in drawn]
  assert ends == [16, 24]


def test_each_environment_has_its_own_film(monkeypatch):
  monkeypatch.setattr(episode_records, 'film', lambda a, *_, **__: a.spec.name)
  envs = [f'{ENVIRONMENT}:new_cell={x}' for x in (-0.1, 0.1)]
  for videos in (envs, ','.join(envs), [','.join(envs)]):
    films = bt_acme.describe('minigrid-explorer', videos=videos).pictures
    assert list(films.values()) == envs
  monkeypatch.setattr(assembly, 'moved', assembly.Agent.named)
  envs = ['A b', 'a_B', '[迷]']
  card = bt_acme.describe('minigrid-explorer', videos=envs)
  assert list(card.pictures.values()) == envs
  assert cards._files(card.markdown) > {*card.pictures}


def test_environments_are_checked_before_anything_is_played(monkeypatch):
  monkeypatch.setattr(episode_records, 'film', None)
  with pytest.raises(ValueError, match="env='nope' is unknown"):
    bt_acme.describe('minigrid-explorer', ['nope'], videos=[ENVIRONMENT])


@pytest.mark.parametrize(
  'name, value', [('notes', 3), ('episodes', 0), ('epsilon', 3.0)]
)
def test_arguments_of_a_card(name, value):
  with pytest.raises(ValueError, match=f'^{name}={value} must '):
    bt_acme.describe('minigrid-explorer', **{name: value})


def test_the_command_has_all_settings(ngu):
  card = bt_acme.describe(ngu.workdir)
  assert "preset='paper'" in card.markdown
  code = card.markdown.partition('```python\n')[2].partition('```')[0]
  calls = []

  def record(env, max_actor_steps, preset, num_stacked, **settings):
    run = [settings.pop(name) for name in ('seed', 'num_environments')]
    calls.append((env, max_actor_steps, num_stacked, run, settings))
    return types.SimpleNamespace(export=calls.append)

  exec(code, {'bt_acme': types.SimpleNamespace(pretrain=record)})
  behavior = bt_acme.load_behavior(ngu.workdir)
  (*known, settings), name = calls
  spec = behavior.agent.spec
  assert known == [spec.name, 400, spec.num_stacked, [0, 4]]
  assert name == 'behavior'
  assert names.build(config_lib.NGUConfig, settings) == behavior.agent.config


def test_a_behavior_without_logs_has_no_curve(behavior):
  card = bt_acme.describe(behavior)
  assert 'curve' not in card.markdown and not card.pictures
  assert 'seed=' not in card.markdown
  many = vars(behavior) | {'agent': behavior.agent.named(','.join('x' * 18))}
  code = card_text._command(types.SimpleNamespace(**many))
  for name in ('evaluation_episodes', 'num_environments'):
    assert f'  {name}=18,' in code
  record = {'agent': 'x', 'config': {}, 'run': {'unknown': 1}}
  path = pathlib.Path(behavior.folder).parent / 'config.json'
  path.write_text(json.dumps(record))
  assert bt_acme.describe(behavior).markdown == card.markdown
  path.unlink()
  assert card._repr_html_().startswith('<h1>explorer</h1>')


def test_versions_with_a_broken_driver(monkeypatch, capsys):
  monkeypatch.setattr('jax.devices', lambda: 1 / 0)
  bt_acme.show_versions()
  assert '  ZeroDivisionError: division by zero' in capsys.readouterr().out
