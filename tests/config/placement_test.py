"""Placements of nodes in a cluster, as users write them."""

import pytest

from bt_acme.config import placement


def test_the_default_keeps_what_writes_on_the_launchers_machine():
  places = placement.parse('')
  assert set(places) == set(placement.LABELS)
  here = {label for label, place in places.items() if place.here}
  assert here == {'coordinator', 'replay', 'learner', 'inference'}
  assert places['actor'].options() == {'here': False, 'num_cpus': 1.0}


def test_a_placement_names_resources_and_labels_of_machines():
  places = placement.parse(
    ' learner: num_gpus=1 , role=trainer;actor:num_cpus=0.5;'
  )
  assert places['learner'].options() == {
    'here': False,
    'num_gpus': 1.0,
    'label_selector': {'role': 'trainer'},
  }
  assert places['actor'].options() == {'here': False, 'num_cpus': 0.5}
  assert places['evaluator'] == placement.parse('')['evaluator']


@pytest.mark.parametrize(
  ('text', 'message'),
  [
    ('lerner:num_gpus=1', "places 'lerner', .* did you mean 'learner'"),
    ('learner', "has '' where NAME=VALUE"),
    ('learner:gpu', "has 'gpu' where NAME=VALUE"),
    ('learner:num_gpus=', "has 'num_gpus=' where NAME=VALUE"),
    ('learner:num_gpus=one', 'asks for num_gpus=one: it must be a number'),
    ('actor:num_cpus=-1', 'asks for num_cpus=-1: it must'),
    ('actor:num_cpus=nan', 'asks for num_cpus=nan: it must'),
  ],
)
def test_a_placement_that_makes_no_sense_is_refused(text, message):
  with pytest.raises(ValueError, match=message):
    placement.parse(text)
