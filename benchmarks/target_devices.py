"""Accelerators that exist only for the compiler, and their data sheets.

XLA compiles for a TPU or an NVIDIA GPU on a machine that has neither, with the
packages of `requirements/accelerators.txt`.
"""

import functools
import importlib.util
import os
from typing import Any, NamedTuple

import jax
from jax.experimental import topologies


class Target(NamedTuple):
  """An accelerator.

  Attributes:
    title: the name in tables.
    memory: the memory of one device, in bytes.
    bandwidth: the bandwidth of this memory, in bytes per second.
    flops: dense products per second at default precision, in FLOP: bfloat16 on
      a TPU, TF32 on a GPU.
    clock: the clock rate in Hz.
    gpu: what the compiler needs to know of an NVIDIA GPU, as fields of XLA's
      `GpuDeviceInfoProto`; empty for a TPU.
  """

  title: str
  memory: float
  bandwidth: float
  flops: float
  clock: float
  gpu: str = ''


_AMPERE = """
  cuda_compute_capability { major: 8 }
  core_count: 108
  fpus_per_core: 64
  shared_memory_per_core: 167936
  shared_memory_per_block_optin: 166912
  l2_cache_size: 41943040"""
_HOPPER = """
  cuda_compute_capability { major: 9 }
  core_count: 132
  fpus_per_core: 128
  shared_memory_per_core: 233472
  shared_memory_per_block_optin: 232448
  l2_cache_size: 52428800"""

# Sources: the data sheets of Google and NVIDIA, without sparsity. The clock
# rate of v6e is that of four matrix units of 256 x 256 at its peak rate.
TARGETS = {
  'v5e': Target('TPU v5e', 16e9, 819e9, 197e12, 1.5e9),
  'v6e': Target('TPU v6e', 32e9, 1.64e12, 918e12, 1.75e9),
  'a100': Target('A100 80 GB', 80e9, 2.04e12, 156e12, 1.41e9, _AMPERE),
  'h100': Target('H100 80 GB', 80e9, 3.35e12, 494e12, 1.98e9, _HOPPER),
  'h200': Target('H200', 141e9, 4.8e12, 494e12, 1.98e9, _HOPPER),
}

_TPU_ENVIRONMENT = {
  'TPU_SKIP_MDS_QUERY': '1',
  'TPU_ACCELERATOR_TYPE': 'v5litepod-4',
  'TPU_WORKER_HOSTNAMES': 'localhost',
  'ALLOW_MULTIPLE_LIBTPU_LOAD': '1',
}
# Kernels cannot be timed without a device.
_GPU_OPTIONS = {
  'xla_gpu_autotune_level': 0,
  'xla_gpu_enable_triton_gemm': False,
}


def devices(name: str) -> list[jax.Device]:
  """Returns the devices of a target: four TPUs, or one GPU.

  Args:
    name: one of `TARGETS`.

  Raises:
    ImportError: if the compiler for this target is not installed.
  """
  target = TARGETS[name]
  package = 'jax_cuda12_plugin' if target.gpu else 'libtpu'
  if importlib.util.find_spec(package) is None:
    raise ImportError(
      f'target={name!r} needs {package}. Run scripts/setup.sh accelerators, '
      'which downloads about 600 MB, and use .venv-accel/bin/python.'
    )
  if not target.gpu:
    os.environ.update(_TPU_ENVIRONMENT)
    description = topologies.get_topology_desc(f'{name}:2x2', platform='tpu')
  else:
    _allow_absent_gpus()
    description = topologies.get_topology_desc(
      platform='cuda', target_config=_gpu_config(target), topology='1x1x1'
    )
  return list(description.devices)


def compiler_options(name: str) -> dict[str, Any]:
  """Returns the options for `jax.stages.Lowered.compile`."""
  return dict(_GPU_OPTIONS) if TARGETS[name].gpu else {}


@functools.cache
def _allow_absent_gpus() -> None:
  """Lets JAX use the platform `cuda` although this machine has no GPU.

  JAX replaces the name `gpu` by the platform that has devices (issue 23971 of
  JAX), and fails if there are none.
  """
  from jax._src import xla_bridge

  original: Any = xla_bridge.canonicalize_platform
  xla_bridge.canonicalize_platform = lambda platform: (
    'cuda' if platform in ('gpu', 'cuda') else original(platform)
  )


def _gpu_config(target: Target) -> str:
  """Describes a GPU as XLA's `GpuTargetConfigProto`."""
  return f"""
gpu_device_info {{{target.gpu}
  threads_per_block_limit: 1024
  threads_per_warp: 32
  shared_memory_per_block: 49152
  threads_per_core_limit: 2048
  block_dim_limit_x: 2147483647
  block_dim_limit_y: 65535
  block_dim_limit_z: 65535
  thread_dim_limit_x: 1024
  thread_dim_limit_y: 1024
  thread_dim_limit_z: 64
  memory_bandwidth: {int(target.bandwidth)}
  clock_rate_ghz: {target.clock / 1e9}
  device_memory_size: {int(target.memory)}
  registers_per_core_limit: 65536
  registers_per_block_limit: 65536
}}
platform_name: "CUDA"
dnn_version_info {{ major: 9 minor: 10 }}
device_description_str: "{target.title}"
"""
