"""Short versions of `make chaos`, also on simulated machines.

`tests/simulation` plays thousands of faults; tests of the engines cover real
processes that are killed, restarted or left behind.
"""

import pytest

from tests.launch import chaos, crowd
from tests.launch import machines as machines_lib

pytestmark = pytest.mark.slow


@pytest.fixture(name='machines')
def skip_without_machines():
  missing = machines_lib.missing()
  if missing:
    # tests/runtime/engines/ray_cluster_test.py has two machines on loopback.
    pytest.skip(f'needs {missing}')


def test_a_run_survives_each_kind_of_fault(tmp_path):
  faults = [
    ('killed', 'actor/0'),
    ('killed', 'inference/0'),
    ('killed', 'learner/0'),
    ('killed', 'replay/0'),
    ('killed', 'coordinator/0'),
    ('told to end', 'evaluator/0'),
    ('stopped', 'actor/1'),
    ('stopped', 'learner/0'),
    (chaos.INTERRUPT, ''),
    (chaos.KILL_LAUNCHER, ''),
    (chaos.FILL_DISK, ''),  # Only root can mount a disk to fill.
  ]
  chaos.run(faults, tmp_path)


def test_many_nodes_survive_the_loss_of_a_machine(machines):
  assert 'restart of the nodes of a crashed machine' in crowd.run(12)


def test_a_run_survives_the_loss_of_its_network_or_power(machines, tmp_path):
  faults = [(chaos.BLIP, 1), (chaos.CRASH, 2), (chaos.CUT, 1)]
  chaos.run(faults, tmp_path, num_machines=3)
