"""Calls of the inference server on an accelerator, for all games at once."""

from typing import Any, Callable, List

import jax
import numpy as np

from benchmarks import accelerator, harness
from bt_acme import assembly, learner_assembly
from bt_acme import config as config_lib
from bt_acme.acting import policy as policy_lib
from bt_acme.acting import server as server_lib
from bt_acme.config import run as run_config


def _make_server(
  scale: accelerator.Scale, group_size: int, *, rewards: bool
) -> server_lib.InferenceServer:
  """The server of NGU's agent, with fresh parameters."""
  config = config_lib.NGUConfig(
    intrinsic=config_lib.IntrinsicConfig(memory_capacity=scale.memories)
  )
  spec = assembly.EnvironmentSpec(
    'game', accelerator.SHAPE, accelerator.STACKED, accelerator.ACTIONS
  )
  agent = assembly.Agent(config, spec)
  server = server_lib.InferenceServer(
    agent,
    epsilons=np.full(scale.games, 0.1),
    seed=0,
    group_size=group_size,
    rewards=rewards,
  )
  state = learner_assembly.make_learner_core(agent).init(jax.random.key(0))
  server.update_variables(
    assembly.Variables(state.params, state.intrinsic_params)
  )
  return server


def _answer_call(
  scale: accelerator.Scale, frames: np.ndarray, *, rewards: bool
) -> Callable[[], Any]:
  """The server's answer to all games, from frames on the host to actions."""
  size = run_config.RunConfig(inference='server').group_size
  server = _make_server(scale, size, rewards=rewards)
  never = np.zeros(size, bool)
  inputs = policy_lib.PolicyInput(
    observation=(),
    prev_action=np.zeros(size, np.int32),
    prev_reward=np.zeros(size, np.float32),
    is_first=never,
    is_last=never,
    host_inputs=(),
  )
  requests = [
    server_lib.InferenceRequest(
      group, frames[group * size : (group + 1) * size, ..., None], inputs, None
    )
    for group in range(scale.games // size)
  ]

  def call() -> Any:
    server.answer(requests)
    return [request.answer for request in requests]

  return call


def inference_rows(
  scale: accelerator.Scale, frames: np.ndarray
) -> List[harness.Row]:
  """Calls a second, without and with the intrinsic rewards."""
  rows = []
  for name, rewards in (
    ('features', False),
    (f'rewards, memories of {scale.memories:,}', True),
  ):
    call = _answer_call(scale, frames, rewards=rewards)
    seconds = accelerator.median_seconds(call, scale)
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
