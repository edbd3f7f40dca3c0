"""Conversion between a tree of arrays and a list of NumPy arrays."""

from typing import Any, List, Sequence, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

Tree = TypeVar('Tree')


def tree_leaves(tree: Any) -> List[np.ndarray[Any, Any]]:
  """Copies the leaves of a tree; random keys are replaced by their key data."""
  # A view would change once its buffer is donated to a jitted function.
  return [
    np.array(jax.random.key_data(leaf) if _is_key(leaf) else leaf)
    for leaf in jax.tree.leaves(tree)
  ]


def restore_leaves(template: Tree, leaves: Sequence[Any]) -> Tree:
  """Restores a tree of JAX arrays from its leaves.

  Args:
    template: a tree with the structure, shapes and dtypes of the original tree.
    leaves: the result of `tree_leaves` for the original tree.

  Returns:
    The restored tree.

  Raises:
    ValueError: if the leaves do not match the template.
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
        f'Expected an array of {like.dtype} {like.shape}, got {leaf.dtype} '
        f'{leaf.shape}. Use the arrays of an agent with the same architecture.'
      )
  restored: Tree = jax.tree.unflatten(structure, new)
  return restored


def _is_key(leaf: Any) -> bool:
  return isinstance(leaf, jax.Array) and jnp.issubdtype(
    leaf.dtype, jax.dtypes.prng_key
  )
