"""Tests that benchmarks run, without checking their measurements."""

import importlib
import json
import sys
from unittest import mock

import pytest

from benchmarks import __main__ as main
from benchmarks import (
  catalog,
  compiled,
  gpu_check,
  harness,
  hlo,
  scale,
  scale_traffic,
  target_devices,
  whole_programs,
)
from bt_acme import config as config_lib
from bt_acme.config import names, presets
from tests import python


def test_sides_alternate_and_the_first_round_is_ignored():
  sides = mock.Mock()
  sides.a.side_effect = [99.0, 2.0, 4.0, 5.0]
  sides.b.side_effect = [1.0, 8.0, 8.0, 15.0]
  comparison = harness.Comparison('x', 'ms', sides.a, sides.b, limit=1.0)
  row = harness.measure(comparison, rounds=3)
  assert sides.mock_calls == [mock.call.a(), mock.call.b()] * 4
  assert (row['ours'], row['theirs'], row['rounds']) == (4e3, 8e3, 3)
  assert (row['ratio'], row['ratio_min'], row['ratio_max']) == (3.0, 2.0, 4.0)
  assert (row['limit'], row['fraction']) == (1e3, 0.25)


def test_rates_and_counts():
  rate = harness.Comparison('x', 'steps/s', lambda: 0.5, limit=0.25, once=True)
  row = harness.measure(rate, rounds=9)
  assert (row['ours'], row['limit'], row['fraction']) == (2.0, 4.0, 0.5)
  assert row['rounds'] == 1 and 'ratio' not in row
  count = harness.Comparison('x', 'MB/batch', lambda: 3.0)
  assert harness.measure(count, rounds=1)['ours'] == 3.0


def test_time_includes_unfinished_work(monkeypatch):
  times = [0.0]
  monkeypatch.setattr(harness, 'clock', lambda: times[0])
  monkeypatch.setattr(harness, 'round_seconds', 4.0)

  def work(seconds):
    times[0] += seconds
    return 10 * seconds

  side = harness.timed(lambda: work(1), share=0.5, finish=lambda: work(4))
  assert side() == (2 + 4) / 2
  assert harness.timed(lambda: work(1), units=None)() == 1 / 10


def test_format_rows():
  rows = [
    {'name': 'a', 'unit': 's', 'ours': 1234.5, 'rounds': 1, 'peer': 'dm-acme'},
    {'name': 'b', 'unit': 's', 'ours': 0.5, 'rounds': 2, 'peer': 'NumPy'},
  ]
  rows[0].update(note='why')
  rows[1].update(note='', theirs=1.0, ratio=2.0, ratio_min=1.5, ratio_max=3.0)
  rows[1].update(limit=0.25, fraction=0.5)
  table = [
    [cell.strip() for cell in line.strip('|').split('|')]
    for line in harness.format_rows(rows).splitlines()
  ]
  assert table[2] == ['a', 's', '1,234', '', '', '', '']
  assert table[3] == (
    ['b', 's', '0.5', '1 (NumPy)', '2.00x (1.50-3.00)', '0.25', '50%']
  )
  assert table[-1] == ['* a: why']


@pytest.fixture(name='command_line')
def make_command_line(monkeypatch):
  def set_arguments(*arguments):
    monkeypatch.setattr(sys, 'argv', ['benchmarks', *arguments])

  return set_arguments


def test_list_and_unknown_names(command_line, capsys):
  command_line('--list')
  assert main.main() == 0
  listed = capsys.readouterr().out.splitlines()
  assert [line.split()[0] for line in listed] == list(catalog.BENCHMARKS)
  for name, benchmark in catalog.BENCHMARKS.items():
    module = importlib.import_module(f'benchmarks.{benchmark.module}')
    assert callable(getattr(module, name.replace('-', '_')))
  for arguments, message in (
    (['actr'], "['actr']. Choose from ['env', "),
    (['--here'], '--here takes one benchmark'),
    (['actor', '--quick', '--save'], 'meaningless numbers'),
  ):
    command_line(*arguments)
    with pytest.raises(SystemExit, match='2'):
      main.main()
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
  'name',
  [
    pytest.param(name, marks=[] if name == 'h2d' else pytest.mark.slow)
    for name in catalog.BENCHMARKS
  ],
)
def test_a_benchmark_returns_rows(name, tmp_path, command_line, capsys):
  path = tmp_path / 'results.json'
  command_line(name, '--quick', '--rounds=1', f'--json={path}')
  assert main.main() == 0, capsys.readouterr().err
  assert name in capsys.readouterr().out
  rows = json.loads(path.read_text())[name]['rows']
  assert rows
  for row in rows:
    assert row['ours'] > 0 and row['theirs'] > 0 and row['ratio'] > 0


# Takes ten learner steps and exits.
PROGRAM_THAT_ENDS = """
import pathlib, sys
log = pathlib.Path(sys.argv[1], 'logs/learner/logs.csv')
log.parent.mkdir(parents=True)
log.write_text('actor_steps,learner_steps\\n1600,10\\n')
sys.exit('why')
"""


def test_a_program_that_ends_is_not_measured():
  command = [sys.executable, '-c', PROGRAM_THAT_ENDS]
  with pytest.raises(RuntimeError, match='exit code 1. Output:\nwhy'):
    whole_programs._seconds_per_step(lambda workdir: [*command, workdir], 0.0)


COSTS = {
  **{'act_s': 1e-3, 'emulate_s': 5e-4, 'samples_per_insert': 0.4},
  **dict.fromkeys(('insert_s', 'coordinate_s', 'sample_s', 'decode_s'), 0.0),
  **{'step_bytes': 100.0, 'parameter_bytes': 900.0},
  **{'memory_bytes': 50e9, 'episodic_bytes': 10e9},
}


def test_the_resource_used_most_limits_the_plan():
  cluster = scale.Cluster('x', 80, 50, 0, 100e9, 80e6, 2.0)
  used = scale.loads(cluster, COSTS)
  shares = {'CPU cores': 0.5, 'memory': 0.5, 'network': 0.5}
  assert used == pytest.approx({**shares, 'learner and server': 3.125 / 50})
  assert scale.plan(cluster, used)[3:] == ['40,000', '28', '56']
  # Actors that only step environments need half the cores.
  used = scale.loads(cluster._replace(cores=20, server=160_000), COSTS)
  assert used['CPU cores'] == pytest.approx(1.0)
  assert used['memory'] == pytest.approx(0.4)
  assert used['learner and server'] == pytest.approx(3.125 / 50 + 0.25)
  used = scale.loads(cluster._replace(cores=20), COSTS)
  assert scale.plan(cluster, used)[2:5] == ['CPU cores', '20,000', '56']


def test_plans_of_all_clusters(command_line, capsys):
  command_line('--cpu_machines=64')
  scale.main()
  table = capsys.readouterr().out.splitlines()
  assert len(table) == 5 and '64 CPU machines' in table[-1]


@pytest.mark.slow
def test_the_servers_of_a_large_run_are_measured(monkeypatch):
  monkeypatch.setattr(scale_traffic, '_ACTORS', 4)
  measured = scale_traffic.measure(sequences=1_300)
  assert measured['writers'] == 4 * 16
  assert all(value > 0 for value in measured.values())
  assert set(COSTS) <= {*measured, *scale.read_costs()}


PROGRAM = """HloModule jit_f, input_output_alias={ {0}: (0, {}, may-alias) }

%fused (p0: f32[100,8], p1: s32[], p2: f32[8]) -> f32[100,8] {
  %p0 = f32[100,8]{1,0:T(8,128)} parameter(0)
  %p1 = s32[] parameter(1)
  %p2 = f32[8]{0} parameter(2)
  %zero = s32[] constant(0)
  %row = f32[1,8]{1,0} dynamic-slice(%p0, %p1, %zero), dynamic_slice_sizes={1,8}
  %flat = f32[8]{0} bitcast(%row)
  %sum = f32[8]{0} add(%flat, %p2)
  %new = f32[1,8]{1,0} bitcast(%sum)
  ROOT %updated = f32[100,8]{1,0} UPDATE
}

%body (t: (s32[], f32[100,8], f32[8])) -> (s32[], f32[100,8], f32[8]) {
  %t = (s32[], f32[100,8], f32[8]) parameter(0)
  %i = s32[] get-tuple-element(%t), index=0
  %x = f32[100,8]{1,0} get-tuple-element(%t), index=1
  %y = f32[8]{0} get-tuple-element(%t), index=2
  %next = s32[] add(%i, %i), backend_config={"estimated_cycles":"7"}
  %f = f32[100,8]{1,0} fusion(%x, %i, %y), kind=kLoop, calls=%fused
  ROOT %r = (s32[], f32[100,8], /*index=2*/f32[8]) tuple(%next, %f, %y)
}

ENTRY %main (a: (s32[], f32[100,8], f32[8])) -> (s32[], f32[100,8], f32[8]) {
  %a = (s32[], f32[100,8], f32[8]) parameter(0)
  %z = bf16[4]{0} custom-call(), custom_call_target="start"
  ROOT %w = (s32[], f32[100,8], f32[8]) while(%a), condition=%cond, \
body=%body, backend_config={"known_trip_count":{"n":"50"}}
}
"""

UPDATES = (
  'dynamic-update-slice(%p0, %new, %p1, %zero)',
  'scatter(%p0, %p1, %new), to_apply=%last',
)


@pytest.mark.parametrize('update', UPDATES)
def test_kernels_and_bytes_of_a_compiled_program(update):
  program = PROGRAM.replace('UPDATE', update)
  found = {x.operation.name: x for x in hlo.kernels(program)}
  times = {name: x.times for name, x in found.items()}
  assert times == {'z': 1, 'next': 50, 'f': 50}
  # A row is read and written in place, with an index and another row.
  assert found['f'].bytes == 4 * (8 + 8 + 1 + 8)
  assert found['next'].bytes == 3 * 4 and found['next'].operation.cycles == 7
  assert hlo.size('(f32[2,3]{1,0}, pred[], bf16[5], token[])') == 24 + 1 + 10


def test_duration_of_a_compiled_program():
  kernels = hlo.kernels(PROGRAM.replace('UPDATE', UPDATES[0]))
  # Of 101 kernels, the 50 with 100 bytes take longer than a launch.
  gpu = target_devices.Target(
    'gpu', 1e9, 25e6, 1e12, 1e9, target_devices.TARGETS['h200'].gpu
  )
  assert [x.bytes for x in kernels if x.operation.name == 'f'] == [100]
  busy = 50 * 4e-6 + 51 * 2e-6
  seconds, limit = compiled._duration(kernels, gpu, flops=151e6)
  assert seconds == pytest.approx(busy)
  assert limit == 'launches 34%, bytes 74%, FLOP 50%'
  seconds, _ = compiled._duration(kernels, gpu, flops=604e6)
  assert seconds == pytest.approx(2 * busy)  # The products take longer.
  tpu = gpu._replace(gpu='', clock=1e6)
  seconds, limit = compiled._duration(kernels, tpu, flops=35e6)
  assert seconds == pytest.approx(50 * 7 / 1e6)
  assert limit == 'bytes 64%, FLOP 10%'


# Replaces the compiler by one that reports the size of the batch.
COMPILED = """
import jax
from benchmarks import accelerated, compiled, target_devices
from bt_acme.cli import flags, training

def estimate(function, target, num_devices):
  _, batch, probabilities = function.arguments
  return compiled.CompiledStep(
    memory=20e9, flops=num_devices * 1e12, bytes=1e9 * len(batch.action),
    kernels=len(probabilities), seconds=0.5, limit='nothing')

def functions(agent, *sizes, inner=accelerated.functions):
  print('environments, group:', *sizes[:2])
  return inner(agent, *sizes)

accelerated.functions = functions
target_devices.devices = lambda name: 2 * jax.devices()
compiled.estimate = estimate
compiled._define_flags()
training.define(compiled.Settings)
flags.run_main(compiled.main, compiled.Settings)
"""


def test_table_of_compiled_functions():
  done = python.check(
    *('-c', COMPILED, '--target=v5e', '--target=h200', '--preset=minigrid'),
    *('--batch_size=7', '--num_devices=1'),
  )
  # The preset has one actor with 16 environments.
  assert 'environments, group: 16 16\n' in done.stdout
  rows = done.stdout.splitlines()[-2:]
  cells = [[x.strip() for x in row.strip('|').split('|')] for row in rows]
  preset = presets.get('minigrid', config_lib.R2D2Config)
  length = names.build(config_lib.R2D2Config, preset).replay.sequence_length
  end = '1.000', f'{length}.0', '7', '500.0', 'nothing'
  assert [row[:-1] for row in cells] == [
    ['TPU v5e', 'R2D2', 'learner step', '20.00, does not fit', *end],
    ['H200', 'R2D2', 'learner step', '20.00', *end],
  ]


def test_kernel_times_of_a_profile():
  names = [
    {'ph': 'M', 'pid': 1, 'args': {'name': '/device:GPU:0'}},
    {'ph': 'M', 'pid': 2, 'args': {'name': '/host:CPU'}},
    {'ph': 'M', 'pid': 2, 'tid': 5, 'args': {'name': 'tf_XLAEigen'}},
  ]
  events = [
    {'ph': 'X', 'pid': pid, 'tid': tid, 'name': name, 'dur': dur}
    for pid, tid, name, dur in (
      *((1, 1, 'gemm', 3), (1, 2, 'gemm', 4), (2, 5, 'dot', 2)),
      *((1, 1, 'add', 1), (2, 9, 'python', 100)),
    )
  ]
  assert gpu_check.kernel_times(names + events) == {'gemm': 7, 'add': 1}
  assert gpu_check.kernel_times(names[1:] + events[2:3]) == {'dot': 2}


def test_check_without_a_gpu_says_what_is_missing(
  command_line, tmp_path, monkeypatch, capsys
):
  report = tmp_path / 'report.md'
  monkeypatch.setattr(harness, 'round_seconds', harness.round_seconds)
  command_line(f'--output={report}')
  assert gpu_check.main() == 2
  errors = capsys.readouterr().err
  assert "error: platform='gpu'" in errors and 'cuda12' in errors
  assert not report.exists()


@pytest.mark.slow
def test_the_accelerator_check_runs_on_a_cpu(tmp_path):
  report = tmp_path / 'report.md'
  arguments = ('--platform=cpu', '--scale=tiny', f'--output={report}')
  python.check('-m', 'benchmarks.gpu_check', *arguments, cwd=python.ROOT)
  text = report.read_text()
  assert 'FAILED' not in text
  # The run needs the memory of a GPU that the other parts reserve.
  assert text.index('## A run') < text.index('## Numbers')
  for part in 'jaxlib NGU learner-gpu inference-gpu kernel run'.split():
    assert part in text
