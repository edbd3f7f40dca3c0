"""Reference of partial and full initialization, module by module."""

import numpy as np


def transfer(source, fresh, *, init, extra_init):
  """Copies the weights that `source` and `fresh` share."""
  result = {}
  for module, values in fresh.items():
    result[module] = {}
    for name, value in values.items():
      start = np.array(value, np.float64)
      if not module.startswith('head/'):
        start = np.asarray(source[module][name], np.float64)
      elif init == 'full':
        copied = np.asarray(source[module][name], np.float64)
        width = copied.shape[-1]
        start[..., :width] = copied
        for extra in range(width, start.shape[-1]):
          if extra_init == 'mean':
            start[..., extra] = copied.sum(axis=-1) / width
      result[module][name] = start
  return result
