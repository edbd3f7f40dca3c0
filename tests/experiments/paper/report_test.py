"""Tests of rendered artifacts, the report and published results."""

import pytest

from experiments.harness import dataset as dataset_lib
from experiments.paper import artifacts, folders, report, results, scales
from experiments.paper.required_runs import Request
from tests.experiments.paper import fake_results as fake


def _data():
  values = fake.random(['r2d2', 'bt_ngu'], [fake.NEAR, fake.FAR])
  commit = f'{"0123abc" * 5}, changed'
  data = fake.curves(values, seconds=900.0, commit=commit, host='a-computer')
  running, failed = (
    fake.run('ez', fake.FAR, seed, status=status, exit_code=3, command='python')
    for seed, status in enumerate((dataset_lib.RUNNING, dataset_lib.FAILED))
  )
  training = dataset_lib.Score(running.run_id, dataset_lib.ACTOR, 5, 1, 0.5)
  return fake.data((*data.runs, running, failed), (*data.scores, training))


@pytest.mark.parametrize(
  'found',
  [
    results.Results(_data(), fake.ALL_SUITES),
    results.Results(fake.NOTHING, fake.ALL_SUITES),
    results.Results(fake.NOTHING, {}),
  ],
  ids=['data', 'nothing', 'no environments'],
)
def test_every_artifact_is_written_and_shown(found, tmp_path):
  for artifact, one in artifacts.ARTIFACTS.items():
    folder = tmp_path / artifact
    formats = [one for one in report.FORMATS if one != 'pdf']
    paths, section = report.render(artifact, found, folder, formats)
    assert paths and set(paths) == set(folder.iterdir())
    assert {path.stem for path in paths} == {artifact}
    assert section.startswith(f'## {artifact}: {one.title}\n')
    assert section.endswith('\n')
    if one.is_figure and not found.dataset.runs:
      assert 'Nothing is drawn' in paths[0].read_text()


def test_a_report_links_to_a_picture_with_a_caption_file(tmp_path):
  found = results.Results(_data(), fake.ALL_SUITES)
  formats = ('png', 'pdf', 'md')  # The last one is for tables.
  paths, section = report.render('fig9', found, tmp_path / 'results', formats)
  assert '](results/fig9.png)' in section
  failed = f'Failed with exit code 3: {_data().runs[-1].run_id}.'
  assert f'- {failed}' in section
  assert [path.suffix for path in paths] == ['.png', '.pdf', '.txt']
  assert set(paths) == set((tmp_path / 'results').iterdir())
  assert paths[0].read_bytes().startswith(b'\x89PNG')
  caption = paths[2].read_text()
  assert failed in caption and 'bt_rnd was not run on' in caption


def test_published_results_can_be_read_and_shown_again(tmp_path, monkeypatch):
  folder, readme = tmp_path / 'measured', tmp_path / 'README.md'
  readme.write_text(report.README.read_text())
  monkeypatch.setattr(report, 'README', readme)
  monkeypatch.setattr(report, 'FOLDER', folder)
  source = folders.Folder(tmp_path / 'runs', scales.get('laptop'))
  source.ask(Request(('table9', 'fig9'), seeds=(7,)))
  old = folder / 'laptop' / 'results' / 'fig1.png'
  old.parent.mkdir(parents=True)
  old.touch()
  path = report.publish(source, _data())
  assert path == folder / 'laptop' / 'README.md'
  text = path.read_text()
  assert 'table9 fig9 --scale=laptop --seeds=7\n' in text
  assert '## table9' in text and '](results/fig9.png)' in text
  (picture,) = (folder / 'laptop' / 'results').iterdir()
  assert picture.name == 'fig9.png'
  assert report.rendered_readme(readme.read_text()) == readme.read_text()
  kept = dataset_lib.read(folder / 'laptop')
  wanted = report.lasting(_data())
  assert kept.runs == wanted.runs
  assert [s[:4] for s in kept.scores] == [s[:4] for s in wanted.scores]
  assert {run.host for run in kept.runs} == {''}
  assert dataset_lib.RUNNING not in {run.status for run in kept.runs}
  assert dataset_lib.ACTOR not in {score.source for score in kept.scores}


def test_the_readme_has_the_claims_of_the_published_results():
  text = report.README.read_text()
  # In an assertion, pytest would compare both long texts for minutes.
  is_current = report.rendered_readme(text) == text
  assert is_current, 'Run `python -m experiments.paper publish --scale=laptop`.'
