"""Tests of the paper's numbers and of the dataset made from them."""

import collections

import pytest

from experiments.harness import dataset as dataset_lib
from experiments.paper import artifacts, effects, published


def test_all_numbers_of_the_paper_are_included():
  counts = [len(published.numbers(f'table{t}')) for t in range(1, 11)]
  small = [0, 226, 8 * 6, 6 * 6, 7 * 5]
  assert counts == [*small, 57 * 4, 57 * 3, 57 * 3, 12 * 4 + 4, 6 * 5]


@pytest.mark.parametrize('table', [f'table{i}' for i in range(2, 11)])
def test_numbers_have_known_arms_games_and_metrics(table):
  artifact = artifacts.ARTIFACTS[table]
  keys = collections.Counter()
  for number in published.numbers(table):
    float(number.value)
    assert not number.spread or float(number.spread) >= 0
    assert bool(number.env) != bool(number.suite)
    if number.arm in artifacts.ARMS:
      assert number.arm in artifact.arms
    else:
      assert table == 'table2'
    if number.suite:
      assert number.suite in artifact.suites
      assert number.metric in artifact.metrics
    else:
      (suite,) = artifact.suites
      assert number.env in artifacts.PAPER_SUITES[suite]
      assert number.metric == 'score'
    keys[number[:6]] += 1
  assert set(keys.values()) == {1}


@pytest.mark.parametrize(
  'artifact, runs',
  [
    *(('table3', 57 * 8), ('fig6', 57 * 8), ('table9', 48), ('fig11', 48)),
    *(('table10', 30), ('table2', 0), ('fig7', 0)),
  ],
)
def test_there_is_one_published_run_per_game(artifact, runs):
  data = published.data(artifact)
  assert len(data.runs) == runs
  assert len({run.run_id for run in data.runs}) == runs
  assert [s.run_id for s in data.scores] == [r.run_id for r in data.runs]
  assert {run.status for run in data.runs} <= {dataset_lib.DONE}
  for run in data.runs:
    is_zero_shot = run.arm in artifacts.ZERO_SHOT
    assert run.stage == ('zero_shot' if is_zero_shot else 'transfer')
    if artifact != 'table10':
      assert run.budget_steps == artifacts.PAPER_TRANSFER_STEPS


def test_all_artifacts_are_declared():
  ids = [f'table{i}' for i in range(1, 11)] + [f'fig{i}' for i in range(1, 12)]
  assert list(artifacts.ARTIFACTS) == [*ids, 'retrace']
  for artifact in artifacts.ARTIFACTS.values():
    assert set(artifact.arms) <= set(artifacts.ARMS)
    assert set(artifact.suites) <= {*artifacts.PAPER_SUITES, 'atari_47'}
    named = {*effects.METRICS, 'score', 'greedy_extra_share'}
    assert set(artifact.metrics) <= named
    assert all(0 < point <= 1 for point in artifact.points)
