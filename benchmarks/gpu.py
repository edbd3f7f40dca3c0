r"""Measures the learner and batched inference on an accelerator.

Uses only the core, needs neither Acme nor Reverb, and supports the newest JAX:

  .venv-core/bin/python -m benchmarks.gpu
  .venv-core/bin/python -m benchmarks.gpu --scale=tiny  # Only a smoke test.

A learner step is that of the paper, on 64 sequences of 160 steps: frame
stacking, online and target unroll, Q(lambda), gradients, clipping, Adam,
priorities. Shares are the times of single parts, at the same shapes, divided by
the time of a step. Each batch is transferred during the previous step, as in a
learner.

An inference call is a call of the `InferenceServer`, which `--inference=server`
runs. Its inputs are the newest frames of 256 games on the host, in the groups
in which actors send them. Its outputs are the actions of NGU's policy, and
either the features of the embedding (each game has its own parameters) and of
the RND networks, or the rewards computed from these features, with the memories
of all games on the device.
"""

import argparse
import functools
import itertools
import pathlib
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks import accelerated, core_parts, harness
from bt_acme import assembly
from bt_acme import learner as learner_lib
from bt_acme.acting import inference_server as server_lib
from bt_acme.config import run as run_config
from bt_acme.core import frame_stacking
from bt_acme.core import networks as networks_lib
from bt_acme.replay import blocks

_SPEC = core_parts.ATARI


class SizeScale(NamedTuple):
  """The sizes of a benchmark.

  Attributes:
    length: T, the steps of a sequence.
    batch_size: B, the sequences of a batch.
    games: the number of games on the inference server.
    memories: M, the slots of each game's episodic memory.
    rounds: the rounds of every measurement.
    seconds: the duration of a round.
  """

  length: int
  batch_size: int
  games: int
  memories: int
  rounds: int
  seconds: float


SCALES = {
  'paper': SizeScale(160, 64, 256, 30_000, 5, 1.0),
  'tiny': SizeScale(4, 2, 16, 100, 2, 0.1),
}


def _game_frames(num: int) -> np.ndarray:
  """Returns frames of Breakout with random actions, uint8 [num, 84, 84].

  Returns random frames if ale-py is not installed.
  """
  try:
    return core_parts.record('breakout', num).frames()[:num]
  except ImportError:
    print('ale-py is not installed. Using random frames instead of a game.')
    return core_parts.random_frames(num)


def learner_agent(scale: SizeScale, torso_dtype: str) -> assembly.Agent:
  """Returns R2D2 with sequences and batches of a scale."""
  return core_parts.make_agent(
    torso_dtype=torso_dtype,
    trace_length=scale.length,
    sequence_period=scale.length // 2,
    batch_size=scale.batch_size,
  )


def take_step(learner: learner_lib.Learner, sample: blocks.Sample) -> None:
  """Takes a learner step and waits for its results."""
  learner.start(sample)
  learner.finish()


def _learner_row(
  scale: SizeScale, frames: np.ndarray, torso_dtype: str
) -> harness.Row:
  """Measures updates per second and the shares of a step's parts."""
  agent = learner_agent(scale, torso_dtype)
  learner = learner_lib.Learner(agent, jax.random.key(0))
  samples = [core_parts.random_sample(agent, frames, i) for i in range(2)]
  endless = itertools.cycle(samples)
  resident = samples[0]._replace(batch=jax.device_put(samples[0].batch))

  def transfer() -> None:
    jax.block_until_ready(jax.device_put(next(endless).batch))

  def step_while_transferring() -> None:
    learner.start(next(endless))
    if len(learner.pending) > 1:
      learner.finish()

  def seconds(call: Callable[[], Any]) -> float:
    alone = harness.Comparison('', 's', harness.timed(call))
    return harness.measure(alone, scale.rounds)['ours']

  step = seconds(lambda: take_step(learner, resident))
  torso = functools.partial(
    networks_lib.torso,
    kind='nature',
    output_size=core_parts.HIDDEN,
    dtype=getattr(jnp, torso_dtype),
  )
  stacked = frame_stacking.stack_frames(
    resident.batch.frames, _SPEC.num_stacked
  )
  images = stacked.reshape(-1, *_SPEC.observation_shape)
  width = core_parts.HIDDEN + _SPEC.num_actions + 1
  inputs = jnp.ones([scale.length + 1, scale.batch_size, width])
  part = functools.partial(core_parts.forward_backward, as_in_learner=True)
  calls = {
    'torso': part(torso, images),
    'LSTM': part(core_parts.our_lstm, inputs),
    'transfer': transfer,
  }
  shares = [f'{name} {seconds(x) / step:.0%}' for name, x in calls.items()]
  return harness.measure(
    harness.Comparison(
      f'learner-gpu {scale.batch_size} x {scale.length}, {torso_dtype} torso',
      'updates/s',
      harness.timed(step_while_transferring),
      note=f'{1e3 * step:.3g} ms with the batch on the device; single parts: '
      f'{", ".join(shares)} of that',
    ),
    scale.rounds,
  )


def _inference_row(
  scale: SizeScale, frames: np.ndarray, *, rewards: bool
) -> harness.Row:
  """Measures the server's answers, from frames on the host to actions."""
  size = run_config.RunConfig(inference='server').group_size
  agent = core_parts.make_agent(kind='ngu', memory_capacity=scale.memories)
  server = server_lib.InferenceServer(
    agent,
    epsilons=np.full(scale.games, 0.1),
    seed=0,
    group_size=size,
    rewards=rewards,
  )
  server.update_variables(core_parts.fresh_variables(agent))
  shapes, *_ = accelerated.policy_inputs(agent, size)
  inputs = jax.tree.map(lambda x: np.zeros(x.shape, x.dtype), shapes)
  requests = [
    server_lib.InferenceRequest(
      group,
      inputs._replace(
        observation=frames[group * size : (group + 1) * size].reshape(
          inputs.observation.shape
        )
      ),
      None,
    )
    for group in range(scale.games // size)
  ]

  def call() -> list[Any]:
    server.answer(requests)
    return [request.answer for request in requests]

  call()
  server.stop()  # Answers for fewer groups need not be compiled.
  what = f'rewards, memories of {scale.memories:,}' if rewards else 'features'
  name = f'inference-gpu {scale.games} games, {what}'
  comparison = harness.Comparison(name, 'calls/s', harness.timed(call))
  row = harness.measure(comparison, scale.rounds)
  return {**row, 'note': f'{scale.games * row["ours"]:,.0f} games/s'}


def rows(scale: SizeScale) -> Iterator[harness.Row]:
  """Measures the learner and the inference server."""
  frames = _game_frames(2 * (scale.length + scale.games))
  for torso_dtype in ('float32', 'bfloat16'):
    yield _learner_row(scale, frames, torso_dtype)
  for rewards in (False, True):
    yield _inference_row(scale, frames, rewards=rewards)


def main() -> None:
  """Measures all rows and prints a table."""
  parser = argparse.ArgumentParser(prog='python -m benchmarks.gpu')
  parser.add_argument(
    '--scale',
    choices=list(SCALES),
    default='paper',
    help="sizes: the paper's, or tiny ones for a smoke test",
  )
  parser.add_argument(
    '--json', type=pathlib.Path, help='output file for the results'
  )
  options = harness.parse(parser)
  scale = SCALES[options.scale]
  harness.round_seconds = scale.seconds
  start = time.monotonic()
  measured = list(rows(scale))
  device = jax.devices()[0].device_kind
  print(f'{device}, JAX {jax.__version__}, scale {options.scale}')
  print(harness.format_rows(measured))
  print(f'{time.monotonic() - start:.0f} s')
  if options.json:
    machine = {**harness.machine(), 'device': device, 'jax': jax.__version__}
    harness.write_json({'machine': machine, 'rows': measured}, options.json)


if __name__ == '__main__':
  main()
