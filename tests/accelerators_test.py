"""Tests that functions for accelerators compile, without an accelerator.

Lowering for GPUs and TPUs needs no additional package. Compilation for TPUs
needs libtpu and runs with `make test-accelerators`.
"""

import importlib.util
import os
import re

import jax
import jax.experimental
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import topologies

from benchmarks import accelerated, operations
from bt_acme import assembly, behaviors, learner_assembly
from bt_acme import config as config_lib
from bt_acme.core import learner_core
from bt_acme.core.behavior_transfer import bt_actor
from bt_acme.core.intrinsic import reward as reward_lib

PAPER = accelerated.Sizes(environments=256, group=16)


def make_agent(kind, folder, spec=accelerated.ATARI, **groups):
  """Returns an agent; BT transfers each kind of behavior."""
  if kind == 'r2d2':
    return assembly.Agent(config_lib.R2D2Config(**groups), spec)
  ngu = assembly.Agent(config_lib.NGUConfig(**groups), spec)
  if kind == 'ngu':
    return ngu
  core = learner_assembly.make_learner_core(ngu)
  state = learner_core.without_key(jax.eval_shape(core.init, jax.random.key(0)))
  params = jax.tree.map(lambda x: np.zeros(x.shape, x.dtype), state)
  behaviors.export(
    str(folder),
    agent=ngu,
    variables=assembly.Variables(params.params, params.intrinsic_params),
    statistics=reward_lib.IntrinsicStatistics(*np.ones(5)),
    actor_steps=1,
  )
  transferred = (
    behaviors.Exported(str(folder)),
    behaviors.FromCallable(lambda seed: lambda *step: 0),
    behaviors.ActionRepeat(),
    behaviors.Uniform(),
  )
  config = config_lib.BTConfig(**groups)
  return assembly.Agent(config, spec, transferred)


def defects(jitted, *arguments):
  """Lists what would not run on a GPU or TPU; lowers a function for both."""
  traced = jitted.trace(*arguments)
  jaxpr = traced.jaxpr.jaxpr
  found = operations.host_names(jaxpr) + [
    f'{name} in float64' for name in operations.float64_names(jaxpr)
  ]
  for platform in () if found else ('cuda', 'tpu'):
    text = traced.lower(lowering_platforms=(platform,)).as_text()
    found += re.findall('f64>|callback|host_transfer', text)
  return found


@pytest.mark.parametrize('kind', ('r2d2', 'ngu', 'bt'))
def test_functions_lower(kind, tmp_path):
  names = []
  for function in accelerated.functions(make_agent(kind, tmp_path), PAPER):
    assert not defects(function.jitted, *function.arguments), function.name
    names.append(function.name)
  parts = ['learner init', 'learner step', 'policy start', 'policy step']
  servers = ['server'] if kind == 'r2d2' else ['server', 'server with rewards']
  assert names == parts + [
    f'{s} {f}' for s in servers for f in ('start', 'step')
  ]


def test_core_of_external_agents_lowers(tmp_path):
  specs = pytest.importorskip('acme.specs')
  from bt_acme.agents.external import outer_core

  spec = specs.EnvironmentSpec(
    observations=specs.Array(accelerated.ATARI.observation_shape, np.uint8),
    actions=specs.DiscreteArray(accelerated.ATARI.num_actions),
    rewards=specs.Array((), np.float32),
    discounts=specs.BoundedArray((), np.float32, 0, 1),
  )
  agent = make_agent('bt', tmp_path)
  transfer = outer_core.Transfer(
    agent.behaviors, config_lib.TransferConfig(), spec
  )
  core = outer_core.make_core(transfer)
  params = bt_actor.BTParams((), tuple(x.params() for x in agent.behaviors))
  inputs, stack = accelerated.policy_inputs(agent, 1)
  core_inputs = outer_core.CoreInput(
    stack, inputs.prev_action, inputs.is_first, inputs.prev_action
  )
  state = jax.eval_shape(jax.vmap(core.init), jax.random.key(0)[None])
  step = outer_core.jit_step(core)
  assert not defects(
    step, params, bt_actor.BTInput(core_inputs, inputs.host_inputs), state
  )


def test_a_host_callback_is_found():
  def called(xs):
    jax.debug.callback(lambda y: None, xs)
    return jax.lax.map(lambda x: jax.pure_callback(np.sin, x, x), xs)

  found = defects(jax.jit(called), jnp.ones(3))
  assert 'pure_callback' in found and 'debug_callback' in found


def test_float64_is_found():
  # Newer versions of JAX have this function in another module.
  module = jax if hasattr(jax, 'enable_x64') else jax.experimental
  with module.enable_x64(True):
    double = jax.jit(lambda x: jnp.sum(x.astype(jnp.float64)))
    assert 'reduce_sum in float64' in defects(double, jnp.ones(3, jnp.float32))


def test_flops_count_each_iteration_and_no_zeros():
  def step(carry, _):
    return carry @ carry, None

  def loop(x):
    return jax.lax.scan(step, x, None, length=7)[0]

  traced = jax.jit(loop).trace(jnp.ones([4, 4]))
  assert operations.flops(traced.jaxpr.jaxpr) == 7 * 2 * 4**3

  def convolve(x, kernel):
    return jax.lax.conv_general_dilated(
      x, kernel, (2, 2), 'VALID', dimension_numbers=('NHWC', 'HWIO', 'NHWC')
    )

  image, kernel = jnp.ones([5, 8, 8, 3]), jnp.ones([2, 2, 3, 6])
  forward = 2 * (5 * 4 * 4 * 6) * (2 * 2 * 3)
  traced = jax.jit(convolve).trace(image, kernel)
  assert operations.flops(traced.jaxpr.jaxpr) == forward
  gradient = jax.jit(
    jax.grad(lambda x, k: convolve(x, k).sum(), argnums=(0, 1))
  ).trace(image, kernel)
  assert operations.flops(gradient.jaxpr.jaxpr) == 3 * forward


def tpu_devices():
  """Returns four TPUs that exist only for the compiler."""
  if importlib.util.find_spec('libtpu') is None:
    pytest.skip('needs libtpu: make test-accelerators')
  os.environ.update(
    TPU_SKIP_MDS_QUERY='1',
    TPU_ACCELERATOR_TYPE='v5litepod-4',
    TPU_WORKER_HOSTNAMES='localhost',
    ALLOW_MULTIPLE_LIBTPU_LOAD='1',
  )
  return topologies.get_topology_desc('v5e:2x2', platform='tpu').devices


def aliases(compiled):
  """Returns the number of results that reuse the memory of an argument."""
  return len(
    re.findall(r'\(\d+, \{\}, (?:may|must)-alias\)', compiled.as_text())
  )


def collectives(compiled):
  """Returns the names of operations that exchange data between devices."""
  return re.findall(
    r' (all-\w+|reduce-scatter|collective-\w+?)(?:-start)?\(',
    compiled.as_text(),
  )


@pytest.mark.parametrize('num_devices', (1, 4))
def test_learner_compiles_for_tpus(num_devices):
  devices = tpu_devices()
  agent = make_agent(
    'r2d2',
    None,
    spec=assembly.EnvironmentSpec('small', (36, 36, 1), 1, 4),
    network=config_lib.NetworkConfig(torso_size=16, lstm_size=8, head_size=16),
    replay=config_lib.ReplayConfig(trace_length=4, sequence_period=4),
    learner=config_lib.LearnerConfig(batch_size=4, num_devices=num_devices),
  )
  _, step = accelerated.learner(agent, devices)
  compiled = step.jitted.lower(*step.arguments).compile()
  assert aliases(compiled) == step.donated_leaves()
  expected = ['all-reduce'] if num_devices > 1 else []
  assert collectives(compiled) == expected
  memory = compiled.memory_analysis()
  assert memory.temp_size_in_bytes < 10_000_000


def test_missing_donation_and_second_collective_are_found():
  devices = tpu_devices()
  mesh = jax.sharding.Mesh(np.array(devices), ('batch',))
  spec = jax.sharding.PartitionSpec
  split = jax.sharding.NamedSharding(mesh, spec('batch'))
  whole = jax.sharding.NamedSharding(mesh, spec())
  x = jax.ShapeDtypeStruct([8, 128], np.float32)
  kept = jax.jit(lambda x: x + 1, in_shardings=whole, out_shardings=whole)
  assert aliases(kept.lower(x).compile()) == 0
  gathered = jax.jit(
    lambda x: (x, x.sum()), in_shardings=split, out_shardings=whole
  )
  found = collectives(gathered.lower(x).compile())
  assert 'all-gather' in found and 'all-reduce' in found
