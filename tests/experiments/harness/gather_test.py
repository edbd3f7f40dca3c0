"""Tests the scores of runs, and that missing data is reported."""

import json
import math

import numpy as np
import pytest

from experiments.harness import dataset, gather, records, runs
from tests.experiments.harness import fakes


def test_an_evaluation_may_overtake_another_one():
  rows = [
    {'actor_steps': 21, 'evaluation_point': 20, 'episode_return': 2},
    {'actor_steps': 10, 'evaluation_point': 10, 'episode_return': 3},
  ]
  scores = gather.evaluations('a', rows)
  assert [(s.actor_steps, s.return_mean) for s in scores] == [(10, 3), (20, 2)]


def test_the_steps_of_a_bin_are_those_of_its_end():
  rows = [
    {'actor_steps': steps, 'episode_return': value}
    for steps, value in ((0, 1.0), (250, 3.0), (251, 5.0), (1_003, 7.0))
  ]
  scores = gather.binned('a', rows, 1_000, 4)
  assert [s[2:4] for s in scores] == [(250, 2), (500, 1), (1_000, 1)]
  assert scores[0].return_mean == 2 and scores[0].return_std == 1
  assert math.isnan(scores[0].length_mean)


def test_a_score_averages_the_episodes_that_have_a_value():
  rows = [
    {'actor_steps': 1, 'episode_return': 1.0, 'episode_length': 10.0},
    {'actor_steps': 1, 'episode_return': 2.0, 'flight_share': 0.5},
  ]
  score = gather.evaluations('a', rows)[0]
  found = (score.return_mean, score.return_std, score.length_mean)
  np.testing.assert_allclose(found, (1.5, 0.5, 10.0))
  assert score.flight_share == 0.5 and math.isnan(score.cells)


_ENV = 'MiniGrid-Empty-5x5-v0'
_HEADER = 'actor_steps,episode_return,episode_length,flight_share'


def _log(path, lines):
  path.parent.mkdir(parents=True, exist_ok=True)
  path.write_text('\n'.join([_HEADER, *lines]) + '\n')


def _spec(seed=0):
  return runs.RunSpec(runs.TRANSFER, 'r2d2', _ENV, seed, 'run_r2d2', 100)


def _evaluation(stage, arm, episodes, need):
  settings = (('episodes', episodes),)
  return runs.RunSpec(stage, arm, _ENV, 0, 'evaluate', 0, settings, (need,))


def _finish(folder, spec, *, episodes=2, value=1.0):
  workdir = folder / spec.workdir
  _log(workdir / 'logs/actor/logs.csv', ['50,0,5,0.5', '100,1,5,0.5'])
  evaluations = ['0,0,5,0'] * episodes + [f'101,{value},5,0'] * episodes
  _log(workdir / 'logs/evaluator/logs.csv', evaluations)
  (workdir / 'completed.json').write_text(json.dumps({'max_actor_steps': 100}))


@pytest.mark.parametrize('key', ['sessions', 'lives'])
def test_a_finished_run_with_its_final_evaluation(tmp_path, key):
  spec = _spec()
  need = runs.Need('workdir', spec)
  final = _evaluation(runs.FINAL_EVALUATION, spec.arm, 50, need)
  _finish(tmp_path, spec)
  session = {'commit': 'abc', 'dirty': True, 'device': 'cpu'}
  session.update(seconds_before=0, started='2026-01-01T00:00:00+00:00')
  last = {**session, 'ended': '2026-01-01T00:01:00+00:00', 'seconds_before': 5}
  record = {key: [{**session, 'commit': 'older'}, last]}
  (tmp_path / spec.workdir / 'provenance.json').write_text(json.dumps(record))
  _log(tmp_path / final.episodes_file, [f'100,{i},7,0' for i in range(50)])
  data, diagnoses = gather.gather(tmp_path, [spec, final], 'smoke')
  assert not diagnoses
  (run,) = data.runs
  assert (run.status, run.actor_steps, run.scale) == ('done', 100, 'smoke')
  assert run.command == spec.command
  assert (run.commit, run.device) == ('abc, changed', 'cpu')
  assert run.seconds == 65
  (score,) = fakes.scores_of(data, spec.id, dataset.FINAL)
  # The actor steps, the number of episodes, and their mean return.
  assert score[2:5] == (100, 50, 24.5)
  steps = {dataset.EVALUATOR: [0, 101], dataset.ACTOR: [50, 100]}
  for source, expected in steps.items():
    found = fakes.scores_of(data, spec.id, source)
    assert [s.actor_steps for s in found] == expected
  dataset.write(tmp_path, data)
  assert dataset.read(tmp_path).runs == data.runs


def test_the_last_evaluation_of_a_run_is_final_if_it_is_long(tmp_path):
  long, short = _spec(seed=0), _spec(seed=1)
  _finish(tmp_path, long, episodes=50, value=0.25)
  _finish(tmp_path, short, episodes=49)
  data, diagnoses = gather.gather(tmp_path, [long, short], 'smoke')
  (score,) = fakes.scores_of(data, long.id, dataset.FINAL)
  assert (score.return_mean, score.actor_steps) == (0.25, 101)
  assert not fakes.scores_of(data, short.id, dataset.FINAL)
  assert diagnoses == (f'No final evaluation of 50 episodes: {short.id}.',)


def test_missing_runs_are_reported(tmp_path):
  done, waiting, failed = (_spec(seed=i) for i in range(3))
  _finish(tmp_path, done, episodes=50)
  tail = ('a', 'no memory left')
  attempts = records.Attempts(3, 3, 1, 5.0, 'here', tail=tail)
  records.write(tmp_path, failed, attempts)
  data, diagnoses = gather.gather(tmp_path, [done, waiting, failed], 'smoke')
  statuses = [run.status for run in data.runs]
  assert statuses == [dataset.DONE, dataset.WAITING, dataset.FAILED]
  assert data.runs[2].attempts == 3 and data.runs[2].exit_code == 1
  assert f'{failed.id} has failed 3 times' in diagnoses[0]
  assert 'no memory left' in diagnoses[0]
  assert diagnoses[1:] == (f'Not done (waiting): {waiting.id}.',)


def test_a_zero_shot_run_is_its_evaluation(tmp_path):
  ngu = runs.RunSpec(runs.PRETRAINING, 'ngu', 'Chain-9', 0, 'run_ngu', 100)
  need = runs.Need('behavior', ngu, 50)
  spec = _evaluation(runs.ZERO_SHOT, 'ngu', 2, need)
  _log(tmp_path / spec.episodes_file, ['50,1,7,0', '50,3,7,0'])
  data, _ = gather.gather(tmp_path, [ngu, spec], 'smoke')
  run = data.runs[1]
  assert (run.stage, run.status) == ('zero_shot', 'done')
  assert (run.pretraining_run, run.pretraining_steps) == (ngu.id, 50)
  (score,) = fakes.scores_of(data, spec.id, dataset.FINAL)
  assert (score.return_mean, score.actor_steps) == (2.0, 0)
