"""Tests weight transfer: partial, full, and with extra actions."""

import chex
import jax
import numpy as np
import pytest

from bt_acme.core import leaves, weight_loading
from tests.core import toys
from tests.reference import weight_loading as reference

_SHAPE = (3, 3, 1)
_A = 4


def _network(num_extra=0, seed=0, **sizes):
  network = toys.small_network(_SHAPE, num_extra, **sizes)
  return network, toys.random_params(network.init, seed)


def _q_values(network, params):
  inputs = toys.network_inputs(5, 2, _A, _SHAPE)
  state = toys.zero_state(network, 2)
  return toys.unroll_of(network)(params, *inputs, state)[0]


@pytest.mark.parametrize('num_extra', [0, 1, 3])
def test_without_extra_actions_all_values_shift_equally(num_extra):
  network, params = _network(num_extra)
  narrowed = weight_loading.without_extra_actions(params, _A)
  plain, fresh = _network()
  assert not leaves.mismatches(narrowed, fresh)
  values = np.asarray(_q_values(network, params))[..., :_A]
  shift = np.asarray(_q_values(plain, narrowed)) - values
  np.testing.assert_allclose(
    shift, np.broadcast_to(shift[..., :1], shift.shape), atol=1e-5
  )
  assert (np.abs(shift).max() > 1e-3) == (num_extra > 0)


@pytest.mark.parametrize('init', ['partial', 'full'])
@pytest.mark.parametrize('extra_init', ['fresh', 'mean'])
@pytest.mark.parametrize('num_extra', [0, 1, 3])
def test_matches_reference(init, extra_init, num_extra):
  _, source = _network(seed=1)
  _, fresh = _network(num_extra, seed=2)
  before = jax.tree.map(np.array, (source, fresh))
  settings = {'init': init, 'extra_init': extra_init}
  actual = weight_loading.transfer(source, fresh, **settings)
  expected = reference.transfer(source, fresh, **settings)
  chex.assert_trees_all_equal_shapes_and_dtypes(actual, fresh)
  expected = jax.tree.map(np.float32, expected)
  chex.assert_trees_all_close(actual, expected, rtol=1e-6, atol=1e-7)
  chex.assert_trees_all_equal((source, fresh), before)


@pytest.mark.parametrize(
  'num_extra, sizes, init, message',
  [
    # The inputs are torso, one-hot action, reward and the hidden state.
    (
      *(0, {'lstm_size': 5}, 'full'),
      r'same architecture: .*lstm/linear/w is \(19, 24\), expected \(18, 20\)',
    ),
    (0, {'lstm_size': 0}, 'partial', 'lstm/linear/w is .*, expected None'),
    (0, {'head_size': 5}, 'full', 'head/advantage'),
    (0, {'head_size': 5, 'num_extra': 1}, 'full', 'head/advantage'),
    (1, {}, 'full', r'is \(5,\), expected \(4,\)'),  # Fewer choices.
    (0, {}, 'all', "init='all' is unknown"),
  ],
)
def test_loaded_parts_that_differ_are_errors(num_extra, sizes, init, message):
  _, source = _network(num_extra, seed=1)
  _, fresh = _network(seed=2, **sizes)
  with pytest.raises(ValueError, match=message):
    weight_loading.transfer(source, fresh, init=init)
  if 'lstm_size' not in sizes:  # The head is not loaded otherwise.
    weight_loading.transfer(source, fresh, init='partial')


@pytest.mark.parametrize('num, end', [(4, ')'), (5, '); and 1 more')])
def test_an_error_lists_the_first_differences(num, end):
  there = {'net': {f'w{i}': np.zeros(2) for i in range(num)}}
  here = jax.tree.map(lambda x: np.zeros(3), there)
  listed = leaves.mismatches(there, here)
  assert listed.endswith(f'net/w3 is (2,), expected (3,{end}')
