"""Tests the layout of tables."""

from bt_acme.evaluation import tables


def test_columns_are_aligned():
  text = tables.table(('policy', 'n'), [('random', 5), ('R2D2 + BT', 1000)])
  assert text.split('\n') == [
    'policy        n',
    '---------------',
    'random        5',
    'R2D2 + BT  1000',
  ]


def test_csv_missing_cells_are_empty():
  rows = [{'a': 1, 'b': 'x, y'}, {'a': 2, 'c': 0.1}]
  assert tables.csv_text(rows) == 'a,b,c\n1,"x, y",\n2,,0.1\n'


def test_csv_digits_and_nan():
  rows = [{'a': 1 / 3, 'b': 7}, {'a': float('nan'), 'b': 'x'}]
  assert tables.csv_text(rows, digits=3) == 'a,b\n0.333,7\n,x\n'


def test_markdown_alignment():
  assert tables.markdown(('a', 'b'), [('x|y', 1)]).split('\n') == [
    '| a | b |',
    '| --- | --: |',
    '| x/y | 1 |',
  ]
  assert tables.markdown(('a', 'b'), [], 'rl').endswith('| --: | --- |')


def test_markdown_is_padded_for_terminals():
  text = tables.markdown(('name', 'b'), [('x', 1000)], padded=True)
  assert text.split('\n') == [
    '| name | b    |',
    '| ---  | --:  |',
    '| x    | 1000 |',
  ]


def test_nouns_agree_with_their_numbers():
  assert tables.counted(1, 'episode') == '1 episode'
  assert tables.counted(2_000, 'episode') == '2,000 episodes'
