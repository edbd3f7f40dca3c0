"""Tests of estimates, from finished runs or from the scale."""

import json

import pytest

from experiments.harness import processes, records, runs
from experiments.paper import folders, plan_and_status, required_runs, scales

_REQUEST = required_runs.Request(
  ('table3',), (0, 1), ('MiniGrid-Empty-8x8-v0',), ('bt_ngu',)
)
_SPECS = required_runs.declared(_REQUEST, scales.get('laptop'))
_CPU, _GPU = processes.Slot('core', {}), processes.Slot('GPU', {}, is_gpu=True)


def test_estimates_follow_the_scale_and_then_finished_runs(tmp_path):
  scale = scales.get('laptop')
  folder = folders.Folder(tmp_path, scale)
  found = plan_and_status.estimates(folder, _SPECS)
  transfer = found[runs.TRANSFER]
  assert (transfer.runs, transfer.left, transfer.actor_steps) == (2, 2, 80_000)
  assert transfer.hours * 3600 == pytest.approx(80_000 / scale.steps_per_second)
  assert not transfer.is_measured
  seconds = found[runs.FINAL_EVALUATION].hours * 3600
  assert seconds == pytest.approx(2 * scale.evaluation_seconds)
  first = next(spec for spec in _SPECS if spec.stage == runs.TRANSFER)
  (tmp_path / first.workdir).mkdir(parents=True)
  completed = json.dumps({'max_actor_steps': first.budget_steps})
  (tmp_path / first.workdir / 'completed.json').write_text(completed)
  records.write(tmp_path, first, records.Attempts(attempts=1, seconds=720.0))
  transfer = plan_and_status.estimates(folder, _SPECS)[runs.TRANSFER]
  assert (transfer.runs, transfer.left, transfer.actor_steps) == (2, 1, 40_000)
  assert transfer.hours == pytest.approx(0.2) and transfer.is_measured
  text = plan_and_status.plan(folder, [], [_CPU])
  assert 'With 1 slot: 0.00 h' in text and 'in this directory' not in text


@pytest.mark.parametrize(
  ('kinds', 'hours'),
  [
    ([_CPU], 6.0),
    ([_CPU, _CPU], 3.0),
    ([_GPU, _GPU], 3.0),
    ([_GPU, _CPU], 4.0),  # Limited by training.
    ([_GPU, _GPU, _GPU, _GPU, _CPU], 2.0),  # Limited by evaluations.
  ],
)
def test_hours_with_slots(kinds, hours):
  by_stage = {
    runs.TRANSFER: plan_and_status.StageEstimate(4, 4, 4, 4.0, False),
    runs.FINAL_EVALUATION: plan_and_status.StageEstimate(2, 2, 0, 2.0, False),
  }
  assert plan_and_status._wall_hours(by_stage, kinds) == pytest.approx(hours)
