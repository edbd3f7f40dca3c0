"""Tests the layout of tables."""

import pytest

from bt_acme.evaluation import tables

_ROWS = [('random', 5), ('R2D2 + BT', 1000)]
_CELLS = [{'a': 1 / 3, 'b': 'x, y'}, {'a': float('nan'), 'c': 7}]


@pytest.mark.parametrize(
  'text, expected',
  [
    (
      tables.table(('policy', 'n'), _ROWS),
      'policy        n\n---------------\nrandom        5\nR2D2 + BT  1000',
    ),
    (tables.csv_text([{'a': 0.1}, {'c': 7}]), 'a,c\n0.1,\n,7\n'),
    (tables.csv_text(_CELLS, digits=3), 'a,b,c\n0.333,"x, y",\n,,7\n'),
    (
      tables.markdown(('a', 'b'), [('x|y', 1)]),
      '| a | b |\n| --- | --: |\n| x/y | 1 |',
    ),
    (tables.markdown(('a', 'b'), [], 'rl'), '| a | b |\n| --: | --- |'),
    (
      tables.markdown(('name', 'b'), [('x', 1000)], padded=True),
      '| name | b    |\n| ---  | --:  |\n| x    | 1000 |',
    ),
    (tables.counted(1, 'episode'), '1 episode'),
    (tables.counted(2_000, 'episode'), '2,000 episodes'),
  ],
)
def test_texts(text, expected):
  assert text == expected
