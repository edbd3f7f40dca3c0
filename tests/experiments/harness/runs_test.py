"""Tests that a run is identified by its settings."""

import dataclasses
import os
import re

import pytest

from experiments.harness import runs

_NGU = runs.RunSpec(
  *(runs.PRETRAINING, 'ngu', 'pong', 3, 'run_ngu', 2_000),
  settings=(('lstm_size', 64),),
)
_BT = runs.RunSpec(
  *(runs.TRANSFER, 'bt_ngu', 'pong', 3, 'run_bt', 1_000),
  needs=(runs.Need('behavior', _NGU), runs.Need('init_from', _NGU)),
)


def _changed(spec, **changes):
  return dataclasses.replace(spec, **changes)


def test_an_id_is_readable_and_reproducible():
  assert re.fullmatch(r'ngu/pong/s3-[0-9a-f]{8}', _NGU.id)
  assert _changed(_NGU).id == _NGU.id


@pytest.mark.parametrize(
  ('change', 'keeps_id'),
  [
    ({'lstm_size': 32}, False),
    ({'preset': 'minigrid'}, False),
    ({'lp_launch_type': 'in_process'}, False),
    ({'seed': 4}, False),
    ({'env': 'hero'}, False),
    # These settings may change when a run is resumed.
    ({'evaluation_period': 7}, True),
    ({'snapshot_steps': '500'}, True),
    ({'budget_steps': 5_000}, True),
  ],
)
def test_changing_a_setting_creates_another_run(change, keeps_id):
  if not change.keys() & vars(_NGU).keys():
    change = {'settings': tuple({**dict(_NGU.settings), **change}.items())}
  assert (_changed(_NGU, **change).id == _NGU.id) == keeps_id


def test_the_id_depends_on_the_pretraining_run():
  behavior, init = _BT.needs
  other = behavior._replace(run=_changed(_NGU, seed=4))
  assert _changed(_BT, needs=(other, init)).id != _BT.id
  snapshot = behavior._replace(actor_steps=500)
  changed = _changed(_BT, needs=(snapshot, init))
  assert changed.id != _BT.id
  assert f'--behavior={_NGU.workdir}/behavior-500' in changed.flags
  assert f'--init_from={_NGU.workdir}/behavior' in changed.flags


def test_the_command_can_be_executed_in_the_directory_of_all_runs():
  _, script, *flags = _BT.command.split()
  assert os.path.isabs(script) and flags == _BT.flags


def test_pretraining_comes_first_and_then_seed_by_seed():
  r2d2 = _changed(_BT, arm='r2d2', script='run_r2d2', needs=())
  specs = [_changed(spec, seed=x) for x in (1, 0) for spec in (_BT, r2d2)]
  ordered = runs.ordered([*specs, *specs])
  assert [(spec.arm, spec.seed) for spec in ordered] == [
    ('ngu', 3),
    *(('bt_ngu', 0), ('r2d2', 0), ('bt_ngu', 1), ('r2d2', 1)),
  ]


@pytest.mark.parametrize(
  ('text', 'message'),
  [
    ('lstm_sise=3', "did you mean 'lstm_size'"),
    ('env=pong', 'determined by'),
    # Evaluations are not affected, so their own settings are rejected.
    ('epsilon=0.1', 'did you mean'),
    ('lstm_size=a', 'type int'),
    ('flights=perhaps', 'type bool'),
  ],
)
def test_invalid_settings_are_rejected(text, message):
  name, _, value = text.partition('=')
  with pytest.raises(ValueError, match=message):
    runs.parsed(name, value)


def test_settings_are_parsed_by_type():
  assert runs.parsed('flights', 'False') is False
  assert runs.parsed('learning_rate', '1e-4') == 1e-4
  assert runs.parsed('lstm_size', '8') == 8
