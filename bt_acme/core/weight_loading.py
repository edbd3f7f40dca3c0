"""Initializes a network with the weights of another, or narrows its head.

Source: Campos et al. 2021 (arXiv:2102.13515), Sec. 5. *Partial* initialization
loads torso and LSTM; *full* initialization also loads the dueling head. The
paper's fine-tuning is full initialization without behavior transfer.
"""

from collections.abc import Mapping

import jax
import jax.numpy as jnp

from bt_acme.config import checks
from bt_acme.core import leaves, types

ADVANTAGE_OUTPUT = 'head/advantage/~/linear_1'


def transfer(
  source: types.Params,
  fresh: types.Params,
  *,
  init: str,
  extra_init: str = 'fresh',
) -> types.Params:
  """Loads the parameters of a pre-trained network into a new network.

  With extra actions, the advantage stream has A + K outputs instead of the
  source's A. The source's columns are copied. The paper does not specify how
  the new columns are initialized.

  Args:
    source: the parameters of the pre-trained Q-network.
    fresh: newly initialized parameters of the new network.
    init: `partial` (torso and LSTM) or `full` (everything).
    extra_init: `fresh` leaves the new columns unchanged; `mean` sets them to
      the mean of the copied columns, so that the Q-values of all primitive
      actions equal the source's exactly, and each extra action has the value
      V(s).

  Returns:
    Parameters with the structure and shapes of `fresh`.

  Raises:
    ValueError: if `init` or `extra_init` is unknown, or if shapes differ.
  """
  checks.check_value('init', init, checks.choice('partial', 'full'))
  checks.check_value('extra_init', extra_init, checks.choice('fresh', 'mean'))
  if init == 'full':
    output = _widen(
      source[ADVANTAGE_OUTPUT], fresh[ADVANTAGE_OUTPUT], extra_init
    )
    result = {**source, ADVANTAGE_OUTPUT: output}
  else:
    head = {m: x for m, x in fresh.items() if m.startswith('head/')}
    result = {**source, **head}
  differences = leaves.mismatches(result, fresh)
  if differences:
    raise ValueError(
      f'init={init!r} needs the same architecture: {differences}.'
    )
  return {module: dict(result[module]) for module in fresh}


def without_extra_actions(
  params: types.Params, num_actions: int
) -> types.Params:
  """Removes the outputs of extra actions from a Q-network.

  The dueling head subtracts the mean advantage over all outputs. Without the
  extra actions, the values of all primitive actions change by the same amount,
  so that their order stays the same.

  Args:
    params: parameters of a Q-network with A or more outputs.
    num_actions: A, the number of actions.

  Returns:
    Parameters of the Q-network with A outputs.
  """
  output = params[ADVANTAGE_OUTPUT]
  output = jax.tree.map(lambda x: x[..., :num_actions], output)
  return {**params, ADVANTAGE_OUTPUT: output}


def _widen(
  source: Mapping[str, jax.Array],
  fresh: Mapping[str, jax.Array],
  extra_init: str,
) -> dict[str, jax.Array]:
  """Adds outputs for the extra actions to the last advantage layer.

  Args:
    source: weights `w` [H, A] and biases `b` [A].
    fresh: weights and biases of A + K outputs.
    extra_init: `fresh` or `mean`.

  Returns:
    Weights [H, A + K] and biases [A + K]; the source's own if K is 0 or if H
    differs.
  """
  num_actions = source['b'].shape[0]
  num_extra = fresh['b'].shape[0] - num_actions
  if num_extra <= 0 or source['w'].shape[0] != fresh['w'].shape[0]:
    return dict(source)
  output = {}
  for name, value in source.items():
    if extra_init == 'mean':
      mean = jnp.mean(value, axis=-1, keepdims=True)
      columns = jnp.repeat(mean, num_extra, axis=-1)
    else:
      columns = fresh[name][..., num_actions:]
    output[name] = jnp.concatenate([value, columns], axis=-1)
  return output
