"""The functions that run on an accelerator, with the shapes of their arguments.

Nothing is computed: all states are known from their shapes alone, so that a
function of any size can be lowered or compiled on a small machine.
"""

import functools
from typing import Any, Iterator, NamedTuple, Optional, Sequence, Tuple

import jax
import numpy as np

from bt_acme import assembly, behaviors, learner_assembly
from bt_acme import config as config_lib
from bt_acme.acting import batched_core, grouped_core
from bt_acme.acting import behavior as behavior_lib
from bt_acme.acting import policy as policy_lib
from bt_acme.core import data_parallel
from bt_acme.replay import blocks

ATARI = assembly.EnvironmentSpec('game', (84, 84, 4), 4, 18)
CONFIGS = {
  'r2d2': config_lib.R2D2Config,
  'ngu': config_lib.NGUConfig,
  'bt': config_lib.BTConfig,
}


class Function(NamedTuple):
  """A jitted function and the arguments that it is compiled for.

  Attributes:
    name: the name in tables.
    jitted: the function, as the program calls it.
    arguments: trees of `jax.ShapeDtypeStruct`.
    donated: the positions of the donated arguments.
  """

  name: str
  jitted: Any
  arguments: Tuple[Any, ...]
  donated: Tuple[int, ...] = ()


class Sizes(NamedTuple):
  """The numbers of environments.

  Attributes:
    environments: M, the environments of the run.
    group: G, the environments of an actor.
  """

  environments: int = 256
  group: int = 16


def make_agent(config: config_lib.R2D2Config) -> assembly.Agent:
  """Makes an agent for Atari; BT transfers a behavior without a network."""
  transfers = isinstance(config, config_lib.BTConfig)
  return assembly.Agent(
    config, ATARI, (behaviors.Uniform(),) if transfers else ()
  )


def functions(
  agent: assembly.Agent,
  sizes: Sizes,
  devices: Optional[Sequence[jax.Device]] = None,
) -> Iterator[Function]:
  """Yields all functions of an agent that may run on an accelerator.

  Args:
    agent: R2D2, NGU or BT.
    sizes: the numbers of environments.
    devices: the devices to compile for; None for those of this process. The
      learner uses all of them if `num_devices` is 0, the others the first.
  """
  yield from learner(agent, devices)
  yield from policy(agent, sizes, devices)
  for rewards in (False, True) if any(agent.reward_specs) else (False,):
    yield from server(agent, sizes, devices, rewards=rewards)


def learner(
  agent: assembly.Agent, devices: Optional[Sequence[jax.Device]] = None
) -> Iterator[Function]:
  """Yields the initialization and the step of the learner."""
  core = learner_assembly.make_learner_core(agent)
  key = jax.eval_shape(lambda: jax.random.key(0))
  yield Function('learner init', core.init, _on(devices, (key,)))
  config = agent.config
  shardings = data_parallel.make_shardings(config.learner, devices)
  size = config.learner.batch_size
  batch = jax.eval_shape(
    lambda: blocks.empty_batch(config.replay, agent.replay_shapes, size)
  )
  probabilities = jax.ShapeDtypeStruct([size], np.float32)
  yield Function(
    'learner step',
    data_parallel.jit_step(core.step, shardings),
    (jax.eval_shape(core.init, key), batch, probabilities),
    donated=(0,),
  )


def policy(
  agent: assembly.Agent,
  sizes: Sizes,
  devices: Optional[Sequence[jax.Device]] = None,
) -> Iterator[Function]:
  """Yields the functions of an actor that selects its own actions."""
  core = batched_core.BatchedCore(agent)
  params, state = jax.eval_shape(
    functools.partial(_acting, core, sizes.group), _variables(agent)
  )
  inputs, stack = policy_inputs(agent, sizes.group)
  newest = _newest(agent, sizes.group)
  start, step = batched_core.jit_functions(core)
  arguments = (params, inputs.is_first, stack, state)
  yield Function('policy start', start, _on(devices, arguments), donated=(3,))
  step_arguments = (params, *inputs.core_inputs(newest), state)
  yield Function(
    'policy step', step, _on(devices, step_arguments), donated=(4,)
  )


def server(
  agent: assembly.Agent,
  sizes: Sizes,
  devices: Optional[Sequence[jax.Device]] = None,
  *,
  rewards: bool,
) -> Iterator[Function]:
  """Yields the functions of the inference server, which answers all groups."""
  core = grouped_core.GroupedCore(
    agent, group_size=sizes.group, rewards=rewards
  )
  total = sizes.environments + sizes.group  # Padding is one more group.
  params, state = jax.eval_shape(
    functools.partial(_acting, core.batched, total), _variables(agent)
  )
  memories = jax.eval_shape(lambda: core.init(np.zeros(total), 0)[1])
  inputs, stack = policy_inputs(agent, sizes.group)
  group = jax.ShapeDtypeStruct([], np.int32)
  start, step = grouped_core.jit_functions(core)
  name = 'server with rewards' if rewards else 'server'
  started = (params, group, inputs.is_first, stack, state)
  yield Function(f'{name} start', start, _on(devices, started), donated=(4,))
  groups = jax.ShapeDtypeStruct([sizes.environments // sizes.group], np.int32)
  inputs, _ = policy_inputs(agent, sizes.environments)
  newest = _newest(agent, sizes.environments)
  stepped = (params, groups, newest, inputs, state, memories)
  yield Function(f'{name} step', step, _on(devices, stepped), donated=(4, 5))


def _variables(agent: assembly.Agent) -> assembly.Variables:
  """Returns the shapes of the parameters that the learner publishes."""
  core = learner_assembly.make_learner_core(agent)
  state = jax.eval_shape(core.init, jax.random.key(0))
  return assembly.Variables(state.params, state.intrinsic_params)


def _acting(
  core: batched_core.BatchedCore, number: int, variables: assembly.Variables
) -> Tuple[Any, batched_core.ActingState]:
  """Returns parameters and state of a number of environments."""
  params = core.arrange(variables)
  return params, core.with_embedding(params, core.init(np.zeros(number), 0, 0))


def policy_inputs(
  agent: assembly.Agent, number: int
) -> Tuple[policy_lib.PolicyInput, Any]:
  """Returns the inputs without an observation, and the observations."""
  observation = np.zeros((1, *agent.spec.observation_shape), np.uint8)
  action, first = np.full(1, -1, np.int32), np.ones(1, bool)
  hosts = behavior_lib.make_hosts(
    agent.behaviors, agent.spec.num_actions, seed=0, environments=[0]
  )
  inputs = policy_lib.PolicyInput(
    observation=(),
    prev_action=action,
    prev_reward=np.zeros(1, np.float32),
    is_first=first,
    is_last=~first,
    host_inputs=tuple(
      host.inputs(observation, action, first, ~first) for host in hosts
    ),
  )
  shapes: Tuple[policy_lib.PolicyInput, Any] = jax.tree.map(
    lambda x: jax.ShapeDtypeStruct((number, *x.shape[1:]), x.dtype),
    (inputs, observation),
  )
  return shapes


def _newest(agent: assembly.Agent, number: int) -> jax.ShapeDtypeStruct:
  """Returns the shape of the newest frames."""
  height, width, _ = agent.spec.observation_shape
  shape = (number, height, width, agent.spec.frame_channels)
  return jax.ShapeDtypeStruct(shape, np.uint8)


def _on(devices: Optional[Sequence[jax.Device]], tree: Any) -> Any:
  """Places arguments on the first device, or leaves their place open."""
  if devices is None:
    return tree
  place = jax.sharding.SingleDeviceSharding(devices[0])
  return jax.tree.map(
    lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=place), tree
  )
