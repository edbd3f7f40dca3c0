"""Starting a network from another one's weights.

Source: Campos et al. 2021 (arXiv:2102.13515), Sec. 5: *partial* loads torso and
LSTM, *full* the dueling head too. Fine-tuning is full without behavior
transfer.
"""

from typing import Any, Dict, List

import jax
import jax.numpy as jnp

from bt_acme.core import types

_HEAD = 'head'
_ADVANTAGE_OUTPUT = 'head/advantage/~/linear_1'


def _mismatches(source: Any, target: Any) -> List[str]:
  mismatches = []
  for module in sorted(set(source) | set(target)):
    names = set(source.get(module, {})) | set(target.get(module, {}))
    for name in sorted(names):
      shapes = [
        tuple(params[module][name].shape)
        if name in params.get(module, {})
        else None
        for params in (source, target)
      ]
      if shapes[0] != shapes[1]:
        mismatches.append(
          f'{module}/{name} is {shapes[0]} there and {shapes[1]} here'
        )
  return mismatches


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
  mismatches = _mismatches(result, fresh)
  if mismatches:
    raise ValueError(
      f'init={init!r} needs the same architecture: {"; ".join(mismatches)}.'
    )
  return {module: result[module] for module in fresh}
