"""Runs on three simulated machines that lose their network or power."""

import pytest

from tests.launch import chaos, crowd
from tests.launch import machines as machines_lib

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def skip_without_machines():
  missing = machines_lib.missing()
  if missing:
    # tests/runtime/engines/ray_cluster_test.py has two machines on loopback.
    pytest.skip(f'needs {missing}')


def test_many_nodes_survive_the_loss_of_a_machine():
  assert 'restart of the nodes of a crashed machine' in crowd.run(12)


def test_a_run_survives_its_machines(tmp_path):
  faults = [(chaos.BLIP, 1), (chaos.CRASH, 2), (chaos.CUT, 1)]
  chaos.run(faults, tmp_path, num_machines=3)
