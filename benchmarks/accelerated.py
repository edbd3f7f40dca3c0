"""The functions that run on an accelerator, with the shapes of their arguments.

Nothing is computed: all states are known from their shapes alone, so that a
function of any size can be lowered or compiled on a small machine.
"""

import itertools
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from benchmarks import core_parts
from bt_acme import assembly, learner_assembly
from bt_acme.acting import batched_core, grouped_core
from bt_acme.core import data_parallel


class Function(NamedTuple):
  """A jitted function and the arguments that it is compiled for.

  Attributes:
    name: the name in tables.
    jitted: the function, as the program calls it.
    arguments: trees of `jax.ShapeDtypeStruct`.
  """

  name: str
  jitted: Any
  arguments: tuple[Any, ...]


def functions(
  agent: assembly.Agent,
  num_environments: int,
  group_size: int,
  devices: Sequence[jax.Device] | None = None,
) -> Iterator[Function]:
  """Yields all functions of an agent that may run on an accelerator.

  Args:
    agent: R2D2, NGU or BT.
    num_environments: M, the environments of the run.
    group_size: G, the environments of an actor.
    devices: the devices to compile for; None for those of this process. The
      learner uses all of them if `num_devices` is 0, the others the first.
  """
  servers = (False, True) if any(agent.reward_specs) else (False,)
  for function in itertools.chain(
    learner(agent, devices),
    _policy(agent, group_size),
    *(
      _server(agent, num_environments, group_size, rewards=rewards)
      for rewards in servers
    ),
  ):
    # The step of the learner has shardings.
    if devices is not None and function.name != 'learner step':
      arguments = on(devices[0], function.arguments)
      function = function._replace(arguments=arguments)
    yield function


def learner(
  agent: assembly.Agent, devices: Sequence[jax.Device] | None = None
) -> Iterator[Function]:
  """Yields the initialization and the step of the learner."""
  core = learner_assembly.make_learner_core(agent)
  key = jax.eval_shape(lambda: jax.random.key(0))
  yield Function('learner init', core.init, (key,))
  config = agent.config
  shardings = data_parallel.make_shardings(config.learner, devices)
  batch = jax.eval_shape(lambda: core_parts.empty_batch(agent))
  probabilities = jax.ShapeDtypeStruct([config.learner.batch_size], np.float32)
  yield Function(
    'learner step',
    data_parallel.jit_step(core.step, shardings),
    (jax.eval_shape(core.init, key), batch, probabilities),
  )


def _policy(agent: assembly.Agent, group_size: int) -> Iterator[Function]:
  """Yields the functions of `VectorPolicy`, which keeps the embeddings."""
  core = batched_core.BatchedCore(agent)
  params, state = core.shapes(group_size)
  state = state._replace(embedding=())
  embeddings = (params.embedding,) * group_size if agent.intrinsic else ()
  inputs, stack = policy_inputs(agent, group_size)
  start, step = batched_core.jit_functions(core)
  started = (params, inputs.is_first, stack, state)
  yield Function('policy start', start, started)
  stepped = (params, inputs, state, embeddings)
  yield Function('policy step', step, stepped)


def _server(
  agent: assembly.Agent,
  num_environments: int,
  group_size: int,
  *,
  rewards: bool,
) -> Iterator[Function]:
  """Yields the functions of the inference server, which answers all groups."""
  core = grouped_core.GroupedCore(agent, group_size=group_size, rewards=rewards)
  # Padding is one more group.
  params, state, memories = core.shapes(num_environments + group_size)
  inputs, stack = policy_inputs(agent, group_size)
  group = jax.ShapeDtypeStruct([], np.int32)
  start, step = batched_core.jit_functions(core)
  name = 'server with rewards' if rewards else 'server'
  started = (params, group, inputs.is_first, stack, state)
  yield Function(f'{name} start', start, started)
  groups = jax.ShapeDtypeStruct([num_environments // group_size], np.int32)
  inputs, _ = policy_inputs(agent, num_environments)
  stepped = (params, groups, inputs, state, memories)
  yield Function(f'{name} step', step, stepped)


def policy_inputs(
  agent: assembly.Agent, number: int
) -> tuple[batched_core.PolicyInput, Any]:
  """Returns inputs with the newest frames, and the whole observations."""
  inputs = batched_core.input_shapes(agent, number)
  assert inputs is not None, 'a behavior has host inputs of unknown shapes'
  shape = (number, *agent.spec.observation_shape)
  return inputs, jax.ShapeDtypeStruct(shape, np.uint8)


def on(device: jax.Device, tree: Any) -> Any:
  """Places arguments on a device."""
  place = jax.sharding.SingleDeviceSharding(device)
  return jax.tree.map(
    lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=place), tree
  )
