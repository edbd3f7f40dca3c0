"""The shortest of the learning runs, with one seed each."""

import dataclasses
import json

import pytest

from bt_acme.environments import worlds
from experiments import learning


def _run(name, world=worlds.RECALL):
  (run,) = (
    r for r in learning._runs() if (r.algorithm, r.world) == (name, world)
  )
  return run


@pytest.mark.slow
@pytest.mark.parametrize('name', ['Q(lambda)', 'Retrace'])
def test_r2d2_recalls(name, tmp_path):
  assert learning.execute(_run(name), 0, str(tmp_path))['return'] > 0.9


@pytest.mark.slow
def test_nothing_is_recalled_without_an_lstm(tmp_path):
  scores = learning.execute(_run('Q(lambda) no LSTM'), 0, str(tmp_path))
  assert abs(scores['return']) < 0.5


@pytest.mark.slow
def test_ngu_visits_more_than_a_random_policy(tmp_path):
  random_policy = _run('random policy', worlds.CHAIN)
  scores, by_chance = (
    learning.execute(run, 0, str(tmp_path))
    for run in (random_policy.behavior, random_policy)
  )
  assert scores['cells'] > 2 * by_chance['cells'] > 2


@pytest.mark.slow
def test_behavior_transfer_gains_where_the_behavior_loses(tmp_path):
  transfer = _run('BT', worlds.COSTLY)
  learning.execute(transfer.behavior, 0, str(tmp_path))
  assert learning.execute(transfer, 0, str(tmp_path))['return'] > 0.4


def test_results_of_runs_are_kept_and_reported(tmp_path, capsys):
  run = dataclasses.replace(_run('Q(lambda)'), actor_steps=200)
  pairs = [(run, 0), (run, 1)]
  learning._complete(pairs, str(tmp_path), jobs=1)
  assert '2 / 2' in capsys.readouterr().out
  learning._complete(pairs, str(tmp_path), jobs=1)
  assert not capsys.readouterr().out  # Nothing was left to do.

  def read(run, seed):
    return json.loads((tmp_path / f'{run.name(seed)}.json').read_text())

  assert -1 <= read(run, 0)['return'] <= 1
  lines = learning.report([run], 2, read).splitlines()
  assert lines[1] == '**memory**, Recall'
  assert lines[-1].startswith('| Q(lambda) | 200 | ')
