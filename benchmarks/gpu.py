r"""The learner and batched inference on an accelerator: the core alone.

Needs no Acme, no Reverb, and runs on the newest JAX:

  .venv-core/bin/python -m benchmarks.gpu
  .venv-core/bin/python -m benchmarks.gpu --scale=tiny  # Does it run at all?

A learner step is the paper's, on 64 sequences of 160 steps: stacking, online
and target unroll, Q(lambda), gradients, clipping, Adam, priorities. Shares are
the times of its parts alone, at the same shapes, over the time of a step. A
batch's transfer overlaps with the step before it, as in a learner.

An inference call is `inference.InferenceServer`'s, which `--inference=server`
runs: it takes the newest frames of 256 games from the host, in the groups in
which actors send them, and returns their actions, of NGU's policy, and the
features of its embedding (each game has its own parameters) and RND networks,
or the rewards made of them with all games' memories on the device.
"""

import argparse
import dataclasses
import functools
import json
import pathlib
import statistics
import time
from typing import Any, Callable, List, NamedTuple, Optional

import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np

from benchmarks import harness
from bt_acme import assembly, learner_assembly
from bt_acme import config as config_lib
from bt_acme.acting import policy as policy_lib
from bt_acme.config import run as run_config
from bt_acme.core import frame_stacking, types
from bt_acme.core import learner_core as learner_core_lib
from bt_acme.core import lstm as lstm_lib
from bt_acme.core import networks as networks_lib

_SIDE, _STACKED, _ACTIONS = 84, 4, 18
_SHAPE = (_SIDE, _SIDE, _STACKED)


class Scale(NamedTuple):
  """Sizes and lengths of a run."""

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


def ale_frames(num: int) -> Optional[np.ndarray]:
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
  # The nearest pixels: how an image was shrunk makes no difference here.
  pick = np.ix_(
    np.linspace(0, rows - 1, _SIDE).astype(int),
    np.linspace(0, columns - 1, _SIDE).astype(int),
  )
  frames = np.empty((num, _SIDE, _SIDE), np.uint8)
  for i in range(num):
    for _ in range(4):
      ale.act(actions[rng.integers(len(actions))])
    if ale.game_over():
      ale.reset_game()
    frames[i] = ale.getScreenGrayscale()[pick]
  return frames


def make_batch(scale: Scale, frames: np.ndarray, seed: int) -> Any:
  """B sequences of T steps, on the host."""
  rng = np.random.default_rng(seed)
  length, batch_size = scale.length, scale.batch_size
  starts = rng.integers(len(frames) - length - _STACKED, size=batch_size)
  rows = np.arange(_STACKED + length)[:, None] + starts  # [S + T, B]

  def choices() -> np.ndarray:
    return rng.integers(_ACTIONS, size=(length, batch_size), dtype=np.int32)

  ones = np.ones((length, batch_size), np.float32)
  state: Any = np.zeros((batch_size, 512), np.float32)
  actions = choices()
  return types.SequenceBatch(
    frames=frames[rows][..., None],
    prev_action=np.zeros((length + 1, batch_size), np.int32),
    prev_reward=np.zeros((length + 1, batch_size), np.float32),
    action=actions,
    choice=actions,
    source=np.zeros((length, batch_size), np.uint8),
    probability=ones,
    reward=ones,
    discount=ones,
    valid=ones,
    recurrent_state=types.LSTMState(state, state),
  )


def median_seconds(call: Callable[[], Any], scale: Scale) -> float:
  """Of one call, over rounds; the first compiles and is not counted."""
  call()
  return statistics.median(
    harness.seconds_per_call(call, scale.seconds) for _ in range(scale.rounds)
  )


def _torso_call(dtype: str, scale: Scale, observations: jax.Array) -> Any:
  """The torso's share: forward and backward online, forward of the target."""
  torso: Any = hk.without_apply_rng(
    hk.transform(
      functools.partial(
        networks_lib.torso,
        kind='nature',
        output_size=512,
        dtype=getattr(jnp, dtype),
      )
    )
  )
  flat = observations.reshape(-1, *_SHAPE)
  params = torso.init(jax.random.key(0), flat[:1])
  return _forward_backward(torso.apply, params, flat)


def _lstm_call(scale: Scale) -> Any:
  """The LSTM's share, likewise."""

  def unroll(inputs: jax.Array) -> jax.Array:
    zeros = jnp.zeros([inputs.shape[1], 512], jnp.float32)
    return lstm_lib.LSTM(512)(inputs, types.LSTMState(zeros, zeros))[0]

  lstm: Any = hk.without_apply_rng(hk.transform(unroll))
  inputs = jnp.ones(
    [scale.length + 1, scale.batch_size, 512 + _ACTIONS + 1], jnp.float32
  )
  params = lstm.init(jax.random.key(0), inputs)
  return _forward_backward(lstm.apply, params, inputs)


def _forward_backward(apply: Any, params: Any, inputs: Any) -> Any:
  def both(params: Any, target: Any, inputs: Any) -> Any:
    grads = jax.grad(lambda p: jnp.sum(apply(p, inputs) ** 2))(params)
    return grads, jnp.sum(apply(target, inputs))

  # Of other values, or the target's pass would be the online one's.
  target = jax.tree.map(lambda x: x + 1e-3, params)
  step = jax.jit(both)
  return lambda: jax.block_until_ready(step(params, target, inputs))


def learner_rows(
  scale: Scale, frames: np.ndarray, torso_dtype: str
) -> List[harness.Row]:
  """Updates a second, and where a step's time goes."""
  config = config_lib.R2D2Config(
    network=config_lib.NetworkConfig(torso_dtype=torso_dtype),
    replay=config_lib.ReplayConfig(
      trace_length=scale.length, sequence_period=scale.length // 2
    ),
    learner=config_lib.LearnerConfig(batch_size=scale.batch_size),
  )
  network = networks_lib.make_q_network(config.network, _SHAPE, _ACTIONS)
  core = learner_core_lib.make_learner_core(
    network, config.learner, config.replay, num_stacked=_STACKED
  )
  step = jax.jit(core.step, donate_argnums=0)
  probabilities = jnp.ones([scale.batch_size], jnp.float32)
  hosts = [make_batch(scale, frames, seed) for seed in range(2)]
  on_device = jax.device_put(hosts[0])
  # A list: the step gives the state's memory away and takes it back.
  state = [core.init(jax.random.key(0))]

  def resident() -> None:
    state[0], priorities, _ = step(state[0], on_device, probabilities)
    priorities.block_until_ready()

  waiting = [on_device]
  turn = [0]

  def fed() -> None:
    state[0], priorities, _ = step(state[0], waiting[0], probabilities)
    turn[0] += 1
    waiting[0] = jax.device_put(hosts[turn[0] % 2])
    priorities.block_until_ready()

  def transfer() -> None:
    jax.block_until_ready(jax.device_put(hosts[1]))

  observations = frame_stacking.stack_frames(on_device.frames, _STACKED)
  seconds = {
    'step': median_seconds(resident, scale),
    'fed': median_seconds(fed, scale),
    'transfer': median_seconds(transfer, scale),
    'torso': median_seconds(
      _torso_call(torso_dtype, scale, observations), scale
    ),
    'lstm': median_seconds(_lstm_call(scale), scale),
  }
  shape = f'{scale.batch_size} x {scale.length}, {torso_dtype} torso'
  share = {name: value / seconds['step'] for name, value in seconds.items()}
  note = (
    f'{1e3 * seconds["step"]:.3g} ms with the batch on the device; alone, '
    f'torso {share["torso"]:.0%}, LSTM {share["lstm"]:.0%}, '
    f'transfer {share["transfer"]:.0%} of that'
  )
  return [
    harness.Row(
      f'learner-gpu {shape}',
      'updates/s',
      1 / seconds['fed'],
      rounds=scale.rounds,
      note=note,
    )
  ]


def _answer_call(
  scale: Scale, frames: np.ndarray, *, rewards: bool
) -> Callable[[], Any]:
  """The server's answer to all games, from frames on the host to actions."""
  config = config_lib.NGUConfig(
    intrinsic=config_lib.IntrinsicConfig(memory_capacity=scale.memories)
  )
  agent = assembly.Agent(
    config, assembly.EnvironmentSpec('game', _SHAPE, _STACKED, _ACTIONS)
  )
  size = run_config.RunConfig(inference='server').group_size
  server = policy_lib.InferenceServer(
    agent,
    epsilons=np.full(scale.games, 0.1),
    seed=0,
    group_size=size,
    rewards=rewards,
  )
  state = learner_assembly.make_learner_core(agent).init(jax.random.key(0))
  server.update_variables(
    assembly.Variables(state.params, state.intrinsic_params)
  )
  never = np.zeros(size, bool)
  inputs = policy_lib.PolicyInput(
    observation=(),
    prev_action=np.zeros(size, np.int32),
    prev_reward=np.zeros(size, np.float32),
    is_first=never,
    is_last=never,
    feeds=(),
  )
  requests = [
    policy_lib.Request(
      group, frames[group * size : (group + 1) * size, ..., None], inputs, None
    )
    for group in range(scale.games // size)
  ]

  def call() -> Any:
    server.answer(requests)
    return [request.answer for request in requests]

  return call


def inference_rows(scale: Scale, frames: np.ndarray) -> List[harness.Row]:
  """Calls a second, of all games at once."""
  rows = []
  for name, rewards in (
    ('features', False),
    (f'rewards, memories of {scale.memories:,}', True),
  ):
    call = _answer_call(scale, frames, rewards=rewards)
    seconds = median_seconds(call, scale)
    rows.append(
      harness.Row(
        f'inference-gpu {scale.games} games, {name}',
        'calls/s',
        1 / seconds,
        rounds=scale.rounds,
        note=f'{scale.games / seconds:,.0f} games/s',
      )
    )
  return rows


def main() -> None:
  parser = argparse.ArgumentParser(prog='python -m benchmarks.gpu')
  parser.add_argument('--scale', choices=list(SCALES), default='paper')
  parser.add_argument('--json', type=pathlib.Path, help='write results there')
  options = parser.parse_args()
  scale = SCALES[options.scale]
  start = time.monotonic()
  frames = ale_frames(2 * (scale.length + scale.games))
  if frames is None:
    print('ale-py is not installed: random frames instead of a game.')
    frames = np.random.default_rng(0).integers(
      256, size=(2 * (scale.length + scale.games), _SIDE, _SIDE), dtype=np.uint8
    )
  rows = [
    *learner_rows(scale, frames, 'float32'),
    *learner_rows(scale, frames, 'bfloat16'),
    *inference_rows(scale, frames),
  ]
  plain = [dataclasses.asdict(row) for row in rows]
  device = jax.devices()[0].device_kind
  print(f'{device}, JAX {jax.__version__}, scale {options.scale}')
  print(harness.table(plain))
  print(f'{time.monotonic() - start:.0f} s')
  if options.json:
    machine = {**harness.machine(), 'device': device, 'jax': jax.__version__}
    options.json.write_text(
      json.dumps({'machine': machine, 'rows': plain}, indent=1) + '\n'
    )


if __name__ == '__main__':
  main()
