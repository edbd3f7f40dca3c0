"""Counts the operations of a traced function, including repeated loops.

Compilers count the body of a loop once. The trace states how often it runs.
"""

import math
from typing import Any, Iterator, Tuple

import jax
from jax.interpreters import partial_eval


def equations(jaxpr: Any, times: int = 1) -> Iterator[Tuple[Any, int]]:
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


def flops(jaxpr: Any) -> int:
  """Returns the flops of products and convolutions, including additions.

  Equations whose results are not used do not count, as compilers remove them.
  """
  used = [True] * len(jaxpr.outvars)
  jaxpr, _ = partial_eval.dce_jaxpr(jaxpr, used)
  return sum(times * _flops(eqn) for eqn, times in equations(jaxpr))


def _flops(equation: Any) -> int:
  name, params = equation.primitive.name, equation.params
  if name == 'dot_general':
    ((contracted, _), _) = params['dimension_numbers']
    left = equation.invars[0].aval.shape
    size = math.prod(left[i] for i in contracted)
  elif name == 'conv_general_dilated':
    kernel = equation.invars[1].aval.shape
    spec = params['dimension_numbers'].rhs_spec
    size = math.prod(kernel[i] for i in spec[1:])
    # A dilated input consists mostly of zeros, which are not multiplied.
    size /= math.prod(params['lhs_dilation'])
  else:
    return 0
  return int(2 * size * math.prod(equation.outvars[0].aval.shape))
