"""Counts the operations of a traced function, including repeated loops.

Compilers count the body of a loop once. The trace states how often it runs.
"""

import math
from typing import Any

from jax.interpreters import partial_eval

from bt_acme.core import jaxprs


def flops(jaxpr: Any) -> int:
  """Returns the flops of products and convolutions, including additions.

  Equations whose results are not used do not count, as compilers remove them.
  """
  used = [True] * len(jaxpr.outvars)
  jaxpr, _ = partial_eval.dce_jaxpr(jaxpr, used)
  return sum(times * _flops(eqn) for eqn, times in jaxprs.equations(jaxpr))


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
