"""Tests of the claims' runs, their results and their tables."""

import dataclasses

import numpy as np
import pytest

from bt_acme import environments
from experiments.harness import execution, records, small_runs
from experiments.learning import __main__ as learning
from experiments.learning import claims, report, results
from tests.experiments.harness import fakes

# Runs are too short for the end of an episode.
pytestmark = pytest.mark.filterwarnings(
  'ignore:Mean of empty slice', 'ignore:invalid value encountered'
)

ENV = 'MiniGrid-Empty-5x5-v0'
_SHORT = {'settings': fakes.TINY, 'episodes': 8}
EXPLORER = claims.Run('NGU', 'ngu', f'{ENV}:no_goal', 800, **_SHORT)
ARMS = (
  claims.Run('random', 'random', ENV, behavior=EXPLORER, episodes=8),
  claims.Run('BT', 'bt', ENV, 400, behavior=EXPLORER, init='partial', **_SHORT),
)
RUNS = [(table.claim, run) for table in claims.tables() for run in table.runs]


def _run(name, env):
  return next(r for _, r in RUNS if (r.algorithm, r.env) == (name, env))


@pytest.fixture(name='folder', scope='module')
def execute_tiny_runs(tmp_path_factory, shared_functions):
  del shared_functions
  folder = tmp_path_factory.mktemp('learning')
  random, _ = runs = [run.with_seed(3) for run in ARMS]
  assert execution.complete([random], folder, processes=1) == 0
  with fakes.worker_in_this_process():
    assert execution.complete(runs, folder, processes=1) == 0
  assert set(results.of_folder(runs, folder)) == set(runs)
  return folder


def test_required_pretraining_is_executed_and_results_are_reused(
  folder, capsys
):
  run = EXPLORER.with_seed(3)
  assert 1 <= run.result(folder)['row']['cells_25'] <= 9
  assert (run.exported(folder) / 'behavior.json').exists()
  runs = [run.with_seed(3) for run in ARMS]
  assert execution.complete(runs, folder, processes=1) == 0
  assert not capsys.readouterr().out
  found = results.of_folder(runs, folder)
  assert all(0 <= row['solved'] <= 1 for row in found.values())


def test_a_result_with_other_settings_is_ignored(folder):
  *_, bt = ARMS
  assert results.of_folder([bt.with_seed(3)], folder)
  for changes in (
    {'actor_steps': 500},
    {'preset': 'atari_small'},
    {'init': 'full'},
    {'settings': {**fakes.TINY, 'batch_size': 4}},
    {'behavior': claims.Run('NGU', 'ngu', f'{ENV}:no_goal', 900)},
    {'behavior': dataclasses.replace(EXPLORER, env='Chain-9')},
  ):
    other = dataclasses.replace(bt, **changes)
    assert not results.of_folder([other.with_seed(3)], folder)


def test_a_result_replaces_one_with_other_settings(tmp_path):
  run, path = ARMS[-1], tmp_path / 'results.csv'
  other = dataclasses.replace(run, settings={**run.settings, 'batch_size': 9})
  longer = dataclasses.replace(run, actor_steps=500)
  results.add({run: {'solved': 0.25}}, path)
  assert results.read([run, other], path) == {run: {'solved': 0.25}}
  results.add({other: {'solved': 0.5}, longer: {'solved': 0.75}}, path)
  expected = {other: {'solved': 0.5}, longer: {'solved': 0.75}}
  assert results.read([run, other, longer], path) == expected


@pytest.mark.usefixtures('shared_functions')
def test_policies_of_earlier_tasks_are_learned_first_and_then_transferred(
  tmp_path, capsys
):
  alone = ('action_repeat',)
  plain = claims.Run('bank', 'bt', ENV, 400, behavior=alone, seed=3, **_SHORT)
  first = dataclasses.replace(plain, shared=True)
  second = dataclasses.replace(plain, behavior=(*alone, first.with_seed(0)))
  with fakes.worker_in_this_process():
    assert execution.complete([second], tmp_path, processes=1) == 0
  assert capsys.readouterr().out.count(': solves ') == 2
  assert second.is_done(tmp_path)
  paths = [str(first.exported(tmp_path))]
  assert second.transferred(tmp_path) == [*alone, *paths]
  # A run is executed once, with its export if one of the others needs it.
  for todo in ([plain, second], [second, plain]):
    assert [run.exports for run in records.with_needed(todo)] == [True, False]


def test_each_goal_transfers_the_policies_of_the_goals_before_it():
  last = [r for c, r in RUNS if c == 'continual' and len(r.behaviors) == 5]
  assert len({run.algorithm for run in last}) == len(last) == 6
  for run in last:
    roles = run.settings.get('behavior_roles', '')
    assert roles == 'both,fly,fly,fly,fly' * run.algorithm.startswith('fly')
    explorer, *earlier = run.behaviors
    assert explorer == 'minigrid-explorer'
    assert len({run.env, *(each.env for each in earlier)}) == 5
    for i, each in enumerate(earlier):
      assert each.behaviors == [explorer, *earlier[:i]]


@pytest.mark.parametrize(
  ('solved', 'steps'),
  [
    ([0] * 64 + [1] * 64, 960),  # Of the last 64 of 96 episodes, 32.
    ([1] * 200, 640),  # After the first 64 episodes.
    ([0, 0, 1] * 50, 2_000),  # Never.
    ([1] * 63, 2_000),  # Too few episodes.
  ],
)
def test_the_steps_until_half_of_the_episodes_are_solved(solved, steps):
  actor_steps = 10.0 * np.arange(1, len(solved) + 1)
  training = {'actor_steps': actor_steps, 'episode_return': np.array(solved)}
  assert small_runs.steps_until_half_solved(training, 2_000) == steps


def test_a_table_shows_every_seed_and_missing_results():
  random, bt = ARMS
  r2d2 = claims.Run('R2D2', 'r2d2', ENV, 400, settings=fakes.TINY)
  columns = ('solved', 'return', 'training_return', 'seconds')
  found = {
    run.with_seed(seed): dict(
      zip(columns, (x, x - 1, 10 * x, 2.0), strict=True)
    )
    for run, solved in ((r2d2, (0.0, 0.04)), (bt, (0.96, 1.0)))
    for seed, x in enumerate(solved)
  }
  columns = ('solved', 'seeds', 'each', 'return', 'each_training_return')
  table = claims.Table('transfer', ENV, (random, r2d2, bt), columns, (0, 1))
  other = dataclasses.replace(table, claim='no_harm', runs=(random,))
  *lines, _, title, _, last = report.report([table, other], found).splitlines()
  assert (title, last) == ('Tables without any results:', f'- no_harm on {ENV}')
  assert lines[0] == '## transfer'
  assert f'**{ENV}**' in lines
  assert lines[-3].startswith('| random | 0 | 0 | not run | not run |')
  assert lines[-2].startswith('| R2D2 | 400 | 2 | 2 [0, 4] | 0 of 2 | 0 4 |')
  last = '| 98 [96, 100] | 2 of 2 | 96 100 | -0.02 [-0.04, 0.00] | 10 10 |'
  assert last in lines[-1]


@pytest.fixture(name='three_tasks')
def three_tasks_and_their_results():
  tables, found = [], {}
  for task, solved in enumerate([(0.0, 0.96), (0.5, 1.0), (1.0, 0.0)]):
    env = f'MiniGrid-FourRooms-v0:fixed={task}'
    runs = tuple(claims.Run(name, 'r2d2', env, 400) for name in ('R2D2', 'BT'))
    tables.append(claims.Table('wide', env, runs, ('solved',), range(3)))
    found.update(
      (run.with_seed(seed), {'solved': value, 'seconds': 1.0})
      for run, value in zip(runs, solved, strict=True)
      for seed in range(2)
    )
  return tables, found


def test_tasks_with_different_algorithms_have_no_summary(three_tasks):
  (first, *others), found = three_tasks
  assert not report.solved_episodes(
    [dataclasses.replace(first, runs=first.runs[1:]), *others], found
  )
  del found[first.runs[0].with_seed(1)]
  (r2d2, _) = report.solved_episodes([first, *others], found).values()
  assert r2d2.tolist() == [[0.0, 50.0, 100.0]]


def test_a_summary_also_compares_the_episodes_of_training(three_tasks):
  assert report.report(*three_tasks).splitlines()[8].endswith(' |  |  |')
  for run, row in three_tasks[1].items():
    row['training_solved'] = {'R2D2': 0.25, 'BT': 0.75}[run.algorithm]
  r2d2, bt = report.report(*three_tasks).splitlines()[8:10]
  assert r2d2.startswith('| R2D2 | ') and r2d2.endswith(' | 25 | 50 [50, 50] |')
  assert bt.startswith('| BT | ') and bt.endswith(' | 75 |  |')


def test_the_performance_profile_counts_runs_of_all_tasks(three_tasks):
  r2d2, bt = report.profile(*three_tasks).lines
  assert [line.label for line in (r2d2, bt)] == ['R2D2', 'BT']
  at = {tau: 100 * number / 3 for tau, number in [(0, 2), (49, 2), (50, 1)]}
  for tau, share in at.items():
    assert r2d2.values[tau] == pytest.approx(share)
  assert bt.values[95] == pytest.approx(200 / 3)
  assert bt.values[96] == pytest.approx(100 / 3)


def test_the_readme_has_the_tables_of_the_published_results():
  text = report.README.read_text()
  # In an assertion, pytest would compare both long texts for minutes.
  is_current = report.rendered_readme(text) == text
  assert is_current, 'Run `python -m experiments.learning --norun --publish`.'


@pytest.mark.parametrize(
  ('changes', 'message'),
  [
    ({'claims': 'hero,alon'}, "claims='alon' is unknown: did you mean"),
    ({'seeds': 0}, 'seeds=0 must be'),
    ({'jobs': -1}, 'jobs=-1 must be'),
    ({'folder': __file__}, f"'{__file__}'. Choose another --folder"),
    ({'folder': '/dev/null/x'}, "'/dev/null/x'. Choose another --folder"),
  ],
)
def test_invalid_settings_are_rejected(changes, message):
  with pytest.raises(ValueError, match=message):
    learning.run(learning.LearningConfig(**changes))


def test_environments_are_valid_and_names_of_runs_are_unique():
  tables = claims.tables()
  assert {table.claim for table in tables} == set(claims.CLAIMS)
  runs = {run for _, run in RUNS}
  assert len({(run.id[:-8], run.actor_steps) for run in runs}) == len(runs)
  assert all(run.hash for run in runs)  # The settings are valid.
  assert all(run.env == table.env for table in tables for run in table.runs)
  for env in {each.env for run in runs for each in (run, *run.needed)}:
    for name in environments.names_in(env):
      environments.make(name, seed=0).close()


def test_all_seeds_transfer_a_pre_training_run_with_a_fixed_seed():
  run = _run("BT, RND's behavior", 'MiniGrid-FourRooms-v0:fixed=7')
  (first,), (second,) = (run.with_seed(seed).needed for seed in (0, 3))
  assert first == second and first.seed == 1
  # Results with another behavior are not reused.
  other = dataclasses.replace(run, behavior=dataclasses.replace(first, seed=2))
  assert other.hash != run.hash
  assert len(f'{first.id}.json') < 256  # It names eight environments.


def _execute(run, folder):
  """Executes a run in this process and returns its row."""
  run.call(folder)(lambda news: None)
  return run.result(folder)['row']


@pytest.mark.slow
@pytest.mark.parametrize(
  ('name', 'low', 'high'),
  [('Q(lambda)', 0.9, 1), ('Retrace', 0.9, 1), ('without LSTM', -0.5, 0.5)],
)
def test_r2d2_recalls_with_its_lstm(name, low, high, tmp_path):
  run = _run(name, 'Recall-6')
  assert low < _execute(run, tmp_path)['return'] <= high


@pytest.mark.slow
def test_ngu_visits_more_than_a_random_policy(tmp_path):
  random = _run('random', 'Chain-50:random_actions')
  cells, by_chance = (
    _execute(run, tmp_path)['cells'] for run in (random.behavior, random)
  )
  assert cells > 2 * by_chance > 4


@pytest.mark.slow
def test_behavior_transfer_gains_where_the_behavior_loses(tmp_path):
  transfer = _run('BT', 'MiniGrid-FourRooms-v0:fixed=1:new_cell=-0.15')
  _execute(transfer.behavior, tmp_path)
  # 0.36 is the return of the shortest way.
  assert _execute(transfer, tmp_path)['return'] > 0.2


@pytest.mark.slow
def test_a_behavior_helps_the_dqn_of_dm_acme(tmp_path):
  env = 'MiniGrid-DoorKey-8x8-v0:fixed=21'
  runs = [_run(name, env) for name in ('DQN', 'DQN + BT')]
  alone, helped = (_execute(run, tmp_path)['solved'] for run in runs)
  assert alone < 0.2 and helped > 0.6
