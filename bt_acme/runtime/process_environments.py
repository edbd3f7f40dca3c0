"""Environment variables of the processes of a run: cores, devices and memory.

They are set before a process starts, because JAX, XLA and glibc read them only
once. Only the learner and the inference server see the accelerator.
"""

import os
from collections.abc import Collection

from bt_acme import compilation_cache

_CPU = {'JAX_PLATFORMS': 'cpu'}

# An actor computes on one core. With more threads, actors would compete for
# cores.
_ONE_CORE = {
  **_CPU,
  'XLA_FLAGS': ' '.join(
    [
      os.environ.get('XLA_FLAGS', ''),
      '--xla_cpu_multi_thread_eigen=false',
      'intra_op_parallelism_threads=1',
    ]
  ),
  'OMP_NUM_THREADS': '1',
}

# JAX would otherwise report each kind of device that the machine lacks.
_ACCELERATOR = {'JAX_LOGGING_LEVEL': 'WARNING'}

# XLA frees the memory of each step. If glibc returned it to the system, getting
# it back in pages of 4 kB would take a fifth of the time of a learner on a CPU.
# Therefore glibc requests huge pages and retains freed memory, in a single
# arena because others are limited to 64 MB. The user's tunables come last and
# take precedence.
_RETAINED_MEMORY = {
  'GLIBC_TUNABLES': ':'.join(
    filter(
      None,
      [
        'glibc.malloc.hugetlb=1',
        'glibc.malloc.arena_max=1',
        f'glibc.malloc.mmap_threshold={1 << 40}',
        f'glibc.malloc.trim_threshold={1 << 40}',
        os.environ.get('GLIBC_TUNABLES'),
      ],
    )
  )
}

# JAX would otherwise reserve a GPU's memory for the first process that starts.
_SHARED_GPU = {'XLA_PYTHON_CLIENT_MEM_FRACTION': '.2'}

_BY_LABEL = {
  'coordinator': _CPU,
  'replay': _CPU,
  'learner': {**_ACCELERATOR, **_RETAINED_MEMORY},
  'inference': {**_ACCELERATOR, **_SHARED_GPU},
  'actor': _ONE_CORE,
  'evaluator': _ONE_CORE,
}


def for_labels(labels: Collection[str]) -> dict[str, dict[str, str]]:
  """Returns the environment variables by label, for labels that have any."""
  cache = compilation_cache.variables()
  return {
    label: {**cache, **variables}
    for label, variables in _BY_LABEL.items()
    if label in labels
  }
