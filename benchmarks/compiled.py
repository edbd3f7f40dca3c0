r"""Compiles agents for accelerators and estimates their speed.

  .venv-accel/bin/python -m benchmarks.compiled --target=v5e --target=h200
  .venv-accel/bin/python -m benchmarks.compiled --agent=ngu --batch_size=256
  .venv-accel/bin/python -m benchmarks.compiled --function=server --preset=gpu

`scripts/setup.sh accelerators` creates the environment, which needs no
accelerator. All settings of the launch scripts are flags. Nothing is executed,
so all times are estimates:

- On a TPU, the compiler estimates the clock cycles of each operation.
- On a GPU, a kernel takes as long as its memory traffic, but at least 2 us, the
  time to launch it. The products of all kernels together take at least their
  FLOP at the peak rate. Kernels are not tuned.
"""

import dataclasses
import itertools
import time
from typing import Any, NamedTuple

import jax
from absl import flags as absl_flags

from benchmarks import accelerated, core_parts, hlo, operations, target_devices
from bt_acme import config as config_lib
from bt_acme.cli import flags, training
from bt_acme.config import names, presets
from bt_acme.config import run as run_config
from bt_acme.evaluation import tables

_LAUNCH_SECONDS = 2e-6  # The shortest time between two kernels on a GPU.

_HEADER = (
  *('device', 'agent', 'function', 'memory, GB', 'TFLOP', 'GB moved'),
  *('kernels', 'ms', 'limited by', 's to compile'),
)


@dataclasses.dataclass(frozen=True)
class Settings(config_lib.BTConfig):
  """The settings of all agents and of a run."""

  intrinsic: config_lib.IntrinsicConfig = config_lib.IntrinsicConfig()
  run: run_config.RunConfig = run_config.RunConfig()


class CompiledStep(NamedTuple):
  """What a compiled function needs.

  Attributes:
    memory: the peak memory of a device, in bytes.
    flops: the FLOP of all products and convolutions, on all devices together.
    bytes: the bytes that one device reads and writes.
    kernels: the kernels that one device starts.
    seconds: the estimated duration.
    limit: what the duration consists of, for readers.
  """

  memory: float
  flops: float
  bytes: float
  kernels: int
  seconds: float
  limit: str


def estimate(
  function: accelerated.Function, target: str, num_devices: int = 1
) -> CompiledStep:
  """Compiles a function and estimates what it needs.

  Args:
    function: the function, with its arguments on devices of the target.
    target: one of `target_devices.TARGETS`.
    num_devices: the number of devices that share the products.
  """
  traced = function.jitted.trace(*function.arguments)
  flops = operations.flops(traced.jaxpr.jaxpr)
  compiled = traced.lower().compile(target_devices.compiler_options(target))
  kernels = hlo.kernels(compiled.as_text())
  seconds, limit = _duration(
    kernels, target_devices.TARGETS[target], flops / num_devices
  )
  return CompiledStep(
    memory=peak_memory(compiled),
    flops=flops,
    bytes=sum(x.times * x.bytes for x in kernels),
    kernels=sum(x.times for x in kernels),
    seconds=seconds,
    limit=limit,
  )


def peak_memory(compiled: Any) -> int:
  """Returns the bytes that a device needs for a `jax.stages.Compiled`."""
  memory = compiled.memory_analysis()
  return (
    memory.argument_size_in_bytes
    + memory.output_size_in_bytes
    - memory.alias_size_in_bytes
    + memory.temp_size_in_bytes
  )


def _duration(
  kernels: list[hlo.Kernel], target: target_devices.Target, flops: float
) -> tuple[float, str]:
  """Returns the estimated seconds, and what most of them are spent on."""
  parts = {
    'bytes': sum(x.times * x.bytes for x in kernels) / target.bandwidth,
    'FLOP': flops / target.flops,
  }
  if not target.gpu:
    seconds = sum(x.times * x.operation.cycles for x in kernels) / target.clock
  else:
    moving = [(x.times, x.bytes / target.bandwidth) for x in kernels]
    busy = sum(times * max(_LAUNCH_SECONDS, s) for times, s in moving)
    seconds = max(busy, parts['FLOP'])
    launched = sum(times for times, s in moving if s < _LAUNCH_SECONDS)
    parts = {'launches': launched * _LAUNCH_SECONDS, **parts}
  return seconds, ', '.join(f'{x} {s / seconds:.0%}' for x, s in parts.items())


def _row(
  kind: str, function: accelerated.Function, target: str, num_devices: int
) -> list[str]:
  """Compiles a function and returns a row of the table."""
  start = time.process_time()
  found = estimate(function, target, num_devices)
  device = target_devices.TARGETS[target]
  number = f'{num_devices} x ' if num_devices > 1 else ''
  fits = '' if found.memory < device.memory else ', does not fit'
  return [
    *(f'{number}{device.title}', kind.upper(), function.name),
    f'{found.memory / 1e9:.2f}{fits}',
    f'{found.flops / 1e12:.3f}',
    f'{found.bytes / 1e9:.1f}',
    f'{found.kernels:,}',
    f'{1e3 * found.seconds:.1f}',
    found.limit,
    f'{time.process_time() - start:.0f}',
  ]


def _define_flags() -> None:
  define = absl_flags.DEFINE_multi_enum
  define(
    'target', ['v5e', 'h200'], list(target_devices.TARGETS), 'Accelerators.'
  )
  define('agent', ['r2d2'], list(core_parts.CONFIGS), 'Agents.')
  absl_flags.DEFINE_multi_string(
    'function', ['learner step'], 'Functions, by a part of their name.'
  )


def main(argv: list[str]) -> None:
  """Compiles all selected functions and prints a table."""
  del argv
  jax.config.update('jax_platforms', 'cpu')
  values = absl_flags.FLAGS
  known = names.defaults_of(Settings)
  given = {name: values[name].value for name in known if values[name].present}
  rows: list[list[str]] = []
  for target, kind in itertools.product(values.target, values.agent):
    config = core_parts.CONFIGS[kind]
    # The preset of the agent, and the settings of its launch script's run.
    defaults = names.defaults_of(config)
    preset = {
      **presets.get(values.preset, Settings, given),
      **defaults,
      **presets.get(values.preset, config, given),
    }
    settings = flags.from_flags(Settings, preset)
    run = settings.run
    agent = core_parts.make_agent(
      kind=kind, **names.flat(names.part(settings, config))
    )
    try:
      devices = target_devices.devices(target)
    except ImportError as error:
      raise ValueError(str(error)) from error
    for function in accelerated.functions(
      agent, run.num_environments, run.group_size, devices
    ):
      if any(name in function.name for name in values.function):
        shared = settings.learner.num_devices or len(devices)
        used = shared if function.name.startswith('learner') else 1
        rows.append(_row(kind, function, target, used))
        print(*rows[-1], sep=' | ', flush=True)
  print()
  print(tables.markdown(_HEADER, rows, 'lllrrrrrlr', padded=True))


if __name__ == '__main__':
  _define_flags()
  training.define(Settings)
  flags.run_main(main, Settings)
