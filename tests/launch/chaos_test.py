"""A short part of `make chaos`: random faults, from a seed that is printed."""

import os
import random

import pytest

pytest.importorskip('launchpad', reason='needs the full environment')

from tests.launch import chaos

_FAULTS = 2


def test_a_run_survives_random_faults_and_reaches_its_budget(tmp_path):
  seed = random.SystemRandom().randrange(1 << 32)
  # A node that was stopped is missed after a minute.
  quick = [f for f in chaos.faults(100, seed) if f[0] != 'stopped']
  print(f'seed {seed}: {quick[:_FAULTS]}')
  table = chaos.run(quick[:_FAULTS], tmp_path)
  assert table.count('\n') == _FAULTS + 1


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason='only root makes a small disk')
def test_a_run_goes_on_while_its_disk_is_full(tmp_path, capsys):
  chaos.run([(chaos.FILL_DISK, '')], tmp_path)
  assert 'No disk is filled' not in capsys.readouterr().out
