"""Pending policy snapshots, also if an export fails."""

import pytest

from bt_acme.config import run as run_config
from bt_acme.runtime import snapshots


def test_a_snapshot_that_cannot_be_written_stays_pending(tmp_path):
  run = run_config.RunConfig(workdir=str(tmp_path), snapshot_steps='10,20,30')
  steps = snapshots.pending(run, 0)
  exported = []

  def export_due(actor_steps):
    snapshots.export_due(run, steps, actor_steps, export)

  def export(folder):
    if len(exported) == 1 and is_disk_full:
      raise OSError('No space left on device')
    exported.append(folder)

  is_disk_full = True
  export_due(9)
  assert not exported
  with pytest.raises(OSError, match='No space left'):
    export_due(25)
  assert exported == [run.snapshot_folder(10)]
  is_disk_full = False
  export_due(25)
  export_due(25)
  assert exported == [run.snapshot_folder(10), run.snapshot_folder(20)]
