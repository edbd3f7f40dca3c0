"""Tests the estimates of required and available memory."""

import dataclasses

import pytest

from bt_acme.replay import fields, memory_estimate
from tests.replay import episodes


def test_memory_estimate():
  config = episodes.make_config(
    trace_length=160, sequence_period=80, max_replay_size=125_000
  )
  layout = fields.ReplayLayout(config, (84, 84, 1), 4, lstm_size=512)
  estimate = memory_estimate.estimate(layout)
  # 80 steps with a compressed frame of 7056 bytes, the recurrent state, and an
  # item of the server.
  assert estimate == 125_001 * (80 * (7056 // 17 + 16) + 4096 + 1024)
  # 161 rows of a stack and 34 other bytes, and the recurrent state once.
  config = dataclasses.replace(config, codec='tensors')
  tensors = layout._replace(config=config)
  row = 4 * 7056 + 34
  assert memory_estimate.estimate(tensors) == 125_000 * (
    (161 * row + 4096) // 2 + 1024
  )
  # A burn-in is stored too.
  longer = dataclasses.replace(config, burn_in_length=80)
  layout = layout._replace(config=longer)
  assert memory_estimate.estimate(layout) == 125_000 * (
    (241 * row + 4096) // 2 + 1024
  )
  sizes = [memory_estimate.size_in_words(x) for x in (2_500_000, 10**9)]
  assert sizes == ['2.5 MB', '1.0 GB']


@pytest.mark.parametrize(
  'own, limits, expected',
  [
    ('0::/', {'memory.max': '7000'}, 7000),
    ('0::/a/b', {'a/b/memory.max': 'max', 'a/memory.max': '6000'}, 6000),
    (
      '4:cpu,memory:/a\n0::/',
      {
        'memory/memory.limit_in_bytes': str(2**63 - 4096),
        'memory/a/memory.limit_in_bytes': '5000',
      },
      5000,
    ),
    # As seen from within a container.
    ('4:memory:/not/here', {'memory/memory.limit_in_bytes': '4000'}, 4000),
    ('0::/', {'memory.max': 'max'}, None),
    ('4:cpu:/', {'memory/memory.limit_in_bytes': '3000'}, None),
  ],
)
def test_limits_of_control_groups(tmp_path, own, limits, expected, monkeypatch):
  (tmp_path / 'own').write_text(own + '\n')
  for name, limit in limits.items():
    path = tmp_path / 'groups' / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(limit + '\n')
  monkeypatch.setattr(memory_estimate, '_CONTROL_GROUPS', tmp_path / 'groups')
  monkeypatch.setattr(memory_estimate, '_OWN_GROUPS', tmp_path / 'none')
  physical = memory_estimate.available_memory()
  monkeypatch.setattr(memory_estimate, '_OWN_GROUPS', tmp_path / 'own')
  assert memory_estimate.available_memory() == (expected or physical)
