"""Environment variables of the processes of a run: cores, devices and memory.

They are set before a process starts, because JAX, XLA and glibc read them only
once. Only the learner and the inference server see the accelerator.
"""

import contextlib
import math
import os

_CPU = {'JAX_PLATFORMS': 'cpu'}

# JAX would otherwise report each kind of device that the machine lacks.
_ACCELERATOR = {'JAX_LOGGING_LEVEL': 'WARNING'}

# XLA returns the memory of each step to the system. Getting it back in pages of
# 4 kB takes a fifth of the time of a learner on a CPU, so glibc requests huge
# pages.
HUGE_PAGES = {
  'GLIBC_TUNABLES': ':'.join(
    filter(None, [os.environ.get('GLIBC_TUNABLES'), 'glibc.malloc.hugetlb=1'])
  )
}

# JAX would otherwise reserve a GPU's memory for the first process that starts.
# JAX rejects a process in which both names of this variable have a value.
GPU_SHARES = ('XLA_CLIENT_MEM_FRACTION', 'XLA_PYTHON_CLIENT_MEM_FRACTION')
_SHARED_GPU = dict(zip(GPU_SHARES, ('', '.2'), strict=True))
_DEFAULT_GPU_SHARE = 0.75  # JAX's default.

# For nodes of this machine: gRPC would ask the proxy that `https_proxy` names
# even for `localhost`. The variable replaces `no_proxy`.
_HOSTS = os.environ.get('no_grpc_proxy') or os.environ.get('no_proxy') or ''
NO_PROXY = {'no_grpc_proxy': f'{_HOSTS},localhost'.lstrip(',')}


def cores() -> list[int]:
  """Returns the cores that this process may use."""
  if hasattr(os, 'sched_getaffinity'):
    return sorted(os.sched_getaffinity(0))
  return list(range(os.cpu_count() or 1))  # Other systems than Linux.


def one_core() -> dict[str, str]:
  """Returns the variables of an actor, which computes on one core.

  With more threads, actors would compete for cores.
  """
  flags = [
    os.environ.get('XLA_FLAGS'),
    '--xla_cpu_multi_thread_eigen=false',
    'intra_op_parallelism_threads=1',  # XLA uses the last value of a flag.
  ]
  return {
    **_CPU,
    'XLA_FLAGS': ' '.join(filter(None, flags)),
    'OMP_NUM_THREADS': '1',
  }


def gpu_share(label: str) -> float:
  """Returns the part of each GPU's memory that a process may use.

  Args:
    label: `learner` or `inference`.
  """
  variables = {**os.environ, **(_SHARED_GPU if label == 'inference' else {})}
  if variables.get('XLA_PYTHON_CLIENT_ALLOCATOR', '').lower() == 'platform':
    return 1.0  # JAX does not limit this allocator.
  name = next(filter(variables.get, GPU_SHARES), None)
  if name is None:
    return _DEFAULT_GPU_SHARE
  with contextlib.suppress(ValueError):
    share = float(variables[name])
    if 0 < share < math.inf:
      return share
  raise ValueError(
    f'{name}={variables[name]!r} in the environment must be a positive number, '
    "the part of each GPU's memory that the learner may use, such as 0.75."
  )


def by_label() -> dict[str, dict[str, str]]:
  """Returns the environment variables of the processes of each label."""
  return {
    'coordinator': _CPU,
    'replay': _CPU,
    'learner': {**_ACCELERATOR, **HUGE_PAGES},
    'inference': {**_ACCELERATOR, **_SHARED_GPU},
    'actor': one_core(),
    'evaluator': one_core(),
  }
