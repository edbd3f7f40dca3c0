r"""Checks an accelerator from driver to whole run, and writes a report.

  make gpu-check
  .venv/bin/python -m benchmarks.gpu_check --platform=cpu --scale=tiny

The file has the versions of driver and packages, a whole run with actors, the
numbers of a learner step against those of a CPU, the rows of `benchmarks.gpu`,
and the kernels that take most of a learner step. It takes about ten minutes.
The exit code is 1 if a part has failed.
"""

import argparse
import collections
import gzip
import itertools
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
import optax

from benchmarks import core_parts, gpu, harness
from bt_acme import assembly, files, learner_assembly, version
from bt_acme import learner as learner_lib
from bt_acme.evaluation import tables

# The largest relative difference from a CPU that rounding explains.
_TOLERANCE = {'float32': 1e-3, 'default': 0.05}
_PACKAGES = ('jaxlib', 'jax-cuda12-plugin', 'jax-cuda13-plugin', 'libtpu')
# Settings of agents with the torso of Atari and short sequences.
_SMALL: dict[str, Any] = {
  **dict.fromkeys(('torso_size', 'lstm_size', 'head_size'), 64),
  **{'trace_length': 16, 'sequence_period': 8, 'batch_size': 8},
}
_STEPS = 3  # Learner steps in the profile.
_NO_DEVICE = (
  'error: platform={!r}: JAX finds no such device on this machine. Install the '
  "driver and `pip install --editable '.[cuda12]'` (or '.[tpu]'), or choose "
  '--platform=cpu --scale=tiny, which only tests this command.'
)
_RUN_SECONDS = 400
_LAST_LINES = 12  # Lines of a run's output in the report.
_IN_PROCESS = ('--lp_launch_type=in_process', '--inference=local')
_FEWER = ('--num_actors=1', '--min_replay_size=100', '--max_actor_steps=30000')
_RUNS = {
  'paper': [
    *('--preset=gpu', '--env=montezuma_revenge', '--max_actor_steps=150000'),
    *('--min_replay_size=200', '--max_replay_size=2000'),
  ],
  'tiny': [
    *('--preset=minigrid', '--env=MiniGrid-Empty-5x5-v0', '--inference=server'),
    *('--max_actor_steps=4000', '--evaluation_episodes=2'),
  ],
}


def _versions(devices: Sequence[jax.Device]) -> str:
  """Lists devices, driver, packages and the machine."""
  lines = [f'{len(devices)} x {devices[0].device_kind}']
  if shutil.which('nvidia-smi'):
    fields = 'name,driver_version,memory.total,clocks.max.sm'
    command = ['nvidia-smi', f'--query-gpu={fields}', '--format=csv,noheader']
    lines += subprocess.run(
      command, capture_output=True, text=True, check=False
    ).stdout.splitlines()
  lines += [
    f'{name} {version.installed(name) or "(missing)"}' for name in _PACKAGES
  ]
  lines += [f'{name}: {value}' for name, value in harness.machine().items()]
  return '\n'.join(f'* {line}' for line in lines)


def _step_on(agent: assembly.Agent, device: jax.Device) -> dict[str, Any]:
  """Takes a learner step on a device and returns the results by name."""
  core = learner_assembly.make_learner_core(agent)
  batch = core_parts.random_batch(agent, core_parts.random_frames(64))
  inputs = (batch, np.ones(agent.config.learner.batch_size, np.float32))
  with jax.default_device(jax.devices('cpu')[0]):
    state = core.init(jax.random.key(0))
  state, priorities, metrics = jax.jit(core.step)(
    *jax.device_put((state, *inputs), device)
  )
  return jax.device_get(
    {
      'priorities': priorities,
      # Adam's first step depends only on the sign of most gradients.
      'gradients': optax.tree.get(state.opt_state, 'mu'),
      **metrics,
    }
  )


def _difference(x: Any, y: Any) -> float:
  """Returns the largest difference, relative to the largest value, or NaN."""
  pairs = zip(jax.tree.leaves(x), jax.tree.leaves(y), strict=True)
  relative = [
    float(np.max(np.abs(a - b))) / (float(np.max(np.abs(b))) or np.inf)
    for a, b in pairs
  ]
  return float(np.max(relative))


def _numbers(device: jax.Device) -> str:
  """Compares a learner step with that of a CPU.

  Raises:
    RuntimeError: if rounding does not explain a difference.
  """
  host = jax.devices('cpu')[0]
  what = ('priorities', 'loss', 'gradient_norm', 'gradients')
  rows = []
  passed = True
  for kind, precision in itertools.product(core_parts.CONFIGS, _TOLERANCE):
    agent = core_parts.make_agent(
      kind=kind, matmul_precision=precision, **_SMALL
    )
    ours, theirs = _step_on(agent, device), _step_on(agent, host)
    differences = [_difference(ours[name], theirs[name]) for name in what]
    passed &= bool(np.max(differences) < _TOLERANCE[precision])
    rows.append([kind.upper(), precision, *(f'{x:.1e}' for x in differences)])
  header = ('agent', 'precision', *what)
  table = tables.markdown(header, rows, 'llrrrr', padded=True)
  if not passed:
    raise RuntimeError(f'Differences above {_TOLERANCE}:\n\n{table}')
  return f'Relative differences from a CPU after one step:\n\n{table}'


def _profile(sizes: gpu.SizeScale) -> str:
  """Lists the kernels that take most of a learner step."""
  agent = gpu.learner_agent(sizes, 'float32')
  learner = learner_lib.Learner(agent, jax.random.key(0))
  sample = core_parts.random_sample(
    agent, core_parts.random_frames(2 * sizes.length + 2)
  )
  gpu.take_step(learner, sample)
  with tempfile.TemporaryDirectory() as folder:
    with jax.profiler.trace(folder):
      for _ in range(_STEPS):
        gpu.take_step(learner, sample)
    (path,) = pathlib.Path(folder).rglob('*.trace.json.gz')
    with gzip.open(path) as file:
      durations = kernel_times(json.load(file)['traceEvents'])
  total = sum(durations.values())
  rows = [
    (name[:60], f'{duration / _STEPS / 1e3:.3f}', f'{duration / total:.0%}')
    for name, duration in durations.most_common(10)
  ]
  header = ('kernel', 'ms a step', 'share')
  return tables.markdown(header, rows, padded=True)


def kernel_times(
  events: Sequence[dict[str, Any]],
) -> 'collections.Counter[str]':
  """Sums the microseconds of each kernel in a profile of JAX.

  Args:
    events: the events of a `trace.json`.
  """
  names = {
    (event['pid'], event.get('tid')): event['args']['name']
    for event in events
    if event.get('ph') == 'M' and 'name' in event.get('args', {})
  }
  devices = {
    pid for (pid, _), name in names.items() if name.startswith('/device:')
  }

  def is_kernel(event: dict[str, Any]) -> bool:
    if devices:
      return event['pid'] in devices
    thread = names.get((event['pid'], event.get('tid')), '')
    return thread.startswith('tf_XLA')  # The threads of XLA on a CPU.

  durations: collections.Counter[str] = collections.Counter()
  for event in events:
    if event.get('ph') == 'X' and is_kernel(event):
      durations[event['name']] += event['dur']
  return durations


def _run(scale: str) -> str:
  """Pre-trains with actors, a learner and an inference server.

  Without Launchpad, which needs Python 3.10, one process does all of this, with
  few environments and without a server.

  Raises:
    RuntimeError: if the run fails.
  """
  command = [sys.executable, 'launch/run_ngu.py', *_RUNS[scale]]
  title = 'With several processes'
  if not version.installed('dm-launchpad'):
    command += [*_IN_PROCESS, *(_FEWER if scale == 'paper' else ())]
    title = 'In one process, because Launchpad is not installed'
  start = time.monotonic()
  with tempfile.TemporaryDirectory() as folder:
    done = subprocess.run(
      ['timeout', str(_RUN_SECONDS), *command, f'--workdir={folder}/run'],
      capture_output=True,
      text=True,
      check=False,
    )
  lines = (done.stdout + done.stderr).splitlines()[-_LAST_LINES:]
  text = '\n'.join(['```', *lines, '```'])
  if done.returncode:
    raise RuntimeError(f'Exit code {done.returncode}:\n\n{text}')
  return f'{title}, {time.monotonic() - start:.0f} s:\n\n{text}'


def _section(title: str, text: Callable[[], str]) -> tuple[str, bool]:
  """Returns a section of the report, and whether the part has passed."""
  print(f'{title} ...', file=sys.stderr, flush=True)
  try:
    return f'## {title}\n\n{text()}', True
  except Exception as error:  # The other parts are worth measuring.
    traceback.print_exc()
    return f'## {title}: FAILED\n\n{error}', False


def main() -> int:
  """Runs all parts; returns 1 if one has failed, and 2 without a device."""
  parser = argparse.ArgumentParser(prog='python -m benchmarks.gpu_check')
  add = parser.add_argument
  add('--platform', default='gpu', choices=('gpu', 'tpu', 'cpu'))
  add('--scale', default='paper', choices=list(gpu.SCALES), help='sizes')
  add(
    '--output',
    type=pathlib.Path,
    default=pathlib.Path('gpu_check.md'),
    help='the Markdown file to write (default: gpu_check.md)',
  )
  options = harness.parse(parser)
  scale, sizes = options.scale, gpu.SCALES[options.scale]
  harness.round_seconds = sizes.seconds
  try:
    devices = jax.devices(options.platform)
  except RuntimeError:
    print(_NO_DEVICE.format(options.platform), file=sys.stderr)
    return 2
  start = time.monotonic()
  with jax.default_device(devices[0]):
    sections = [
      _section('Versions', lambda: _versions(devices)),
      # This process has reserved nothing of a GPU's memory so far.
      _section('A run with actors', lambda: _run(scale)),
      _section('Numbers', lambda: _numbers(devices[0])),
      _section('Speed', lambda: harness.format_rows(list(gpu.rows(sizes)))),
      _section('Kernels of a learner step', lambda: _profile(sizes)),
    ]
  minutes = (time.monotonic() - start) / 60
  title = f'# {devices[0].device_kind}, scale {scale}, {minutes:.1f} minutes'
  report = '\n\n'.join([title, *(text for text, _ in sections)])
  print(report)
  files.write_text(options.output, report + '\n')
  print(f'\nWritten to {options.output}.')
  return 0 if all(passed for _, passed in sections) else 1


if __name__ == '__main__':
  sys.exit(main())
