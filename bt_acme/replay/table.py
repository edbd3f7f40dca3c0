"""The replay's table in a Reverb server, and the memory that it will take."""

import os
import pathlib
from typing import NamedTuple, Optional

import numpy as np
import reverb
import tree
from acme.adders import reverb as adders

from bt_acme import config as config_lib
from bt_acme.core import types
from bt_acme.replay import blocks, codecs

TABLE = adders.DEFAULT_PRIORITY_TABLE  # Where foreign learners look for it.

# Frames of ten Atari games, played at random, shrink 35 to 245 times; a trained
# policy moves more. Half the least of it is what is planned with.
_FRAME_COMPRESSION = 17
# Plain sequences of stacks of four such games shrink 4.7 to 14 times.
_TENSOR_COMPRESSION = 2
# Bytes of a step that are not frames, compressed; of an item in the server.
_STEP_BYTES = 16
_ITEM_BYTES = 1024
# Of learner, actors, evaluator and coordinator, at the least.
_OTHERS_BYTES = 2 * 10**9

_CONTROL_GROUPS = pathlib.Path('/sys/fs/cgroup')
_OWN_GROUPS = pathlib.Path('/proc/self/cgroup')


def make_table(
  config: config_lib.ReplayConfig,
  shapes: types.ReplayShapes,
  *,
  batch_size: int,
  name: str = TABLE,
) -> reverb.Table:
  """A prioritized table of sequences; the oldest leave first.

  What an item holds is up to `codecs`.

  Args:
    config: of the replay.
    shapes: of what it holds.
    batch_size: of the learner. Actors and learner may be some batches apart
      before one waits for the other: samplers prefetch.
    name: of the table.
  """
  expected_samples = config.samples_per_insert * config.min_replay_size
  error_buffer = max(
    0.1 * expected_samples, 4.0 * batch_size, 2 * config.samples_per_insert
  )
  return reverb.Table(
    name=name,
    sampler=reverb.selectors.Prioritized(config.priority_exponent),
    remover=reverb.selectors.Fifo(),
    max_size=config.max_replay_size,
    rate_limiter=reverb.rate_limiters.SampleToInsertRatio(
      samples_per_insert=config.samples_per_insert,
      min_size_to_sample=config.min_replay_size,
      error_buffer=error_buffer,
    ),
    signature=codecs.make_codec(config, shapes).signature,
  )


def _size(num_bytes: int) -> str:
  unit, name = (1e9, 'GB') if num_bytes >= 1e9 else (1e6, 'MB')
  return f'{num_bytes / unit:.1f} {name}'


class MemoryEstimate(NamedTuple):
  """What a full replay will take, in bytes.

  Attributes:
    raw: of the uncompressed steps, each stored once where the codec is
      `blocks`; exact where sequences overlap as they do within long episodes.
    compressed: a cautious guess from Atari frames. Other observations may
      compress better or worse.
  """

  raw: int
  compressed: int

  def __str__(self) -> str:
    return (
      f'A full replay holds {_size(self.raw)} of steps, compressed to about '
      f'{_size(self.compressed)} (a guess from Atari frames).'
    )


def memory_estimate(
  config: config_lib.ReplayConfig, shapes: types.ReplayShapes
) -> MemoryEstimate:
  """The memory of a replay of `max_replay_size` sequences."""
  if config.codec == 'tensors':
    sequence = sum(
      int(np.prod(spec.shape)) * spec.dtype.size
      for spec in tree.flatten(codecs.make_codec(config, shapes).signature)
    )
    return MemoryEstimate(
      raw=config.max_replay_size * sequence,
      compressed=config.max_replay_size
      * (sequence // _TENSOR_COMPRESSION + _ITEM_BYTES),
    )
  height, width, channels = shapes.frame
  frame = height * width * channels
  state = 2 * 4 * shapes.lstm_size
  num_blocks = config.max_replay_size + config.blocks_per_sequence - 1
  steps = num_blocks * config.sequence_period
  raw_block = blocks.BlockLayout(config, shapes).num_bytes
  return MemoryEstimate(
    raw=num_blocks * (raw_block + state),
    compressed=steps * (frame // _FRAME_COMPRESSION + _STEP_BYTES)
    + num_blocks * (state + _ITEM_BYTES),
  )


def available_memory(
  control_groups: pathlib.Path = _CONTROL_GROUPS,
  own_groups: pathlib.Path = _OWN_GROUPS,
) -> int:
  """Bytes that the machine has, or the least that this process's groups may.

  Args:
    control_groups: where the kernel shows all of them, of version 2 and 1.
    own_groups: where it lists those of this process.
  """
  limits = [os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES')]
  lines = own_groups.read_text().splitlines() if own_groups.exists() else []
  for line in lines:
    _, controllers, path = line.split(':', 2)
    if controllers == '':
      root, name = control_groups, 'memory.max'
    elif 'memory' in controllers.split(','):
      root, name = control_groups / 'memory', 'memory.limit_in_bytes'
    else:
      continue
    own = root / path.lstrip('/')
    # In a container the path may be of outside; what holds there is the root's.
    for file in (folder / name for folder in (own, *own.parents)):
      text = file.read_text().strip() if file.exists() else 'max'
      limits += [] if text == 'max' else [int(text)]
  return min(limits)


def check_memory(
  estimate: MemoryEstimate, memory: Optional[int] = None
) -> None:
  """Refuses a replay that cannot fit beside the run's other processes.

  Args:
    estimate: of the replay.
    memory: bytes that there are; this machine's by default.

  Raises:
    ValueError: if even the compressed replay exceeds what they leave.
  """
  memory = available_memory() if memory is None else memory
  others = min(_OTHERS_BYTES, memory // 2)
  if estimate.compressed > memory - others:
    raise ValueError(
      f'max_replay_size is too large for this machine: a full replay takes '
      f'about {_size(estimate.compressed)} and the other processes '
      f'{_size(others)}, there are {_size(memory)}. Lower max_replay_size; '
      "codec='tensors' takes many times what 'blocks' does."
    )
