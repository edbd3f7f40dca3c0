"""The memory that a full replay will take, before anything is started."""

import os
import pathlib
from typing import NamedTuple

import numpy as np

from bt_acme import config as config_lib
from bt_acme.replay import blocks, fields

# Frames of ten Atari games, played at random, shrink 35 to 245 times. A trained
# policy moves more, so the plan is for half of the least of these.
_FRAME_COMPRESSION = 17
# Plain sequences of stacks of four such games shrink 4.7 to 14 times.
_TENSOR_COMPRESSION = 2
# Bytes of a step that are not frames, compressed; of an item in the server.
_STEP_BYTES = 16
_ITEM_BYTES = 1024

_CONTROL_GROUPS = pathlib.Path('/sys/fs/cgroup')
_OWN_GROUPS = pathlib.Path('/proc/self/cgroup')


def size_in_words(num_bytes: int) -> str:
  """Returns a number of bytes as people read it."""
  unit, name = (1e9, 'GB') if num_bytes >= 1e9 else (1e6, 'MB')
  return f'{num_bytes / unit:,.1f} {name}'


class MemoryEstimate(NamedTuple):
  """What a full replay will take, in bytes.

  Attributes:
    raw: the size of the uncompressed steps, each stored once where the codec is
      `blocks`. It is exact where sequences overlap as within long episodes.
    compressed: a cautious guess from Atari frames. Other observations may
      compress better or worse.
  """

  raw: int
  compressed: int

  def __str__(self) -> str:
    raw, compressed = map(size_in_words, self)
    return (
      f'A full replay holds {raw} of steps, compressed to about {compressed} '
      '(a guess from Atari frames).'
    )


def estimate(
  config: config_lib.ReplayConfig, shapes: fields.ReplayShapes
) -> MemoryEstimate:
  """Estimates the memory of a replay of `max_replay_size` sequences."""
  if config.codec == 'tensors':
    return _estimate_tensors(config, shapes)
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


def _estimate_tensors(
  config: config_lib.ReplayConfig, shapes: fields.ReplayShapes
) -> MemoryEstimate:
  # Rows of whole stacks, of every other field, and of `start_of_episode`.
  height, width, channels = shapes.frame
  row = height * width * channels * shapes.num_stacked + 1
  for field in fields.FIELDS:
    if field.rows is not fields.Rows.FRAMES:
      row += np.dtype(field.dtype).itemsize
  sequence = (config.trace_length + 1) * row + 2 * 4 * shapes.lstm_size
  return MemoryEstimate(
    raw=config.max_replay_size * sequence,
    compressed=config.max_replay_size
    * (sequence // _TENSOR_COMPRESSION + _ITEM_BYTES),
  )


def available_memory(
  control_groups: pathlib.Path = _CONTROL_GROUPS,
  own_groups: pathlib.Path = _OWN_GROUPS,
) -> int:
  """Returns the number of bytes that this process may use.

  That is the machine's memory, or the least limit of the control groups that
  the process is in.

  Args:
    control_groups: where the kernel shows all groups, of version 2 and 1.
    own_groups: where the kernel lists the groups of this process.
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
    # A container may list the group's path on its host, which does not exist
    # inside. What holds inside is the limit at the root.
    for file in (folder / name for folder in (own, *own.parents)):
      text = file.read_text().strip() if file.exists() else 'max'
      limits += [] if text == 'max' else [int(text)]
  return min(limits)
