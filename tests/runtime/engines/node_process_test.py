"""Tests of what is read from the process of a node."""

import os
import time

from bt_acme.runtime.engines import node_process

# Child processes in sessions of their own write without a pause.
_SCRIPT = 'for i in 1 2 3; do setsid yes & done; sleep 0.2'


def test_a_child_process_that_keeps_writing_does_not_prevent_the_end(
  monkeypatch,
):
  monkeypatch.setattr(node_process, '_DRAIN_SECONDS', 1.0)
  process, pipes = node_process.start(['sh', '-c', _SCRIPT], dict(os.environ))
  start = time.monotonic()
  for name, data in node_process.follow(process, pipes):
    assert (name, data[:2]) in (('stdout', b'y\n'), ('stdout', b'\ny'))
    assert time.monotonic() - start < 30.0
    time.sleep(0.01)  # The child process fills the pipe meanwhile.
  assert process.returncode == 0
