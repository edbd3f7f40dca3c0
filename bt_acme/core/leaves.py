"""The leaves of trees of arrays: as lists, by path, and compared."""

from collections.abc import Sequence
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

Tree = TypeVar('Tree')
_SHOWN = 4  # Maximum number of differences listed in an error.


def tree_leaves(tree: Any) -> list[np.ndarray[Any, Any]]:
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
  new = [jnp.array(leaf) for leaf in leaves]
  for i, (like, leaf) in enumerate(zip(old, new, strict=True)):
    data = jax.random.key_data(like) if _is_key(like) else like
    if (data.shape, data.dtype) != (leaf.shape, leaf.dtype):
      raise ValueError(
        f'Expected an array of {data.dtype} {data.shape}, got {leaf.dtype} '
        f'{leaf.shape}. Use the arrays of an agent with the same architecture.'
      )
    if _is_key(like):
      new[i] = jax.random.wrap_key_data(leaf, impl=jax.random.key_impl(like))
  restored: Tree = jax.tree.unflatten(structure, new)
  return restored


def mismatches(actual: Any, expected: Any) -> str:
  """Describes how two trees differ in structure, shapes and dtypes.

  Args:
    actual: arrays, or their shapes and dtypes.
    expected: the expected arrays, or their shapes and dtypes.

  Returns:
    The first differences as text; empty if there are none.
  """
  trees = [by_path(tree) for tree in (actual, expected)]
  found: list[str] = []
  for name in sorted(set(trees[0]) | set(trees[1])):
    for attribute in ('shape', 'dtype'):
      values = [getattr(tree.get(name), attribute, None) for tree in trees]
      if values[0] != values[1]:
        found.append(f'{name} is {values[0]}, expected {values[1]}')
        break
  more = len(found) - _SHOWN
  return '; '.join(found[:_SHOWN]) + (f'; and {more} more' if more > 0 else '')


def by_path(tree: Any, separator: str = '/') -> dict[str, Any]:
  """Returns the leaves of a tree by their paths, such as `agent/head/w`."""
  return {
    jax.tree_util.keystr(path, simple=True, separator=separator): leaf
    for path, leaf in jax.tree_util.tree_leaves_with_path(tree)
  }


def _is_key(leaf: Any) -> bool:
  return isinstance(leaf, jax.Array) and jnp.issubdtype(
    leaf.dtype, jax.dtypes.prng_key
  )
