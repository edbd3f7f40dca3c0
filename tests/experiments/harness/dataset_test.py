"""Tests of the two tables of a dataset."""

import math

import pytest

from experiments.harness import dataset as dataset_lib
from tests.experiments.harness import fakes

_RUN = dataset_lib.RunRow(
  *('bt_ngu/pong/s0-1a', 'gpu', 'transfer', 'bt_ngu', 'pong', 0, 1_000),
  status=dataset_lib.DONE,
  seconds=1.5,
)
_SCORES = (
  dataset_lib.Score(_RUN.run_id, dataset_lib.FINAL, 1_000, 50, -1 / 3, 0.25),
  dataset_lib.Score(_RUN.run_id, dataset_lib.EVALUATOR, 500, 5, 1e9),
)


def test_a_dataset_survives_a_round_trip(tmp_path):
  dataset_lib.write(tmp_path, dataset_lib.Dataset((_RUN,), _SCORES))
  read = dataset_lib.read(tmp_path)
  assert read.runs == (_RUN,)
  (score,) = fakes.scores_of(read, _RUN.run_id, dataset_lib.FINAL)
  assert score.return_mean == pytest.approx(-1 / 3, rel=1e-9)
  assert math.isnan(score.cells)


@pytest.mark.parametrize(
  ('name', 'content', 'message'),
  [
    # A table of another version lacks columns.
    ('runs.csv', b'run_id,seed\na,0\n', 'missing columns.*env.*'),
    *(('scores.csv', x, '') for x in (b'', b'\xff\xfe\x00', b'run_id\n"a')),
    ('scores.csv', None, 'after 1 row.*'),  # The last row is truncated.
  ],
)
def test_an_invalid_table_is_rejected(tmp_path, name, content, message):
  dataset_lib.write(tmp_path, dataset_lib.Dataset((_RUN,), _SCORES))
  path = tmp_path / name
  path.write_bytes(path.read_bytes()[:-30] if content is None else content)
  with pytest.raises(
    ValueError, match=f'{name} cannot be read.*{message}Run `gather`'
  ):
    dataset_lib.read(tmp_path)
