"""The learner step over several devices.

The batch is split over the devices, and each device holds the whole state.
Where a sum, mean or maximum of the step goes over the batch, XLA combines the
devices' parts. The update is therefore that of one device, except for the order
in which floats are summed.
"""

import dataclasses
from typing import Any, Callable, NamedTuple, Optional

import jax
import numpy as np

from bt_acme import config as config_lib
from bt_acme.core import types

_BATCH = 'batch'  # The mesh's one axis.


class Shardings(NamedTuple):
  """Where the arrays of a learner step lie.

  Attributes:
    state: the sharding of the LearnerState and the metrics, which are whole on
      each device.
    batch: a SequenceBatch of shardings, each split along B.
    per_sequence: the sharding of probabilities and priorities [B], which are
      split too.
  """

  state: jax.sharding.NamedSharding
  batch: types.SequenceBatch
  per_sequence: jax.sharding.NamedSharding


def make_shardings(learner: config_lib.LearnerConfig) -> Shardings:
  """Spreads the learner over the first `num_devices` devices of this process.

  Args:
    learner: the settings of the learner.

  Returns:
    Where the learner's arrays lie.

  Raises:
    ValueError: if there are fewer devices, or if they cannot share a batch
      evenly.
  """
  devices = jax.local_devices()
  num_devices = learner.num_devices or len(devices)
  if num_devices > len(devices):
    raise ValueError(
      f'num_devices={num_devices}, but the learner has {len(devices)} of kind '
      f'{devices[0].platform!r}: choose at most as many, or 0 for all of them.'
    )
  dataclasses.replace(learner, num_devices=num_devices)  # Checks batch_size.
  mesh = jax.sharding.Mesh(np.array(devices[:num_devices]), (_BATCH,))

  def split(*axes: Optional[str]) -> jax.sharding.NamedSharding:
    spec: Any = jax.sharding.PartitionSpec
    return jax.sharding.NamedSharding(mesh, spec(*axes))

  fields: Any = dict.fromkeys(types.SequenceBatch._fields, split(None, _BATCH))
  fields['recurrent_state'] = split(_BATCH)  # It has no axis of time.
  return Shardings(
    state=split(),
    batch=types.SequenceBatch(**fields),
    per_sequence=split(_BATCH),
  )


def jit_step(
  step: Callable[..., Any], shardings: Shardings
) -> Callable[..., Any]:
  """Compiles `LearnerCore.step`, which then uses up the state it is given."""
  return jax.jit(
    step,
    in_shardings=(shardings.state, shardings.batch, shardings.per_sequence),
    out_shardings=(shardings.state, shardings.per_sequence, shardings.state),
    donate_argnums=0,
  )
