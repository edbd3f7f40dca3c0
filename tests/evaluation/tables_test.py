"""Tables are laid out in columns."""

from bt_acme.evaluation import tables


def test_columns_are_aligned():
  text = tables.table(('policy', 'n'), [('random', 5), ('R2D2 + BT', 1000)])
  assert text.split('\n') == [
    'policy        n',
    '---------------',
    'random        5',
    'R2D2 + BT  1000',
  ]
