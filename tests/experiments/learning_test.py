"""The shortest of the learning runs, with one seed each."""

import dataclasses

import pytest

from bt_acme import environments
from experiments.learning import claims, execution, pool, report


def _run(name, world=claims.RECALL):
  (run,) = (r for r in claims.runs() if (r.algorithm, r.world) == (name, world))
  return run


@pytest.mark.slow
@pytest.mark.parametrize('name', ['Q(lambda)', 'Retrace'])
def test_r2d2_recalls(name, tmp_path):
  assert execution.execute(_run(name), 0, str(tmp_path))['return'] > 0.9


@pytest.mark.slow
def test_nothing_is_recalled_without_an_lstm(tmp_path):
  scores = execution.execute(_run('Q(lambda) no LSTM'), 0, str(tmp_path))
  assert abs(scores['return']) < 0.5


@pytest.mark.slow
def test_ngu_visits_more_than_a_random_policy(tmp_path):
  random_policy = _run('random policy', claims.CHAIN)
  scores, by_chance = (
    execution.execute(run, 0, str(tmp_path))
    for run in (random_policy.behavior, random_policy)
  )
  assert scores['cells'] > 2 * by_chance['cells'] > 2


@pytest.mark.slow
def test_behavior_transfer_gains_where_the_behavior_loses(tmp_path):
  transfer = _run('BT', claims.COSTLY)
  execution.execute(transfer.behavior, 0, str(tmp_path))
  assert execution.execute(transfer, 0, str(tmp_path))['return'] > 0.4


def test_results_of_runs_are_kept_and_reported(tmp_path, capsys):
  run = dataclasses.replace(_run('Q(lambda)'), actor_steps=200)
  pairs = [(run, 0), (run, 1)]
  pool.complete(pairs, str(tmp_path), jobs=1)
  assert '2 / 2' in capsys.readouterr().out
  pool.complete(pairs, str(tmp_path), jobs=1)
  assert not capsys.readouterr().out  # Nothing was left to do.

  def read(run, seed):
    return pool.result(run, seed, str(tmp_path))

  assert -1 <= read(run, 0)['return'] <= 1
  lines = report.report([run], 2, read).splitlines()
  assert lines[1] == '**memory**, Recall-6'
  assert lines[-1].startswith('| Q(lambda) | 200 | ')


def test_worlds_are_environments_and_files_have_names_of_their_own():
  runs = claims.runs()
  assert {run.claim for run in runs} == set(claims.CLAIMS)
  assert len({run.name(0) for run in runs}) == len(runs)
  for run in runs:
    environments.validate(run.world)
    if run.kind not in ('random', 'behavior'):
      execution.configuration(run)
