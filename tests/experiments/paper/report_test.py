"""Tests of rendered artifacts and the report."""

import pytest

from experiments.harness import dataset as dataset_lib
from experiments.paper import artifacts, claims, report, results, scales
from tests.experiments.paper import fake_results as fake


def _data():
  values = fake.random(['r2d2', 'bt_ngu'], [fake.NEAR, fake.FAR])
  data = fake.curves(values, seconds=900.0, commit=f'{"0123abc" * 5}, changed')
  failed = fake.run(
    'ez', fake.FAR, 0, status=dataset_lib.FAILED, exit_code=3, commit='4567def'
  )
  return data._replace(runs=(*data.runs, failed))


def _found():
  return results.Results(_data(), fake.ALL_SUITES)


def _joined(data, sections=()):
  return report.joined(
    scales.LAPTOP,
    data,
    ['python -m experiments.paper fig3 --scale=laptop'],
    claims.evaluate(results.Results(data, fake.ALL_SUITES)),
    sections,
  )


@pytest.mark.parametrize('artifact', artifacts.ARTIFACTS)
def test_every_artifact_is_written_and_shown(artifact, tmp_path):
  folder = tmp_path / 'results'
  rendered = report.render(artifact, _found(), folder, ('md', 'csv'))
  assert rendered.paths
  assert set(rendered.paths) == set(folder.iterdir())
  assert {path.stem for path in rendered.paths} == {artifact}
  title = artifacts.find(artifact).title
  assert rendered.markdown.startswith(f'## {artifact}: {title}\n')
  assert rendered.markdown.endswith('\n')


def test_a_report_links_to_a_picture_with_a_caption_file(tmp_path):
  rendered = report.render('fig9', _found(), tmp_path / 'results', ('png',))
  assert '](results/fig9.png)' in rendered.markdown
  failed = f'Failed with exit code 3: {_data().runs[-1].run_id}.'
  assert f'- {failed}' in rendered.markdown
  assert [path.name for path in rendered.paths] == ['fig9.png', 'fig9.txt']
  assert set(rendered.paths) == set((tmp_path / 'results').iterdir())
  assert rendered.paths[0].read_bytes().startswith(b'\x89PNG')
  caption = rendered.paths[1].read_text()
  assert failed in caption and 'bt_rnd was not run on' in caption


def test_a_report_shows_a_table_for_any_format(tmp_path):
  rendered = report.render('table3', _found(), tmp_path, ('csv',))
  assert [path.name for path in rendered.paths] == ['table3.csv']
  assert '| R2D2 + BT(NGU), 100% of the budget |' in rendered.markdown


def test_a_report_describes_its_runs():
  text = _joined(_data(), ['## fig3: a figure\n'])
  assert 'python -m experiments.paper fig3 --scale=laptop\n' in text
  assert 'Pre-training is per seed: each seed pre-trains its own' in text
  # Twelve runs of a quarter of an hour and a failed one.
  assert '| all | 13 | 12 | 1 | 3.00 |' in text
  assert 'Commit: 0123abc012, changed; 4567def.' in text
  assert f'- Failed with exit code 3: {_data().runs[-1].run_id}.' in text
  assert '## fig3: a figure' in text


@pytest.mark.parametrize('data', [_data(), fake.NOTHING])
def test_a_report_has_a_verdict_on_each_claim(data):
  verdicts = claims.counts(())
  rows = [line.split(' | ') for line in _joined(data).splitlines()]
  shown = [
    row[0]
    for row in rows
    if row[0].startswith('| C') and row[1].split(' (')[0] in verdicts
  ]
  assert shown == [f'| C{i}' for i in range(1, 23)]
