"""`launch/evaluate.py --output`: a row for each episode."""

import csv
import json

import numpy as np
import pytest

from bt_acme import evaluation
from bt_acme.behaviors import exported_folder
from bt_acme.cli import evaluation as evaluation_cli
from tests.agents import fakes

WORLD = 'MiniGrid-Empty-5x5-v0'


@pytest.fixture(name='world', scope='module')
def export(tmp_path_factory):
  """A behavior of a world that has cells."""
  folder = tmp_path_factory.mktemp('world') / 'behavior'
  fakes.export_behavior(folder, env=WORLD)
  return folder


def play(world, output, **changes):
  settings = {'behavior': str(world), 'episodes': 3, 'seed': 4, **changes}
  evaluation_cli.run(
    evaluation_cli.EvaluationConfig(output=str(output), **settings)
  )
  with output.open() as file:
    return list(csv.DictReader(file))


def test_a_row_for_each_episode(world, tmp_path, capsys):
  rows = play(world, tmp_path / 'new' / 'a.csv', epsilon=0.5)
  assert [row['episode'] for row in rows] == ['0', '1', '2']
  card = json.loads((world / 'behavior.json').read_text())
  for i, row in enumerate(rows):
    assert row['env'] == WORLD
    assert row['seed'] == '4'
    # No actor meets the episodes of these environments.
    assert int(row['environment']) == evaluation.FIRST_ENVIRONMENT + i
    assert float(row['epsilon']) == 0.5
    assert int(row['actor_steps']) == card['actor_steps'] > 0
    assert row['params_sha256'] == card['params_sha256']
    assert 1 <= int(row['cells']) <= 9
    assert 1 <= int(row['episode_length']) <= 100
  # The table that is printed has the same numbers.
  printed = capsys.readouterr().out
  mean = np.mean([float(row['episode_return']) for row in rows])
  assert f'{mean:.3f}' in printed and f'are in {tmp_path}' in printed
  assert play(world, tmp_path / 'b.csv', epsilon=0.5) == rows
  assert play(world, tmp_path / 'c.csv', epsilon=0.5, seed=5) != rows


def test_a_file_that_is_there_is_kept(world, tmp_path):
  path = tmp_path / 'a.csv'
  path.write_text('mine')
  with pytest.raises(ValueError, match='is there already: remove it, or'):
    play(world, path)
  assert path.read_text() == 'mine'


def test_an_evaluation_that_is_cut_short_leaves_no_file(
  world, tmp_path, monkeypatch
):
  def stop(*args, **kwargs):
    raise KeyboardInterrupt

  monkeypatch.setattr(evaluation.Evaluator, 'run', stop)
  with pytest.raises(KeyboardInterrupt):
    play(world, tmp_path / 'a.csv')
  assert list(tmp_path.iterdir()) == []


def test_the_checksum_is_that_of_the_file(world):
  policy = exported_folder.read(str(world), setting='behavior')
  assert exported_folder.checksum(policy.variables) == policy.params_sha256
  other = policy.variables._replace(intrinsic={})
  assert exported_folder.checksum(other) != policy.params_sha256


@pytest.mark.parametrize('setting', ['output', 'video'])
@pytest.mark.parametrize(
  'name', ['mine/a.gif', 'x' * 300 + '.gif', 'folder'], ids=str.__len__
)
def test_a_file_that_cannot_be_made(tmp_path, monkeypatch, setting, name):
  monkeypatch.chdir(tmp_path)
  (tmp_path / 'mine').write_text('mine')
  (tmp_path / 'folder').mkdir()
  with pytest.raises(ValueError, match=f'^{setting}=') as error:
    evaluation_cli.EvaluationConfig(**{setting: name})
  assert '\n' not in str(error.value)


def test_more_episodes_than_there_is_memory_for(world, tmp_path):
  with pytest.raises(ValueError, match='^episodes=1000000000, memory_capacity'):
    play(world, tmp_path / 'a.csv', episodes=10**9)
