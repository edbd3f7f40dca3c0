"""Starting a network from another one's weights.

Source: Campos et al. 2021 (arXiv:2102.13515), Sec. 5: *partial* loads torso and
LSTM, *full* the dueling head too. Fine-tuning is full without behavior
transfer.
"""

from typing import Dict

import jax
import jax.numpy as jnp

from bt_acme.core import types

_HEAD = 'head'
_ADVANTAGE_OUTPUT = 'head/advantage/~/linear_1'
_SHOWN = 4  # Differences that an error lists.


def mismatches(there: types.Params, here: types.Params) -> str:
  """What differs in structure, shapes or dtypes; empty where nothing does.

  Args:
    there: arrays, or their shapes and dtypes.
    here: the same.
  """
  trees = [
    {
      '/'.join(str(key.key) for key in path): leaf
      for path, leaf in jax.tree_util.tree_leaves_with_path(tree)
    }
    for tree in (there, here)
  ]
  found = []
  for name in sorted(set(trees[0]) | set(trees[1])):
    for attribute in ('shape', 'dtype'):
      values = [getattr(tree.get(name), attribute, None) for tree in trees]
      if values[0] != values[1]:
        found.append(f'{name} is {values[0]} there and {values[1]} here')
        break
  more = len(found) - _SHOWN
  return '; '.join(found[:_SHOWN]) + (f'; and {more} more' if more > 0 else '')


def transfer(
  source: types.Params,
  fresh: types.Params,
  *,
  init: str,
  extra_init: str = 'fresh',
) -> types.Params:
  """Parameters to start from.

  With extra actions the advantage stream has A + K outputs where the source has
  A: the source's columns are copied. The paper does not say how the new ones
  start.

  Args:
    source: the pre-trained Q-network's parameters.
    fresh: newly initialized ones of the network to start.
    init: `partial` (torso and LSTM) or `full` (everything).
    extra_init: new columns stay `fresh`, or are the `mean` of those copied:
      then every primitive's Q-value is exactly the source's, and the extra
      action's is V(s).

  Returns:
    Parameters with the structure and shapes of `fresh`.

  Raises:
    ValueError: on an unknown setting, or where shapes differ, naming both.
  """
  if init not in ('partial', 'full'):
    raise ValueError(f"init={init!r} is unknown: choose 'partial' or 'full'.")
  if extra_init not in ('fresh', 'mean'):
    raise ValueError(
      f"extra_init={extra_init!r} is unknown: choose 'fresh' or 'mean'."
    )
  loaded: Dict[str, Dict[str, jax.Array]] = {
    module: dict(values)
    for module, values in source.items()
    if init == 'full' or module.split('/')[0] != _HEAD
  }
  kept = {
    module: dict(values)
    for module, values in fresh.items()
    if init == 'partial' and module.split('/')[0] == _HEAD
  }
  if init == 'full' and _ADVANTAGE_OUTPUT in loaded:
    output = loaded[_ADVANTAGE_OUTPUT]
    new = fresh.get(_ADVANTAGE_OUTPUT, output)
    num_actions = output['b'].shape[0]
    num_extra = new['b'].shape[0] - num_actions
    if num_extra > 0:
      for name, value in output.items():
        if extra_init == 'mean':
          mean = jnp.mean(value, axis=-1, keepdims=True)
          columns = jnp.repeat(mean, num_extra, axis=-1)
        else:
          columns = new[name][..., num_actions:]
        output[name] = jnp.concatenate([value, columns], axis=-1)
  result = {**kept, **loaded}
  differences = mismatches(result, fresh)
  if differences:
    raise ValueError(
      f'init={init!r} needs the same architecture: {differences}.'
    )
  return {module: result[module] for module in fresh}
