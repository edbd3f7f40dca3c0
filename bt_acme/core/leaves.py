"""The leaves of a tree of arrays, as NumPy arrays that can be kept."""

from typing import Any, List, Sequence, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

Tree = TypeVar('Tree')


def tree_leaves(tree: Any) -> List[np.ndarray[Any, Any]]:
  """Copies the leaves of a tree; random keys become the data behind them."""
  # A view would change when its buffer is donated to a jitted function.
  return [
    np.array(jax.random.key_data(leaf) if _is_key(leaf) else leaf)
    for leaf in jax.tree.leaves(tree)
  ]


def restore_leaves(template: Tree, leaves: Sequence[Any]) -> Tree:
  """Puts leaves back into a tree of JAX's arrays.

  Args:
    template: a tree with the structure, shapes and dtypes of the tree that the
      leaves are from.
    leaves: what `tree_leaves` returned.

  Raises:
    ValueError: if the leaves are those of another tree.
  """
  old, structure = jax.tree.flatten(template)
  new = [
    jax.random.wrap_key_data(jnp.array(leaf), impl=jax.random.key_impl(like))
    if _is_key(like)
    else jnp.array(leaf)
    for like, leaf in zip(old, leaves, strict=True)
  ]
  for like, leaf in zip(old, new, strict=True):
    if (like.shape, like.dtype) != (leaf.shape, leaf.dtype):
      raise ValueError(
        f'{leaf.dtype} {leaf.shape} cannot take the place of '
        f'{like.dtype} {like.shape}: the arrays are those of another agent.'
      )
  restored: Tree = jax.tree.unflatten(structure, new)
  return restored


def _is_key(leaf: Any) -> bool:
  return isinstance(leaf, jax.Array) and jnp.issubdtype(
    leaf.dtype, jax.dtypes.prng_key
  )
