"""Tests `launch/evaluate.py`."""

import csv
import json
import sys
from unittest import mock

import numpy as np
import pytest

from bt_acme import evaluation
from bt_acme.cli import evaluation as evaluation_cli
from tests.agents import fakes
from tests.launch import scripts

ENV = 'MiniGrid-Empty-5x5-v0'


@pytest.fixture(name='behavior', scope='module')
def export(tmp_path_factory):
  """Returns the directory of a behavior for an environment with cells."""
  folder = tmp_path_factory.mktemp('behavior') / 'behavior'
  fakes.export_behavior(folder, env=ENV)
  return folder


def play(behavior, output, **changes):
  settings = {'behavior': str(behavior), 'episodes': 3, 'seed': 4, **changes}
  evaluation_cli.run(
    evaluation_cli.EvaluationConfig(output=str(output), **settings)
  )
  with output.open() as file:
    return list(csv.DictReader(file))


@pytest.mark.parametrize('given', ['', 'x'])
def test_a_behavior_or_a_run_is_evaluated(given):
  settings = evaluation_cli.EvaluationConfig(behavior=given, workdir=given)
  message = f'behavior={given!r} and workdir={given!r}: set exactly one'
  with pytest.raises(ValueError, match=message):
    evaluation_cli.load(settings)


def test_a_row_for_each_episode(behavior, tmp_path, capsys):
  rows = play(behavior, tmp_path / 'new' / 'a.csv', epsilon=0.5)
  assert [row['episode'] for row in rows] == ['0', '1', '2']
  card = json.loads((behavior / 'behavior.json').read_text())
  for i, row in enumerate(rows):
    assert row['env'] == ENV
    assert row['seed'] == '4'
    # No actor plays episodes of these environments.
    assert int(row['environment']) == evaluation.FIRST_ENVIRONMENT + i
    assert float(row['epsilon']) == 0.5
    assert int(row['actor_steps']) == card['actor_steps'] > 0
    assert row['params_sha256'] == card['params_sha256']
    assert 1 <= int(row['cells']) <= 9
    assert 1 <= int(row['episode_length']) <= 100
  # The printed table has the same numbers.
  printed = capsys.readouterr().out
  mean = np.mean([float(row['episode_return']) for row in rows])
  assert f'{mean:.3f}' in printed and f'Episodes: {tmp_path}' in printed
  others = ['MiniGrid-Empty-6x6-v0', ENV]
  several = play(behavior, tmp_path / 'd.csv', env=', '.join(others))
  assert [row['env'] for row in several] == [*others, others[0]]
  assert play(behavior, tmp_path / 'b.csv', epsilon=0.5) == rows
  assert play(behavior, tmp_path / 'c.csv', epsilon=0.5, seed=5) != rows


@pytest.mark.parametrize(
  'owner, name, num_files',
  [(evaluation.Evaluator, 'run', 0), (evaluation_cli.output, 'show', 1)],
)
def test_an_interrupted_evaluation_leaves_all_or_nothing(
  behavior, tmp_path, monkeypatch, owner, name, num_files
):
  monkeypatch.setattr(owner, name, mock.Mock(side_effect=KeyboardInterrupt))
  with pytest.raises(KeyboardInterrupt):
    play(behavior, tmp_path / 'a.csv')
  assert len([*tmp_path.iterdir()]) == num_files


def test_two_evaluations_with_one_output(behavior, tmp_path):
  output = tmp_path / 'a.csv'
  command = [
    *(sys.executable, scripts.path_of('evaluate'), f'--behavior={behavior}'),
    *('--episodes=2', f'--output={output}'),
  ]
  started = [scripts.Program(command) for _ in range(2)]
  with started[0], started[1]:
    first, second = sorted(program.end() for program in started)
  assert (first[0], second[0]) == (0, 2), (first, second)
  assert f"error: output='{output}' already exists. Delete" in second[2]
  assert 'Traceback' not in second[2]
  assert len(output.read_text().splitlines()) == 3
  assert list(tmp_path.iterdir()) == [output]


def test_one_file_for_output_and_video(tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  with pytest.raises(ValueError, match="video='o.gif' are the same file"):
    evaluation_cli.EvaluationConfig(output='./o.gif', video='o.gif')
  evaluation_cli.EvaluationConfig(output='o.csv', video='o.gif')


@pytest.mark.parametrize(
  'setting, name',
  [('output', 'mine/a'), ('video', 'x' * 300 + '.gif'), ('output', 'mine')],
  ids=len,
)
def test_an_unwritable_file(tmp_path, monkeypatch, setting, name):
  monkeypatch.chdir(tmp_path)
  (tmp_path / 'mine').write_text('mine')
  with pytest.raises(ValueError, match=f'^{setting}=') as error:
    evaluation_cli.EvaluationConfig(**{setting: name})
  assert '\n' not in str(error.value)
  with pytest.raises(ValueError, match='is not writable: .* Is a directory'):
    evaluation_cli.EvaluationConfig(**{setting: '.'})
