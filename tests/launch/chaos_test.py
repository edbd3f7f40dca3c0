"""A short version of `make chaos`.

`tests/simulation` plays thousands of faults; tests of the engines cover real
processes that are killed, restarted or left behind.
"""

import pytest

from tests.launch import chaos


@pytest.mark.slow
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
