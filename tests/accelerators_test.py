"""Tests that functions for accelerators compile, without an accelerator.

Lowering for GPUs and TPUs needs no additional package. Compilation needs the
packages of `make test-accelerators`.
"""

import re
from unittest import mock

import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from benchmarks import accelerated, core_parts, hlo, operations, target_devices
from benchmarks import compiled as compiled_lib
from bt_acme import assembly, behaviors, learner_assembly
from bt_acme import config as config_lib
from bt_acme.acting import policy as policy_lib
from bt_acme.config import names
from bt_acme.core import data_parallel, jaxprs, returns_on_device
from bt_acme.core.behavior_transfer import bt_actor
from tests.agents import fakes
from tests.core import toys


def make_agent(kind, folder, spec=core_parts.ATARI, **settings):
  """Returns an agent; BT transfers each kind of behavior."""
  if kind != 'bt':
    config = names.build(core_parts.CONFIGS[kind], settings)
    return assembly.Agent(config, spec)
  fakes.export_agent(folder, make_agent('ngu', folder, spec, **settings))
  transferred = (
    behaviors.Exported(str(folder)),
    behaviors.FromCallable(lambda seed: lambda *step: 0),
    behaviors.ActionRepeat(),
    behaviors.Uniform(),
  )
  # The exported behavior and two others skip the episodes of others.
  skips = {'behavior_roles': 'fly,both,fly,fly', 'behavior_draws': 'episode'}
  config = names.build(config_lib.BTConfig, {**settings, **skips})
  return assembly.Agent(config, spec, transferred)


def defects(traced):
  """Lists what would not run on a GPU or TPU; lowers a function for both."""
  found = []
  for equation, _ in jaxprs.equations(traced.jaxpr.jaxpr):
    name = equation.primitive.name
    if re.search('callback|infeed|outfeed|debug_print', name):
      found.append(name)
    dtypes = [getattr(var.aval, 'dtype', None) for var in equation.outvars]
    if np.float64 in dtypes or np.complex128 in dtypes:
      found.append(f'{name} in float64')
  if not found:
    text = traced.lower(lowering_platforms=('cuda', 'tpu')).as_text()
    found += re.findall('f64>|callback|host_transfer', text)
  return found


# BT's functions contain those of R2D2.
@pytest.mark.parametrize('kind', ('ngu', 'bt'))
def test_functions_lower_with_the_configured_precision(kind, tmp_path):
  agent = make_agent(kind, tmp_path, matmul_precision='float32')
  highest = jax.lax.Precision.HIGHEST
  found = []
  for function in accelerated.functions(agent, 256, 16):
    traced = function.jitted.trace(*function.arguments)
    assert not defects(traced), function.name
    if function.name.endswith('step'):
      precisions = {
        equation.params.get('precision', (highest, highest))
        for equation, _ in jaxprs.equations(traced.jaxpr.jaxpr)
      }
      assert precisions == {(highest, highest)}, function.name
    found.append(function.name)
  assert found == ['learner init', 'learner step'] + [
    f'{selecting} {function}'
    for selecting in ('policy', 'server', 'server with rewards')
    for function in ('start', 'step')
  ]


@pytest.mark.parametrize('kind', ('ngu', 'bt'))
def test_functions_of_a_policy_lower_as_it_calls_them(kind, tmp_path):
  agent = make_small_agent(kind, tmp_path)
  _, _, start, step, *_ = accelerated.functions(agent, 4, 2)
  observation = np.zeros([2, *agent.spec.observation_shape], np.uint8)
  inputs, _ = accelerated.policy_inputs(agent, 2)
  params, *_ = start.arguments
  policy = policy_lib.VectorPolicy(agent, epsilons=np.zeros(2), seed=0)
  policy._start = mock.Mock(return_value=policy._state)
  policy._step = mock.Mock(return_value=((), (), policy._state))
  policy._params = jax.tree.map(lambda x: np.zeros(x.shape, x.dtype), params)
  policy.request(
    inputs._replace(observation=observation, is_first=np.ones(2, bool))
  )
  called = [each.call_args.args for each in (policy._start, policy._step)]
  called, lowered = (
    jax.tree.map(lambda x: (tuple(x.shape), x.dtype), arguments)
    for arguments in (called, [start.arguments, step.arguments])
  )
  assert called == lowered


def test_core_of_external_agents_lowers(tmp_path):
  specs = pytest.importorskip('acme.specs')
  from bt_acme.agents.external import outer_core
  from tests.agents.external import scripted

  atari = core_parts.ATARI
  spec = scripted.discrete_spec(atari.observation_shape, np.uint8)._replace(
    actions=specs.DiscreteArray(atari.num_actions, np.int32)
  )
  agent = make_agent('bt', tmp_path)
  transfer = outer_core.Transfer(
    agent.behaviors, config_lib.TransferConfig(), spec
  )
  core = outer_core.make_core(transfer)
  params = bt_actor.BTParams((), tuple(x.params() for x in agent.behaviors))
  inputs, stack = accelerated.policy_inputs(agent, 1)
  core_inputs = outer_core.CoreInput(stack, *inputs[1:4], inputs.prev_action)
  state = jax.eval_shape(jax.vmap(core.init), jax.random.key(0)[None])
  step = outer_core.jit_step(core)
  core_inputs = bt_actor.BTInput(core_inputs, inputs.host_inputs)
  assert not defects(step.trace(params, core_inputs, state))


def test_planted_defects_of_the_learner_step_are_found(tmp_path):
  _, step = accelerated.learner(make_small_agent('r2d2', tmp_path))
  assert not defects(step.jitted.trace(*step.arguments))

  @jax.jit
  def planted(*arguments):
    state, priorities, metrics = step.jitted(*arguments)
    jax.debug.callback(lambda loss: None, metrics['loss'])
    return state, priorities.astype(jnp.float64), metrics

  with toys.enable_x64():
    found = defects(planted.trace(*step.arguments))
  assert {'debug_callback', 'convert_element_type in float64'} <= set(found)


def test_flops_count_each_iteration_and_neither_zeros_nor_unused_results():
  def flops(function, *arguments):
    traced = jax.jit(function).trace(*arguments)
    return operations.flops(traced.jaxpr.jaxpr)

  def loop(x):
    return jax.lax.fori_loop(0, 7, lambda _, carry: carry @ carry, x)

  assert flops(loop, jnp.ones([4, 4])) == 7 * 2 * 4**3

  def convolve(x, kernel):
    return jax.lax.conv_general_dilated(
      x, kernel, (2, 2), 'VALID', dimension_numbers=('NHWC', 'HWIO', 'NHWC')
    )

  image, kernel = jnp.ones([5, 8, 8, 3]), jnp.ones([2, 2, 3, 6])
  forward = 2 * (5 * 4 * 4 * 6) * (2 * 2 * 3)
  assert flops(convolve, image, kernel) == forward

  def flops_of_gradient(loss):
    return flops(jax.grad(loss, argnums=(0, 1)), image, kernel)

  assert flops_of_gradient(lambda x, k: (convolve(x, k) ** 2).sum()) == (
    3 * forward
  )
  # This gradient does not need the output, so a compiler removes it.
  assert flops_of_gradient(lambda x, k: convolve(x, k).sum()) == 2 * forward


def devices_of(target):
  """Returns devices that exist only for the compiler."""
  try:
    return target_devices.devices(target)
  except ImportError as error:
    pytest.skip(f'{error} (make test-accelerators)')


def compile_for(target, jitted, *arguments):
  """Compiles a function for arguments on devices of a target."""
  return jitted.lower(*arguments).compile(
    target_devices.compiler_options(target)
  )


def num_kernels(compiled):
  return sum(kernel.times for kernel in hlo.kernels(compiled.as_text()))


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


# The largest number of all-reduces in a learner step. NGU's second one sums a
# single number, by which a loss of its reward divides.
ALL_REDUCES = {'r2d2': 1, 'bt': 1, 'ngu': 2}
# The positions of the arguments whose memory the results can reuse.
DONATED = {'learner step': (0,), 'server with rewards step': (3, 4)}


def donated_leaves(function):
  """Returns the number of arrays whose memory the results can reuse."""
  donated = [function.arguments[i] for i in DONATED[function.name]]
  return len(jax.tree.leaves(donated))


def compiled_defects(compiled, step, num_devices):
  """Lists what would make a compiled learner step slow or large."""
  found = []
  if aliases(compiled) != donated_leaves(step):
    found.append('donation')
  exchanged = set(collectives(compiled))
  return found + sorted(
    exchanged.symmetric_difference({'all-reduce'} if num_devices > 1 else ())
  )


def make_small_agent(kind, folder, **settings):
  small = {
    **{'torso_size': 16, 'lstm_size': 8, 'head_size': 16, 'batch_size': 4},
    **{'trace_length': 4, 'sequence_period': 4},
  }
  spec = assembly.EnvironmentSpec('small', (36, 36, 4), 4, 4)
  return make_agent(kind, folder, spec, **small, **settings)


@pytest.mark.parametrize(
  'kind, target, num_devices',
  [
    *(('r2d2', 'v5e', 1), ('r2d2', 'v5e', 4), ('r2d2', 'h200', 1)),
    *(('bt', 'v5e', 1), ('bt', 'v5e', 4), ('bt', 'a100', 1)),
    *(('ngu', 'v5e', 4), ('ngu', 'h200', 1)),
  ],
)
def test_learner_compiles(kind, target, num_devices, tmp_path):
  devices = devices_of(target)
  agent = make_small_agent(kind, tmp_path, num_devices=num_devices)
  _, step = accelerated.learner(agent, devices)
  compiled = compile_for(target, step.jitted, *step.arguments)
  assert not compiled_defects(compiled, step, num_devices)
  assert len(collectives(compiled)) <= ALL_REDUCES[kind]
  # Libraries of GPUs use up to 32 MB of scratch memory.
  memory = compiled.memory_analysis().temp_size_in_bytes
  assert memory < (20_000_000 if target == 'v5e' else 50_000_000)


@pytest.mark.parametrize('target', ('v5e', 'h200'))
def test_server_does_not_copy_memories(target, tmp_path):
  devices = devices_of(target)
  agent = make_small_agent('ngu', tmp_path)
  *_, step = accelerated.functions(agent, 8, 4, devices)
  compiled = compile_for(target, step.jitted, *step.arguments)
  assert aliases(compiled) == donated_leaves(step)
  intrinsic = agent.config.intrinsic
  one_memory = 4 * intrinsic.memory_capacity * intrinsic.embedding_size
  assert compiled.memory_analysis().temp_size_in_bytes < 8 * one_memory


def test_kernels_of_a_step_of_the_lstm():
  """A step starts a product and few other kernels, forward and backward."""

  def program(length):
    transformed = hk.without_apply_rng(hk.transform(core_parts.our_lstm))
    inputs = jnp.zeros([length, 8, 16])
    params = jax.eval_shape(transformed.init, jax.random.key(0), inputs)
    loss = jax.jit(jax.grad(lambda *x: jnp.sum(transformed.apply(*x) ** 2)))
    arguments = accelerated.on(devices_of('h200')[0], (params, inputs))
    return num_kernels(compile_for('h200', loss, *arguments))

  assert (program(80) - program(40)) / 40 < 6


def test_kernels_of_the_returns():
  x = accelerated.on(devices_of('h200')[0], jnp.zeros([160, 64]))
  returns = jax.jit(returns_on_device.returns_on_device)
  assert num_kernels(compile_for('h200', returns, x, x, x, x)) < 60


def test_planted_defects_of_a_compiled_learner_step_are_found(tmp_path):
  devices = devices_of('v5e')
  agent = make_small_agent('r2d2', tmp_path, num_devices=4)
  _, step = accelerated.learner(agent, devices)
  kept = jax.jit(step.jitted).lower(*step.arguments).compile()
  assert compiled_defects(kept, step, 4) == ['donation']
  shardings = data_parallel.make_shardings(agent.config.learner, devices)
  core = learner_assembly.make_learner_core(agent)

  def gathering_step(state, batch, probabilities):
    state, priorities, metrics = core.step(state, batch, probabilities)
    return state, priorities, {**metrics, 'frames': batch.frames}

  gathered = data_parallel.jit_step(gathering_step, shardings)
  compiled = gathered.lower(*step.arguments).compile()
  assert compiled_defects(compiled, step, 4) == ['all-gather']


@pytest.mark.slow
@pytest.mark.parametrize(
  'kind, target, gigabytes, kernels',
  [
    *(('r2d2', 'v5e', 2.6, 3_000), ('r2d2', 'h200', 4, 1_000)),
    *(('bt', 'v5e', 2.6, 3_000), ('bt', 'h200', 4, 1_000)),
    *(('ngu', 'v5e', 3.0, 3_500), ('ngu', 'h200', 4.2, 1_200)),
  ],
)
def test_learner_at_paper_shapes(kind, target, gigabytes, kernels, tmp_path):
  _, step = accelerated.learner(make_agent(kind, tmp_path), devices_of(target))
  found = compiled_lib.estimate(step, target)
  assert found.memory < 1e9 * gigabytes
  assert found.kernels < kernels
  assert found.flops == pytest.approx(1.0e12, rel=0.05)
