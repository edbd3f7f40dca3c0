"""The learner's step on an accelerator, and what its parts take of it."""

import functools
from typing import Any, Callable, Dict, List

import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np

from benchmarks import accelerator, harness
from bt_acme import config as config_lib
from bt_acme.core import frame_stacking, types
from bt_acme.core import learner_core as learner_core_lib
from bt_acme.core import lstm as lstm_lib
from bt_acme.core import networks as networks_lib

_ACTIONS = accelerator.ACTIONS


def _make_batch(
  scale: accelerator.Scale, frames: np.ndarray, seed: int
) -> types.SequenceBatch:
  """B sequences of T steps, on the host."""
  rng = np.random.default_rng(seed)
  length, batch_size = scale.length, scale.batch_size
  stacked = accelerator.STACKED
  starts = rng.integers(len(frames) - length - stacked, size=batch_size)
  rows = np.arange(stacked + length)[:, None] + starts  # [S + T, B]
  actions = rng.integers(_ACTIONS, size=(length, batch_size), dtype=np.int32)
  ones = np.ones((length, batch_size), np.float32)
  state: Any = np.zeros((batch_size, 512), np.float32)
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


def _forward_backward(apply: Any, params: Any, inputs: Any) -> Any:
  """Forward and backward online, and forward of the target; ready to call."""

  def both(params: Any, target: Any, inputs: Any) -> Any:
    grads = jax.grad(lambda p: jnp.sum(apply(p, inputs) ** 2))(params)
    return grads, jnp.sum(apply(target, inputs))

  # With equal parameters, XLA would compute the two forward passes as one.
  target = jax.tree.map(lambda x: x + 1e-3, params)
  step = jax.jit(both)
  return lambda: jax.block_until_ready(step(params, target, inputs))


def _torso_call(dtype: str, observations: jax.Array) -> Any:
  """The torso's part of a step."""
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
  flat = observations.reshape(-1, *accelerator.SHAPE)
  params = torso.init(jax.random.key(0), flat[:1])
  return _forward_backward(torso.apply, params, flat)


def _lstm_call(scale: accelerator.Scale) -> Any:
  """The LSTM's part of a step."""

  def unroll(inputs: jax.Array) -> jax.Array:
    zeros = jnp.zeros([inputs.shape[1], 512], jnp.float32)
    return lstm_lib.LSTM(512)(inputs, types.LSTMState(zeros, zeros))[0]

  lstm: Any = hk.without_apply_rng(hk.transform(unroll))
  inputs = jnp.ones(
    [scale.length + 1, scale.batch_size, 512 + _ACTIONS + 1], jnp.float32
  )
  params = lstm.init(jax.random.key(0), inputs)
  return _forward_backward(lstm.apply, params, inputs)


class _Stepper:
  """A learner core that takes steps on two batches of the host."""

  def __init__(
    self, core: Any, hosts: List[types.SequenceBatch], batch_size: int
  ):
    self._step = jax.jit(core.step, donate_argnums=0)
    self._state = core.init(jax.random.key(0))
    self._probabilities = jnp.ones([batch_size], jnp.float32)
    self._hosts = hosts
    self._waiting = self.on_device = jax.device_put(hosts[0])
    self._turn = 0

  def resident(self) -> None:
    """A step on a batch that is on the device."""
    self._take_step(self.on_device).block_until_ready()

  def fed(self) -> None:
    """A step during which the next batch is transferred."""
    priorities = self._take_step(self._waiting)
    self._turn += 1
    self._waiting = jax.device_put(self._hosts[self._turn % 2])
    priorities.block_until_ready()

  def transfer(self) -> None:
    """The transfer of a batch."""
    jax.block_until_ready(jax.device_put(self._hosts[1]))

  def _take_step(self, batch: types.SequenceBatch) -> Any:
    self._state, priorities, _ = self._step(
      self._state, batch, self._probabilities
    )
    return priorities


def _calls(
  scale: accelerator.Scale, frames: np.ndarray, torso_dtype: str
) -> Dict[str, Callable[[], Any]]:
  """A step, and its parts alone."""
  config = config_lib.R2D2Config(
    network=config_lib.NetworkConfig(torso_dtype=torso_dtype),
    replay=config_lib.ReplayConfig(
      trace_length=scale.length, sequence_period=scale.length // 2
    ),
    learner=config_lib.LearnerConfig(batch_size=scale.batch_size),
  )
  network = networks_lib.make_q_network(
    config.network, accelerator.SHAPE, _ACTIONS
  )
  core = learner_core_lib.make_learner_core(
    network, config.learner, config.replay, num_stacked=accelerator.STACKED
  )
  hosts = [_make_batch(scale, frames, seed) for seed in range(2)]
  stepper = _Stepper(core, hosts, scale.batch_size)
  observations = frame_stacking.stack_frames(
    stepper.on_device.frames, accelerator.STACKED
  )
  return {
    'step': stepper.resident,
    'fed': stepper.fed,
    'transfer': stepper.transfer,
    'torso': _torso_call(torso_dtype, observations),
    'lstm': _lstm_call(scale),
  }


def learner_rows(
  scale: accelerator.Scale, frames: np.ndarray, torso_dtype: str
) -> List[harness.Row]:
  """Updates a second, and where the time of a step goes."""
  seconds = {
    name: accelerator.median_seconds(call, scale)
    for name, call in _calls(scale, frames, torso_dtype).items()
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
