r"""The learner and batched inference on an accelerator: the core alone.

Needs no Acme and no Reverb, and runs on the newest JAX:

  .venv-core/bin/python -m benchmarks.gpu
  .venv-core/bin/python -m benchmarks.gpu --scale=tiny  # Does it run at all?

A learner step is the paper's, on 64 sequences of 160 steps: stacking, online
and target unroll, Q(lambda), gradients, clipping, Adam, priorities. Shares are
the times of its parts alone, at the same shapes, over the time of a step. A
batch is transferred during the step before it, as in a learner.

An inference call is that of the `InferenceServer` which `--inference=server`
runs. It takes the newest frames of 256 games from the host, in the groups in
which actors send them. It returns the actions of NGU's policy, and either the
features of its embedding (each game has its own parameters) and RND networks,
or the rewards made of them, with all games' memories on the device.
"""

import argparse
import dataclasses
import pathlib
import time

import jax

from benchmarks import (
  accelerator,
  accelerator_inference,
  accelerator_learner,
  tables,
)


def main() -> None:
  parser = argparse.ArgumentParser(prog='python -m benchmarks.gpu')
  parser.add_argument(
    '--scale',
    choices=list(accelerator.SCALES),
    default='paper',
    help="the paper's sizes, or tiny ones to see that it runs",
  )
  parser.add_argument(
    '--json', type=pathlib.Path, help='file that results are written to'
  )
  options = parser.parse_args()
  scale = accelerator.SCALES[options.scale]
  start = time.monotonic()
  num_frames = 2 * (scale.length + scale.games)
  frames = accelerator.game_frames(num_frames)
  if frames is None:
    print('ale-py is not installed: random frames instead of a game.')
    frames = accelerator.random_frames(num_frames)
  rows = [
    *accelerator_learner.learner_rows(scale, frames, 'float32'),
    *accelerator_learner.learner_rows(scale, frames, 'bfloat16'),
    *accelerator_inference.inference_rows(scale, frames),
  ]
  plain = [dataclasses.asdict(row) for row in rows]
  device = jax.devices()[0].device_kind
  print(f'{device}, JAX {jax.__version__}, scale {options.scale}')
  print(tables.format_rows(plain))
  print(f'{time.monotonic() - start:.0f} s')
  if options.json:
    machine = {**tables.machine(), 'device': device, 'jax': jax.__version__}
    tables.write({'machine': machine, 'rows': plain}, options.json)


if __name__ == '__main__':
  main()
