"""Tests of rendered artifacts and the report."""

import pytest

from experiments.harness import dataset as dataset_lib
from experiments.paper import artifacts, report, results
from tests.experiments.paper import fake_results as fake


def _data():
  values = fake.random(['r2d2', 'bt_ngu'], [fake.NEAR, fake.FAR])
  data = fake.curves(values, seconds=900.0, commit=f'{"0123abc" * 5}, changed')
  failed = fake.run(
    'ez', fake.FAR, 0, status=dataset_lib.FAILED, exit_code=3, commit='4567def'
  )
  return data._replace(runs=(*data.runs, failed))


@pytest.mark.parametrize('artifact', artifacts.ARTIFACTS)
@pytest.mark.parametrize(
  ('data', 'suites'),
  [
    (_data(), fake.ALL_SUITES),
    (fake.NOTHING, fake.ALL_SUITES),
    (fake.NOTHING, {}),
  ],
  ids=['data', 'nothing', 'no environments'],
)
def test_every_artifact_is_written_and_shown(artifact, data, suites, tmp_path):
  found = results.Results(data, suites)
  folder = tmp_path / 'results'
  paths, section = report.render(artifact, found, folder)
  assert paths
  assert set(paths) == set(folder.iterdir())
  assert {path.stem for path in paths} == {artifact}
  one = artifacts.ARTIFACTS[artifact]
  assert section.startswith(f'## {artifact}: {one.title}\n')
  assert section.endswith('\n')
  if one.is_figure and not data.runs:
    assert 'Nothing is drawn' in paths[0].read_text()


def test_a_report_links_to_a_picture_with_a_caption_file(tmp_path):
  found = results.Results(_data(), fake.ALL_SUITES)
  paths, section = report.render('fig9', found, tmp_path / 'results', ('png',))
  assert '](results/fig9.png)' in section
  failed = f'Failed with exit code 3: {_data().runs[-1].run_id}.'
  assert f'- {failed}' in section
  assert [path.name for path in paths] == ['fig9.png', 'fig9.txt']
  assert set(paths) == set((tmp_path / 'results').iterdir())
  assert paths[0].read_bytes().startswith(b'\x89PNG')
  caption = paths[1].read_text()
  assert failed in caption and 'bt_rnd was not run on' in caption
