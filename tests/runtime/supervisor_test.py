"""Real programs on both engines of this machine, with every kind of end."""

import signal
import time

import pytest

pytest.importorskip('launchpad', reason='needs the full environment')

from tests.runtime import programs


@pytest.mark.parametrize('launch_type', ['local_mp', 'local_mt'])
def test_program_ends_well_with_its_main_node(tmp_path, launch_type):
  nodes = ['replay', 'idle', 'finish', 'end']
  with programs.Run(tmp_path, launch_type, nodes) as run:
    code, output, errors = run.end()
    assert code == 0, errors
    shown = output if launch_type == 'local_mp' else errors
    assert 'actor steps 7 / 100 (7%) | replay 1' in shown
    assert f'counter at localhost:{run.port}' in output + errors
    # The node that would never end was asked to stop, and cleaned up.
    assert (tmp_path / 'idle-stopped').exists()
    assert 'Traceback' not in errors and 'did not stop' not in errors
  if launch_type == 'local_mt':
    assert 'Waiting for workers' not in output  # Launchpad's countdown.
    return
  # Status lines are on standard output; all other lines have a prefix.
  assert all(line.startswith('actor steps') for line in output.splitlines())
  assert '[worker/0] says idle\n' in errors
  assert '[worker/1] says finish\n' in errors
  assert 'Reverb client connecting' not in errors
  log = (tmp_path / 'processes' / 'worker-0.log').read_text()
  assert log.startswith('--- ') and 'says idle\nsays idle-stopped\n' in log
  assert 'Waiting for workers' not in log
  log = (tmp_path / 'processes' / 'coordinator-0.log').read_text()
  assert 'actor steps 7 / 100' in log and 'Reverb client connecting' in log
  assert (tmp_path / 'processes' / 'replay-0.log').exists()


# tests/launch/programs_test.py has a node that fails in a thread.
def test_failing_node_ends_program_with_its_traceback(tmp_path):
  with programs.Run(tmp_path, 'local_mp', ['idle', 'fail']) as run:
    code, _, errors = run.end()
    assert code == 1
    assert errors.rstrip().endswith('RuntimeError: a marked failure')
    report = errors[errors.index('error: worker/1 failed') :]
    assert 'Traceback' in report and 'in fail' in report


def test_interrupt_stops_threads(tmp_path):
  with programs.Run(tmp_path, 'local_mt', ['idle']) as run:
    run.wait_for('idle', 'coordinator')
    start = time.monotonic()
    run.process.send_signal(signal.SIGINT)
    code, _, errors = run.end(15)
    assert code == 130, errors
    assert (tmp_path / 'idle-stopped').exists()
    # Far below the shutdown timeout: no node had to be killed.
    assert time.monotonic() - start < 8
    assert 'Traceback' not in errors


def test_interrupt_stops_processes_and_kills_a_node_that_does_not(tmp_path):
  nodes = ['idle', 'stubborn']
  with programs.Run(
    tmp_path, 'local_mp', nodes, grace='3', checked='checked'
  ) as run:
    run.wait_for(*nodes, 'coordinator')
    run.process.send_signal(signal.SIGTERM)
    code, _, errors = run.end(15)
    assert code == 143, errors
    assert (tmp_path / 'idle-stopped').exists()
    assert 'worker/1 did not stop' in errors
    assert 'Traceback' not in errors


def test_second_interrupt_ends_the_process_of_threads_at_once(tmp_path):
  with programs.Run(tmp_path, 'local_mt', ['stubborn'], grace='600') as run:
    run.wait_for('stubborn', 'coordinator')
    run.process.send_signal(signal.SIGINT)
    # On a busy machine, two signals at once would be handled as one.
    time.sleep(1.0)
    assert run.process.poll() is None
    run.process.send_signal(signal.SIGINT)
    code, _, _ = run.end(15)
    assert code == 130
