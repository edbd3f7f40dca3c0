"""Nodes as threads of the launcher's process."""

import signal

from tests.launch import scripts
from tests.runtime import programs


# tests/launch/programs_test.py has a node that fails in a thread.
def test_program_ends_well_with_its_main_node(tmp_path):
  nodes = ['replay', 'idle', 'finish', 'end']
  with programs.Run(tmp_path, 'local_mt', *nodes) as run:
    code, output, errors = run.end()
  assert code == 0, errors
  assert 'actor steps 7 / 100 (7%) | replay 1' in errors
  assert f'counter at localhost:{run.port}' in output
  assert (tmp_path / 'idle-stopped').exists()
  assert 'Traceback' not in errors and 'did not stop' not in errors
  assert 'Waiting for workers' not in output  # Launchpad's countdown.


def test_second_interrupt_ends_the_process_with_its_threads(tmp_path):
  with programs.Run(tmp_path, 'local_mt', 'idle', 'stubborn') as run:
    run.wait_for('idle', 'stubborn', 'coordinator')
    run.process.send_signal(signal.SIGINT)
    scripts.wait_until((tmp_path / 'idle-stopped').exists, run.process, 20)
    run.process.send_signal(signal.SIGINT)
    code, _, errors = run.end(15)  # Far below the shutdown timeout.
  assert code == 130
  assert 'Traceback' not in errors
