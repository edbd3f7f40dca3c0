"""Estimates the memory of a full replay before a run starts."""

import os
import pathlib

import numpy as np

from bt_acme.replay import fields

# Frames of ten Atari games with random actions compress 35- to 245-fold. A
# trained policy moves more, so this is half of the smallest of these factors.
_FRAME_COMPRESSION = 17
# Plain sequences of frame stacks of four such games compress 4.7- to 14-fold.
_TENSOR_COMPRESSION = 2
_STEP_BYTES = 16  # Compressed size of a step without frames.
_ITEM_BYTES = 1024  # Overhead of an item in the server.

# All control groups, version 2 or 1, and the list of this process's groups.
_CONTROL_GROUPS = pathlib.Path('/sys/fs/cgroup')
_OWN_GROUPS = pathlib.Path('/proc/self/cgroup')


def size_in_words(num_bytes: int) -> str:
  """Formats a number of bytes in MB or GB."""
  unit, name = (1e9, 'GB') if num_bytes >= 1e9 else (1e6, 'MB')
  return f'{num_bytes / unit:,.1f} {name}'


def estimate(layout: fields.ReplayLayout) -> int:
  """Returns the bytes of a full replay, compressed like Atari frames.

  Overlapping sequences share blocks; those of short episodes share fewer, up to
  none. The compression of frames is assumed to be half of what was measured,
  which covers twice as many blocks. Other observations may compress less.
  """
  config, (height, width, channels) = layout.config, layout.frame
  frame = height * width * channels
  state = 2 * 4 * layout.lstm_size
  if config.codec == 'blocks':
    num_blocks = config.max_replay_size + config.blocks_per_sequence - 1
    step = frame // _FRAME_COMPRESSION + _STEP_BYTES
    return num_blocks * (config.sequence_period * step + state + _ITEM_BYTES)
  # A row has a whole stack, every other field, and `start_of_episode`.
  row = frame * layout.num_stacked + 1
  for field in fields.stored(layout):
    if not field.row_shape:
      row += np.dtype(field.dtype).itemsize
  item = ((config.sequence_length + 1) * row + state) // _TENSOR_COMPRESSION
  return config.max_replay_size * (item + _ITEM_BYTES)


def available_memory() -> int:
  """Returns the number of bytes that this process may use.

  The limit is the memory of the machine or the smallest limit of the control
  groups of the process.
  """
  limits = [os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES')]
  lines = _OWN_GROUPS.read_text().splitlines() if _OWN_GROUPS.exists() else []
  for line in lines:
    _, controllers, path = line.split(':', 2)
    if controllers == '':
      root, name = _CONTROL_GROUPS, 'memory.max'
    elif 'memory' in controllers.split(','):
      root, name = _CONTROL_GROUPS / 'memory', 'memory.limit_in_bytes'
    else:
      continue
    own = root / path.lstrip('/')
    # A container may list the path of the group on the host, which does not
    # exist inside the container. The limit at the root then applies.
    for file in (directory / name for directory in (own, *own.parents)):
      text = file.read_text().strip() if file.exists() else 'max'
      limits += [] if text == 'max' else [int(text)]
  return min(limits)
