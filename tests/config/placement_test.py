"""Tests how placements of nodes in a cluster are parsed."""

import pytest

from bt_acme.config import placement


def test_by_default_nodes_that_write_run_on_the_launchers_machine():
  places = placement.parse('')
  assert set(places) == set(placement.LABELS)
  here = {label for label, options in places.items() if options['here']}
  assert here == {'coordinator', 'replay', 'learner', 'inference'}
  assert places['actor'] == {'here': False, 'num_cpus': 1.0}


def test_a_placement_names_resources_and_labels_of_machines():
  places = placement.parse(
    ' learner: num_gpus=1 , role=trainer;actor:num_cpus=0.5;'
  )
  assert places['learner'] == {
    'here': False,
    'num_gpus': 1.0,
    'label_selector': {'role': 'trainer'},
  }
  assert places['actor'] == {'here': False, 'num_cpus': 0.5}
  assert places['evaluator'] == placement.parse('')['evaluator']


@pytest.mark.parametrize(
  ('text', 'message'),
  [
    ('lerner:num_gpus=1', "unknown label 'lerner': did you mean 'learner'"),
    ('learner', "contains '' where NAME=VALUE"),
    ('learner:gpu', "contains 'gpu' where NAME=VALUE"),
    ('learner:num_gpus=', "contains 'num_gpus=' where NAME=VALUE"),
    ('learner:num_gpus=one', 'num_gpus=one, which must be a number'),
    ('actor:num_cpus=-1', 'num_cpus=-1, which must'),
    ('actor:num_cpus=nan', 'num_cpus=nan, which must'),
  ],
)
def test_an_invalid_placement_is_rejected(text, message):
  with pytest.raises(ValueError, match=message):
    placement.parse(text)
