"""Sizes, frames and timing of the benchmarks on an accelerator."""

import statistics
from typing import Any, Callable, NamedTuple, Optional

import numpy as np

from benchmarks import harness

SIDE, STACKED, ACTIONS = 84, 4, 18
SHAPE = (SIDE, SIDE, STACKED)


class Scale(NamedTuple):
  """Sizes and lengths of a run.

  Attributes:
    length: T, steps of a sequence.
    batch_size: B, sequences of a batch.
    games: that the inference server acts in.
    memories: M, slots of each game's episodic memory.
    rounds: of every measurement.
    seconds: of a round.
  """

  length: int
  batch_size: int
  games: int
  memories: int
  rounds: int
  seconds: float


SCALES = {
  'paper': Scale(160, 64, 256, 30_000, 5, 2.0),
  'tiny': Scale(4, 2, 16, 100, 2, 0.1),
}


def median_seconds(call: Callable[[], Any], scale: Scale) -> float:
  """Seconds of one call; the first call compiles and is not counted."""
  call()
  return statistics.median(
    harness.seconds_per_call(call, scale.seconds) for _ in range(scale.rounds)
  )


def game_frames(num: int) -> Optional[np.ndarray]:
  """Breakout under random actions, uint8 [num, 84, 84]; None without ale-py."""
  try:
    import ale_py
    from ale_py import roms
  except ImportError:
    return None
  ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
  ale = ale_py.ALEInterface()
  ale.loadROM(str(roms.get_rom_path('breakout')))
  actions = ale.getLegalActionSet()
  rng = np.random.default_rng(0)
  rows, columns = ale.getScreenDims()
  # Nearest pixels will do, because only the size of the images matters here.
  pick = np.ix_(
    np.linspace(0, rows - 1, SIDE).astype(int),
    np.linspace(0, columns - 1, SIDE).astype(int),
  )
  frames = np.empty((num, SIDE, SIDE), np.uint8)
  for i in range(num):
    for _ in range(4):
      ale.act(actions[rng.integers(len(actions))])
    if ale.game_over():
      ale.reset_game()
    frames[i] = ale.getScreenGrayscale()[pick]
  return frames


def random_frames(num: int) -> np.ndarray:
  """Noise, uint8 [num, 84, 84]."""
  return np.random.default_rng(0).integers(
    256, size=(num, SIDE, SIDE), dtype=np.uint8
  )
