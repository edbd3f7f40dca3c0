"""Tests of parsing and checking slots."""

import os

import pytest

from experiments.harness import slots


@pytest.mark.parametrize(
  'text', ['cpu:0', 'cpu:999', 'gpu', 'gpu:0/9', 'x:1', 'gpu:0,gpu:1,gpu:0/2']
)
def test_invalid_slots_are_rejected(text):
  with pytest.raises(ValueError, match=f'slots={text!r}'):
    slots.parse(text)


def test_slots(monkeypatch):
  monkeypatch.setenv('XLA_FLAGS', '--mine')
  cores = sorted(os.sched_getaffinity(0))
  cpu, one, half, other = slots.parse('cpu:1,gpu:3,gpu:0/2')
  assert cpu.cores == {cores[0]}
  assert cpu.variables['OMP_NUM_THREADS'] == '1'
  assert cpu.variables['JAX_PLATFORMS'] == 'cpu'
  flags = cpu.variables['XLA_FLAGS'].split()
  assert flags[0] == '--mine' and 'intra_op_parallelism_threads=1' in flags
  assert one.variables['CUDA_VISIBLE_DEVICES'] == '3'
  assert 'XLA_PYTHON_CLIENT_MEM_FRACTION' not in one.variables
  assert half == other and not half.cores
  # Each inference server uses a fifth; two runs with their servers fit.
  assert half.variables['XLA_CLIENT_MEM_FRACTION'] == ''
  fraction = float(half.variables['XLA_PYTHON_CLIENT_MEM_FRACTION'])
  assert 0 < 2 * (fraction + 0.2) < 1
  assert len(slots.parse('cpu')) == len(cores)
