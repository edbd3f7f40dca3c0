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


def test_leaves_restore_the_tree_though_its_buffers_are_donated():
  tree, template = make_tree(1), make_tree(7)
  kept = leaves.tree_leaves(tree)
  assert len(kept) == 3 and all(type(leaf) is np.ndarray for leaf in kept)
  for donated in (tree, leaves.restore_leaves(template, kept)):

    def change(x):
      return jax.tree.map(lambda y: y[::-1] if y.ndim else y + 1, x)

    jax.jit(change, donate_argnums=0)(donated)
  again = leaves.restore_leaves(template, kept)
  expected = make_tree(1)
  assert jax.tree.structure(again) == jax.tree.structure(expected)
  for x, y in zip(*map(jax.tree.leaves, (again, expected)), strict=True):
    assert x.dtype == y.dtype and jnp.array_equal(x, y)


@pytest.mark.parametrize('template', [jnp.zeros(4), jax.random.key(0)])
@pytest.mark.parametrize('leaf', [np.zeros(3), np.zeros(4, np.uint32)])
def test_mismatched_arrays_are_errors(template, leaf):
  with pytest.raises(ValueError, match='Expected an array'):
    leaves.restore_leaves({'x': template}, [leaf])
