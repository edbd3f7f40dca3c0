"""The operations of traced functions, including those of nested functions."""

from collections.abc import Iterator
from typing import Any

import jax


def equations(jaxpr: Any, times: int = 1) -> Iterator[tuple[Any, int]]:
  """Yields all equations of a trace and how often each one is evaluated.

  The body of a loop without a known number of iterations counts once, and all
  branches of a conditional count. Of a function with one version for CPUs and
  one for all other platforms, only the latter counts.

  Args:
    jaxpr: the trace, `jax.jit(f).trace(...).jaxpr.jaxpr` or a part of it.
    times: how often this part is evaluated.
  """
  for equation in jaxpr.eqns:
    yield equation, times
    inner = times * equation.params.get('length', 1)
    values = list(equation.params.values())
    if equation.params.get('branches_platforms'):
      # The last branch is for accelerators.
      values = [equation.params['branches'][-1]]
    leaves = jax.tree.leaves(
      values,
      is_leaf=lambda x: hasattr(x, 'eqns') or hasattr(x, 'jaxpr'),
    )
    for leaf in leaves:
      part = getattr(leaf, 'jaxpr', leaf)
      if hasattr(part, 'eqns'):
        yield from equations(part, inner)
