"""Data-parallel learner step over several devices.

The batch is split across the devices, and each device holds the whole state.
XLA combines the results of all devices wherever the step computes a sum, mean
or maximum over the batch. The update therefore equals the update of a single
device, except for the order in which floats are summed.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from bt_acme import config as config_lib
from bt_acme.core import types

_BATCH = 'batch'  # The only axis of the mesh.


class Shardings(NamedTuple):
  """Shardings of the arrays of a learner step.

  Attributes:
    state: the sharding of the LearnerState and the metrics, replicated on each
      device.
    batch: a SequenceBatch of shardings, each split along B.
    per_sequence: the sharding of probabilities and priorities [B], split
      along B.
  """

  state: jax.sharding.NamedSharding
  batch: types.SequenceBatch
  per_sequence: jax.sharding.NamedSharding


def make_shardings(
  learner: config_lib.LearnerConfig,
  devices: Sequence[jax.Device] | None = None,
) -> Shardings:
  """Creates shardings over the first `num_devices` devices.

  Args:
    learner: the settings of the learner.
    devices: the available devices; None for the local devices of this process.

  Returns:
    The shardings of the learner's arrays.

  Raises:
    ValueError: if this process has fewer devices, or if a batch cannot be split
      evenly across them.
  """
  devices = jax.local_devices() if devices is None else devices
  num_devices = learner.num_devices or len(devices)
  if num_devices > len(devices):
    raise ValueError(
      f'num_devices={num_devices} exceeds the number of '
      f'{devices[0].platform!r} devices, {len(devices)}. Choose at most '
      f'{len(devices)}, or 0 to use all devices.'
    )
  dataclasses.replace(learner, num_devices=num_devices)  # Checks batch_size.
  mesh = jax.sharding.Mesh(np.array(devices[:num_devices]), (_BATCH,))
  spec: Any = jax.sharding.PartitionSpec
  state, per_sequence, per_step = (
    jax.sharding.NamedSharding(mesh, spec(*axes))
    for axes in ((), (_BATCH,), (None, _BATCH))
  )
  fields: Any = dict.fromkeys(types.SequenceBatch._fields, per_step)
  fields['recurrent_state'] = per_sequence  # This field has no time axis.
  return Shardings(state, types.SequenceBatch(**fields), per_sequence)


def jit_step(
  step: Callable[..., Any], shardings: Shardings
) -> Callable[..., Any]:
  """Compiles `LearnerCore.step`; each call donates the state argument."""
  return jax.jit(
    step,
    in_shardings=(shardings.state, shardings.batch, shardings.per_sequence),
    out_shardings=(shardings.state, shardings.per_sequence, shardings.state),
    donate_argnums=0,
  )
