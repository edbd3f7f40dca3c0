"""Hardware limits, measured in the process of the benchmark.

Emulation is raw ALE: four calls of `act` without reading the screen. Arithmetic
is counted in FLOP (2 per multiply-add) and divided by the speed of large matrix
products in XLA on the cores of the process. Bytes are divided by the speed of a
copy.
"""

import itertools
import timeit
from collections.abc import Callable
from typing import Any

import ale_py
import jax
import jax.numpy as jnp
import numpy as np
from ale_py import roms

from benchmarks import harness

# Forward pass of one frame: three convolutions on 84x84x4, a layer 3136-512,
# LSTM 512, dueling head 512 + 512, A = 18.
POLICY_FLOP = 24.0e6
# The same plus NGU's embedding of the stack and two RND networks on a frame.
NGU_FLOP = 62.4e6
# One frame in a learner step: target forward, online forward and backward,
# without the gradient of the first convolution's input.
LEARNER_FLOP = 89.3e6


def emulator(game: str, seed: int = 0) -> ale_py.ALEInterface:
  """Loads a game without repeated actions."""
  ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
  ale = ale_py.ALEInterface()
  ale.setFloat('repeat_action_probability', 0.0)
  ale.setInt('random_seed', seed)
  ale.loadROM(str(roms.get_rom_path(game)))
  return ale


def emulation_seconds(game: str) -> float:
  """Measures the seconds per agent step: four frames without the screen."""
  ale = emulator(game)
  actions = ale.getLegalActionSet()
  chosen = np.random.default_rng(0).integers(len(actions), size=1 << 16)
  endless = itertools.cycle([actions[i] for i in chosen])

  def step() -> None:
    action = next(endless)
    for _ in range(4):
      ale.act(action)
    if ale.game_over():
      ale.reset_game()

  return harness.timed(step, share=0.5)()


def _fastest_seconds(call: Callable[[], Any]) -> float:
  """Measures the fastest of five calls after a warm-up call, in seconds."""
  call()
  return min(timeit.repeat(call, timer=harness.clock, repeat=5, number=1))


def flops() -> float:
  """Measures the FLOP/s of products of float32 matrices of 2048 x 2048."""
  size = 2048
  x = jnp.ones([size, size], jnp.float32)
  product = jax.jit(jnp.matmul)
  seconds = _fastest_seconds(lambda: product(x, x).block_until_ready())
  return 2 * size**3 / seconds


def copy_bytes_per_second() -> float:
  """Measures the speed of copying 256 MB with one thread."""
  source = np.ones(1 << 28, np.uint8)
  target = np.empty_like(source)
  return len(source) / _fastest_seconds(lambda: np.copyto(target, source))
