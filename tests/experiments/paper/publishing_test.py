"""Tests of published results."""

import pytest

from experiments.harness import dataset as dataset_lib
from experiments.paper import declarations, folders, publishing, scales
from tests.experiments.paper import fake_results as fake


@pytest.fixture(name='places')
def make_places(tmp_path, monkeypatch):
  readme = tmp_path / 'README.md'
  text = publishing.README.read_text()
  readme.write_text(text)
  monkeypatch.setattr(publishing, 'README', readme)
  monkeypatch.setattr(publishing, 'FOLDER', tmp_path / 'measured')
  return tmp_path / 'measured', readme


def _data():
  values = fake.random(['r2d2', 'bt_ngu'], [fake.NEAR, fake.FAR])
  data = fake.curves(
    values, host='a-computer', command='python launch', commit='0123abc'
  )
  running = fake.run('ez', fake.FAR, 0, status=dataset_lib.RUNNING)
  training = dataset_lib.Score(running.run_id, dataset_lib.ACTOR, 5, 1, 0.5)
  return dataset_lib.Dataset((*data.runs, running), (*data.scores, training))


def test_published_results_can_be_read_and_shown_again(places, tmp_path):
  folder, readme = places
  source = folders.Folder(tmp_path / 'runs', scales.LAPTOP)
  source.ask(declarations.Request(('table9', 'fig9'), seeds=(7,)))
  for _ in range(2):  # The second call replaces the results of the first.
    path = publishing.publish(source, _data())
  assert path == folder / 'laptop' / 'README.md'
  text = path.read_text()
  assert (
    'table9 fig9 --scale=laptop --seeds=7\n' in text and '## table9' in text
  )
  assert '](results/fig9.png)' in text
  assert [p.name for p in (folder / 'laptop' / 'results').iterdir()] == [
    'fig9.png'
  ]
  assert publishing.rendered_readme(readme.read_text()) == readme.read_text()
  kept = dataset_lib.read(folder / 'laptop')
  wanted = publishing.lasting(_data())
  assert kept.runs == wanted.runs
  assert [s[:4] for s in kept.scores] == [s[:4] for s in wanted.scores]
  assert {run.host for run in kept.runs} == {''}
  assert dataset_lib.RUNNING not in {run.status for run in kept.runs}
  assert dataset_lib.ACTOR not in {score.source for score in kept.scores}


def test_the_readme_has_the_claims_of_the_published_results():
  text = publishing.README.read_text()
  # In an assertion, pytest would compare both long texts for minutes.
  is_current = publishing.rendered_readme(text) == text
  assert is_current, 'Run `python -m experiments.paper publish --scale=laptop`.'
