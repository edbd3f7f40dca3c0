import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bt_acme.core import leaves


def make_tree(scale):
  return {
    'key': jax.random.split(jax.random.key(scale), 3),
    'x': (scale * jnp.arange(4.0), jnp.int32(scale)),
    'none': (),
  }


def test_leaves_restore_the_tree():
  tree, template = make_tree(1), make_tree(7)
  kept = leaves.tree_leaves(tree)
  assert len(kept) == 3 and all(type(leaf) is np.ndarray for leaf in kept)
  again = leaves.restore_leaves(template, kept)
  assert jax.tree.structure(again) == jax.tree.structure(tree)
  np.testing.assert_array_equal(again['x'][0], tree['x'][0])
  assert again['x'][1] == 1 and again['x'][1].dtype == jnp.int32
  np.testing.assert_array_equal(
    jax.random.uniform(again['key'][2]), jax.random.uniform(tree['key'][2])
  )


def test_donated_buffers_do_not_change_the_leaves():
  x = jnp.arange(1000.0)
  (kept,) = leaves.tree_leaves([x])
  step = jax.jit(lambda x: x + 1, donate_argnums=0)
  step(x)
  np.testing.assert_array_equal(kept, np.arange(1000.0))
  step(leaves.restore_leaves([jnp.zeros(1000)], [kept])[0])
  np.testing.assert_array_equal(kept, np.arange(1000.0))


@pytest.mark.parametrize(
  'tree', [{'x': jnp.zeros(3)}, {'x': jnp.zeros(4, jnp.int32)}]
)
def test_mismatched_arrays_are_errors(tree):
  with pytest.raises(ValueError, match='Expected an array'):
    leaves.restore_leaves({'x': jnp.zeros(4)}, leaves.tree_leaves(tree))
