"""Nodes as processes: none of them is left behind, however they end."""

import time

import pytest

pytest.importorskip('launchpad', reason='needs the full environment')

from tests.runtime import programs


def test_node_killed_by_the_system_ends_program(tmp_path):
  with programs.Run(tmp_path, 'local_mp', ['die']) as run:
    code, _, errors = run.end()
    assert code == 1
    assert 'error: worker/0 was killed (SIGKILL): is the machine out' in errors
    assert not run.survivors()


def test_no_process_outlives_a_killed_launcher(tmp_path):
  with programs.Run(tmp_path, 'local_mp', ['idle', 'stubborn']) as run:
    run.wait_for('idle', 'stubborn', 'coordinator')
    processes = run.survivors()
    assert len(processes) == 5
    # The environment given to the label `worker` reaches its two nodes only.
    greetings = [process.environ().get('GREETING') for process in processes]
    assert greetings.count('hello') == 2 and greetings.count(None) == 3
    run.process.kill()
    run.process.wait()
    deadline = time.monotonic() + 5
    while run.survivors() and time.monotonic() < deadline:
      time.sleep(0.05)
    assert not run.survivors()
