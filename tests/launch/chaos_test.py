"""A short version of `make chaos`: random faults from a printed seed."""

import os
import random

import pytest

pytest.importorskip('launchpad', reason='needs the full environment')

from tests.launch import chaos

_FAULTS = 2


def test_a_run_survives_random_faults_and_reaches_its_budget(tmp_path):
  seed = random.SystemRandom().randrange(1 << 32)
  # A suspended node is only noticed after a minute.
  quick = [f for f in chaos.faults(100, seed) if f[0] != 'stopped']
  print(f'seed {seed}: {quick[:_FAULTS]}')
  table = chaos.run(quick[:_FAULTS], tmp_path)
  assert table.count('\n') == _FAULTS + 1


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason='only root makes a small disk')
def test_a_run_survives_a_full_disk(tmp_path, capsys):
  chaos.run([(chaos.FILL_DISK, '')], tmp_path)
  assert 'Skipping full disks' not in capsys.readouterr().out
