"""Memory requirements of runs, counted by hand, and refused if too large."""

import dataclasses

import jax
import pytest

from benchmarks import core_parts
from bt_acme import memory_check
from bt_acme.config import presets
from bt_acme.config import run as run_config
from bt_acme.replay import blocks
from bt_acme.runtime import accelerators, environment_variables, launch_checks
from tests.agents import fakes

pytestmark = pytest.mark.usefixtures('shared_functions')
RUN = run_config.RunConfig(
  num_actors=3, envs_per_actor=5, num_evaluators=2, evaluation_episodes=7
)


@pytest.fixture(name='set_memory')
def make_set_memory(monkeypatch):
  """Returns a function that sets the memory of this machine."""
  return lambda memory: monkeypatch.setattr(
    memory_check.memory_estimate, 'available_memory', lambda: memory
  )


def bytes_of(needs, setting):
  """Returns the memory that depends on a setting."""
  (found,) = [n.num_bytes for n in needs if f'{setting}=' in n.settings]
  return found


def test_needs_of_a_run():
  agent = fakes.make_agent('r2d2')
  needs = memory_check.estimate(RUN, agent)
  assert needs[0].num_bytes == (3 + 2) * 250 * 10**6
  # A block has 4 steps with six scalars and a byte, 5 rows of two observed
  # scalars, and 6 frames.
  block = 4 * 25 + 5 * 8 + 6 * 25
  assert bytes_of(needs, 'envs_per_actor') == 15 * (10**5 + block)
  assert bytes_of(needs, 'evaluation_episodes') == 14 * 10**5
  # Two convolutions, a layer, an LSTM, and the two streams of the head.
  params = (8 * 16 + 16) + (64 * 32 + 32) + (128 * 16 + 16)
  params += (20 + 16) * 64 + 64 + (16 * 16 + 16) * 2 + 17 + 16 * 3 + 3
  state = bytes_of(needs, 'torso_size')
  # Parameters, their copies and two moments, and the counts of steps.
  assert 16 * params <= state <= 16 * params + 8
  assert not any('memory_capacity' in need.settings for need in needs)
  batch = blocks.empty_batch(agent.replay_layout, 4)
  expected = 2 * sum(array.nbytes for array in jax.tree.leaves(batch))
  assert bytes_of(needs, 'batch_size') == expected
  one_process = dataclasses.replace(RUN, lp_launch_type='in_process')
  needs = memory_check.estimate(one_process, agent)
  assert needs[0].num_bytes == 250 * 10**6


def test_episodic_memories_of_all_environments():
  agent = fakes.make_agent('ngu')
  # 50 embeddings of 8 numbers and their norm.
  memory = 50 * 9 * 4
  evaluated = bytes_of(memory_check.estimate(RUN, agent), 'evaluation_episodes')
  assert evaluated == 14 * (10**5 + memory)
  need = memory_check.environments(agent, 6, 'episodes=6')
  assert need.num_bytes == 6 * (10**5 + memory)
  assert need.settings == 'episodes=6, memory_capacity=50, embedding_size=8'
  rnd = fakes.make_agent('ngu:intrinsic_reward=rnd')
  need = memory_check.environments(rnd, 6, 'episodes=6')
  assert need.num_bytes == 6 * 10**5


def test_all_needs_must_fit_together(set_memory):
  needs = [
    memory_check.MemoryRequirement('a=1', 'a takes', 2 * 10**9, 'Lower a.'),
    memory_check.MemoryRequirement(
      'b=2, c=3', 'two things take', 5 * 10**9, 'Lower them.'
    ),
  ]
  set_memory(7 * 10**9)
  memory_check.check(needs)
  set_memory(7 * 10**9 - 1)
  with pytest.raises(ValueError) as error:
    memory_check.check(needs)
  assert str(error.value) == (
    'b=2, c=3: this machine has 7.0 GB, but two things take about 5.0 GB and '
    'everything else 2.0 GB. Lower them.'
  )


@pytest.mark.parametrize('name', presets.PRESETS)
@pytest.mark.parametrize('kind', core_parts.CONFIGS)
def test_every_preset_fits_into_the_memory_it_is_made_for(
  set_memory, name, kind
):
  preset = presets.get(name, core_parts.CONFIGS[kind])
  agent = core_parts.make_agent(kind=kind, **preset)
  settings = presets.PRESETS[name].settings
  known = {key: settings[key] for key in settings if hasattr(RUN, key)}
  run = run_config.RunConfig(**known)
  set_memory(14 * 10**9 if name in ('paper', 'gpu') else 3 * 10**9)
  memory_check.check(memory_check.estimate(run, agent))


@pytest.mark.parametrize(
  'settings, message',
  [
    ({'num_actors': 10**6}, '1,000,001 processes take about 250,000.2 GB'),
    (
      {'envs_per_actor': 10**9},
      'envs_per_actor=1000000000, .*,000,000 environments with their buffers',
    ),
    ({'evaluation_episodes': 10**9}, 'evaluation_episodes=1000000000, '),
    (
      {'max_replay_size': 10**9, 'codec': 'tensors'},
      "max_replay_size=1000000000, codec='tensors': this machine has 25.0 GB",
    ),
    ({'batch_size': 10**9, 'max_replay_size': 10**9}, 'batch_size=1000000000'),
    ({'memory_capacity': 10**7}, 'memory_capacity=10000000'),
    (
      {'lstm_size': 16_384, 'torso_size': 16_384},
      'the networks in training take about',
    ),
  ],
)
def test_too_large_settings_are_refused(set_memory, settings, message):
  set_memory(25 * 10**9)
  of_run = {'num_actors': 1, 'max_actor_steps': 10**9}
  of_run |= {k: settings[k] for k in settings if hasattr(RUN, k)}
  config = {k: settings[k] for k in settings if not hasattr(RUN, k)}
  agent = core_parts.make_agent(kind='ngu', **config)
  with pytest.raises(ValueError, match=message) as error:
    launch_checks.check(run_config.RunConfig(**of_run), agent)
  assert '\n' not in str(error.value)


@pytest.mark.parametrize('dtype, width', [('float32', 4), ('bfloat16', 2)])
def test_a_learner_step_needs_the_operands_of_all_products(dtype, width):
  agent = core_parts.make_agent(torso_dtype=dtype)
  *_, step = memory_check.estimate_device(agent, 2)
  image = 84 * 84 * 4
  # The outputs of the convolutions, inputs of the head's layers and the LSTM's.
  convolutions = [20 * 20 * 32, 9 * 9 * 64, 7 * 7 * 64]
  row = image + width * (image + sum(convolutions)) + 4 * (4 * 512 + 536)
  assert step.num_bytes == 161 * 32 * (row + width * convolutions[0])


@pytest.fixture(autouse=True)
def unset_gpu_variables(monkeypatch):
  shares = environment_variables.GPU_SHARES
  for name in (*shares, 'XLA_PYTHON_CLIENT_ALLOCATOR'):
    monkeypatch.delenv(name, raising=False)


@pytest.fixture(name='set_devices')
def make_set_devices(set_memory, monkeypatch):
  """Returns a function that sets the memories of GPUs and TPU chips."""
  set_memory(10**12)

  def set_devices(gpus=(), chips=()):
    monkeypatch.setattr(accelerators, 'gpu_memories', lambda: gpus)
    monkeypatch.setattr(accelerators, 'tpu_memories', lambda: chips)

  return set_devices


def check(run, agent, refused):
  """Checks a run, which must be refused with this message if it is given."""
  if refused is None:
    return launch_checks.check(run, agent)
  with pytest.raises(ValueError, match=refused):
    launch_checks.check(run, agent)


GPUS = [81559 << 20, 40960 << 20]
V5E, V6E = 16 * 10**9, 32 * 10**9
REFUSED_ON_GPU = (
  r'trace_length=160.*: the part of each of .* GPUs for learner \(75%\) has '
  '64.1 GB, but a learner step takes about .* Lower one'
)
REFUSED_ON_TPU = r'TPU chips for learner \(100%\) has 16.0 GB.* Lower one'


@pytest.mark.parametrize(
  'batch_size, num_devices, gpus, chips, refused',
  [
    (512, 1, GPUS, [], None),
    (2048, 1, GPUS, [], REFUSED_ON_GPU),
    (2048, 0, GPUS, [], None),
    (4096, 0, GPUS, [], REFUSED_ON_GPU),
    (2048, 1, [], [], None),
    (256, 1, [], [V5E], None),
    (640, 1, [], [V5E], REFUSED_ON_TPU),
    (640, 1, [], [V6E], None),
    (1024, 0, [], [V5E] * 4, None),
  ],
)
def test_a_batch_that_does_not_fit_a_device_is_refused(
  set_devices, batch_size, num_devices, gpus, chips, refused
):
  set_devices(gpus, chips)
  agent = core_parts.make_agent(batch_size=batch_size, num_devices=num_devices)
  run = run_config.RunConfig(max_actor_steps=10**9)
  check(run, agent, refused)
  cluster = dataclasses.replace(run, lp_launch_type='ray', ray_address='auto')
  check(cluster, agent, None)


def make_server_run(num_actors, **changes):
  return run_config.RunConfig(
    num_actors=num_actors, max_actor_steps=10**9, inference='server', **changes
  )


def test_state_of_the_inference_server():
  # Eight actors with two groups of 2 environments each, and one group more.
  run = make_server_run(8, envs_per_actor=4)
  agent = fakes.make_agent('ngu')
  state, params = memory_check.estimate_server(run, agent)
  without, same = memory_check.estimate_server(run, agent, has_rewards=False)
  assert params == same
  # 50 embeddings of 8 numbers, their number, and five statistics.
  memories = 34 * 4 * (50 * 8 + 1 + 5)
  assert state.num_bytes - without.num_bytes == memories
  embedding = 4 * (8 * 16 + 16 + 64 * 32 + 32 + 128 * 8 + 8)
  # Besides these and a stack of frames, there are two recurrent states, keys
  # and scalars.
  rest = without.num_bytes - 34 * (embedding + 5 * 5 * 2)
  assert 34 * 4 * 4 * 16 < rest < 34 * 4 * 6 * 16
  # Parameters of the agent and the reward, without an optimizer.
  learner = bytes_of(memory_check.estimate(RUN, agent), 'torso_size')
  assert learner / 5 < params.num_bytes < learner / 3


def test_memories_are_counted_where_they_are():
  agent = fakes.make_agent('ngu')
  run = make_server_run(8, envs_per_actor=4)

  def total(has_accelerator=False, **changes):
    changed = dataclasses.replace(run, **changes)
    needs = memory_check.estimate(
      changed, agent, has_accelerator=has_accelerator
    )
    return sum(need.num_bytes for need in needs)

  local = total(inference='local')
  assert total(inference='local', has_accelerator=True) == local
  # The rewards of evaluators stay on the host.
  assert total(has_accelerator=True) == local - 32 * 50 * 9 * 4
  # Without an accelerator, the server is on the host, but without rewards.
  needs = memory_check.estimate_server(run, agent, has_rewards=False)
  server = sum(need.num_bytes for need in needs)
  assert total() == local + server
  cluster = {'lp_launch_type': 'ray', 'ray_address': 'auto'}
  away = total(**cluster, inference='local')
  assert total(**cluster) == away + server
  # A placement may move nodes to other machines.
  assert total(**cluster, placement='inference:num_gpus=1') == away
  moved = ';'.join(
    f'{x}:num_gpus=1' for x in ('learner', 'replay', 'inference')
  )
  assert total(**cluster, placement=moved) == 0


@pytest.mark.parametrize(
  'changes, refused',
  [
    ({'num_actors': 200}, None),
    (
      {'num_actors': 256},
      r'^num_actors=256, .*memory_capacity=30000.* for inference \(20%\) has '
      '17.1 GB, but the state of 4,096 environments takes about 18.8 GB and '
      "everything else .*, or choose inference='local'.",
    ),
    # In one process, both are in the learner's part.
    ({'num_actors': 256, 'lp_launch_type': 'local_mt'}, None),
    (
      {'num_actors': 1024, 'lp_launch_type': 'local_mt'},
      r'^num_actors=1024, .* for learner \(75%\) has 64.1 GB',
    ),
    ({'num_actors': 1024, 'lp_launch_type': 'ray', 'ray_address': 'x:1'}, None),
  ],
)
def test_a_server_that_does_not_fit_its_part_of_a_gpu_is_refused(
  set_devices, changes, refused
):
  set_devices(GPUS)
  run = make_server_run(**{'envs_per_actor': 16, **changes})
  check(run, core_parts.make_agent(kind='ngu'), refused)


def test_two_processes_cannot_use_a_tpu(set_devices, monkeypatch):
  set_devices()
  agent = fakes.make_agent('ngu')
  for local in ({'inference': 'local'}, {'lp_launch_type': 'local_mt'}):
    for uses_tpu in (False, True):
      monkeypatch.setattr(accelerators, 'uses_tpu', lambda x=uses_tpu: x)
      check(dataclasses.replace(make_server_run(2), **local), agent, None)
      refused = (
        "^inference='server' .* one process .* a TPU" if uses_tpu else None
      )
      check(make_server_run(2), agent, refused)


@pytest.mark.parametrize(
  'variables, learner, inference',
  [
    ({}, 0.75, 0.2),
    ({'XLA_CLIENT_MEM_FRACTION': '.5'}, 0.5, 0.2),
    ({'XLA_PYTHON_CLIENT_MEM_FRACTION': '.3'}, 0.3, 0.2),
    ({'XLA_PYTHON_CLIENT_ALLOCATOR': 'Platform'}, 1.0, 1.0),
  ],
)
def test_part_of_a_gpu(monkeypatch, variables, learner, inference):
  for name, value in variables.items():
    monkeypatch.setenv(name, value)
  assert environment_variables.gpu_share('learner') == learner
  assert environment_variables.gpu_share('inference') == inference
  for text in ('75%', 'nan', 'inf', '-1', '0'):
    monkeypatch.setenv('XLA_CLIENT_MEM_FRACTION', text)
    monkeypatch.delenv('XLA_PYTHON_CLIENT_ALLOCATOR', raising=False)
    with pytest.raises(ValueError, match=f"XLA_CLIENT_MEM_FRACTION='{text}'"):
      environment_variables.gpu_share('learner')


SMI = """index, uuid, memory.total [MiB]
0, GPU-5a7e, 81559 MiB
1, GPU-90c1, 40960 MiB
"""


def set_installed(monkeypatch, package):
  find_spec = {package: package}.get
  monkeypatch.setattr(accelerators.importlib.util, 'find_spec', find_spec)


@pytest.fixture(name='make_gpus')
def make_gpus_in_tmp_path(monkeypatch, tmp_path):
  """Returns a function that installs an nvidia-smi with these lines."""

  def make(lines=f'cat <<END\n{SMI}END'):
    tool = tmp_path / 'nvidia-smi'
    tool.write_text(f'#!/bin/sh\n{lines}\n')
    tool.chmod(0o755)

  set_installed(monkeypatch, 'jax_cuda12_plugin')
  monkeypatch.setenv('PATH', str(tmp_path), prepend=':')
  for name in ('JAX_PLATFORMS', 'CUDA_VISIBLE_DEVICES'):
    monkeypatch.delenv(name, raising=False)
  return make


@pytest.mark.parametrize(
  'visible, expected',
  [
    *((None, [81559, 40960]), ('', []), ('-1', []), ('1', [40960])),
    *(('1,0', [40960, 81559]), ('0, 1', [81559, 40960])),
    *(('GPU-90c1', [40960]), ('GPU-9', [40960]), ('GPU-', [])),
    # CUDA ignores all that follows an invalid entry.
    *(('0,-1,1', [81559]), ('2,0', []), ('MIG-5a7e', [])),
  ],
)
def test_only_visible_gpus_count(monkeypatch, make_gpus, visible, expected):
  make_gpus()
  if visible is not None:
    monkeypatch.setenv('CUDA_VISIBLE_DEVICES', visible)
  memories = [mebibytes << 20 for mebibytes in expected]
  # Both plug-ins of JAX use the same GPUs, and only the first platform counts.
  set_installed(monkeypatch, 'jax_cuda13_plugin')
  for platforms, used in (('', memories), ('gpu,cpu', memories), ('cpu', [])):
    monkeypatch.setenv('JAX_PLATFORMS', platforms)
    assert accelerators.gpu_memories() == used


@pytest.mark.parametrize(
  'lines', ['sleep 5; echo 0, GPU-5a7e, 81559 MiB', 'echo failed; exit 9']
)
def test_a_broken_driver_does_not_delay_the_start(
  monkeypatch, make_gpus, lines
):
  make_gpus(lines)
  monkeypatch.setattr(accelerators, '_GPU_TOOL_SECONDS', 0.5)
  assert accelerators.gpu_memories() == []
  monkeypatch.setenv('PATH', '/nowhere')
  assert accelerators.gpu_memories() == []


CHIP, NETWORK_CARD = ('0x1ae0', '0x0063'), ('0x1ae0', '0x0042')


@pytest.mark.parametrize(
  'platforms, pci, uses, expected',
  [
    (None, [NETWORK_CARD, CHIP], True, [V5E]),
    ('tpu,cpu', 4 * [CHIP], True, 4 * [V5E]),
    (None, [('0x1ae0', '0x006f')], True, [V6E]),
    # The size of a new chip is unknown.
    (None, [('0x1ae0', '0x9999'), ('0x8086', '0x0063')], True, []),
    ('cpu', [CHIP], False, []),
    ('cpu,tpu', [CHIP], True, []),
    (None, [], False, []),
  ],
)
def test_chips_of_this_machine(
  monkeypatch, tmp_path, platforms, pci, uses, expected
):
  for i, (vendor, device) in enumerate(pci):
    folder = tmp_path / f'0000:00:0{i}.0'
    folder.mkdir()
    (folder / 'vendor').write_text(f'{vendor}\n')
    (folder / 'device').write_text(f'{device}\n')
  paths = sorted(str(path / 'vendor') for path in tmp_path.iterdir())
  found = {'/dev/accel*': paths, accelerators._PCI_VENDORS: paths}
  monkeypatch.setattr(accelerators.glob, 'glob', lambda x: found.get(x, []))
  set_installed(monkeypatch, 'libtpu')
  monkeypatch.delenv('JAX_PLATFORMS', raising=False)
  if platforms is not None:
    monkeypatch.setenv('JAX_PLATFORMS', platforms)
  assert accelerators.uses_tpu() == uses
  assert accelerators.tpu_memories() == expected


@pytest.mark.parametrize(
  'changes, cores, slow',
  [
    ({'num_actors': 2}, 2, False),
    ({'num_actors': 3}, 2, True),
    ({'num_actors': 3, 'lp_launch_type': 'in_process'}, 2, False),
  ],
)
def test_actors_that_share_cores(monkeypatch, changes, cores, slow):
  monkeypatch.setattr(environment_variables, 'cores', lambda: range(cores))
  warning = launch_checks.oversubscription_warning(
    run_config.RunConfig(**changes)
  )
  assert bool(warning) == slow
  assert not slow or 'num_actors=3 exceeds the number of cores (2)' in warning
