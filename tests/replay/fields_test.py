"""Tests that the list of fields matches transitions and batches."""

import numpy as np
import pytest

from bt_acme.core import transition, types
from bt_acme.replay import blocks, fields
from tests.replay import episodes


def test_batch_holds_every_field_and_the_recurrent_state():
  shapes = episodes.make_shapes(has_proposals=True)
  names = [field.name for field in fields.stored(shapes)]
  assert len(names) == len(set(names))
  assert {*names, 'recurrent_state'} == set(types.SequenceBatch._fields)


def test_transition_has_every_field_that_is_given():
  given = {field.name for field in fields.FIELDS if field.given}
  derived = {field.name for field in fields.FIELDS if not field.given}
  assert given <= set(transition.Transition._fields)
  assert not derived & set(transition.Transition._fields)


@pytest.mark.parametrize('num_stacked, channels', ((4, 1), (1, 3)))
def test_batch_has_the_shapes_of_its_docstring(num_stacked, channels):
  length, size = episodes.LENGTH, 2
  shapes = episodes.make_shapes(num_stacked, channels)
  batch = blocks.empty_batch(episodes.make_config(), shapes, size)
  frames = (num_stacked - 1 + length + 1, size, 5, 6, channels)
  expected = {
    'frames': (np.uint8, frames),
    'prev_action': (np.int32, (length + 1, size)),
    'prev_reward': (np.float32, (length + 1, size)),
    'action': (np.int32, (length, size)),
    'choice': (np.int32, (length, size)),
    'source': (np.uint8, (length, size)),
    'probability': (np.float32, (length, size)),
    'reward': (np.float32, (length, size)),
    'discount': (np.float32, (length, size)),
    'valid': (np.float32, (length, size)),
  }
  assert batch.proposal == ()
  for name, (dtype, shape) in expected.items():
    array = getattr(batch, name)
    assert (array.dtype, array.shape) == (dtype, shape), name
  for state in batch.recurrent_state:
    assert (state.dtype, state.shape) == (np.float32, (size, shapes.lstm_size))
