"""Heartbeats, as a node sends them."""

import functools
import os

from bt_acme.runtime import heartbeats
from bt_acme.runtime.engines import node_process
from tests.simulation import clock as clock_lib


def test_heartbeats_are_only_sent_to_a_supervisor_and_once_a_second(
  monkeypatch,
):
  def look_for_the_pipe_again():
    look = functools.cache(heartbeats._descriptor.__wrapped__)
    monkeypatch.setattr(heartbeats, '_descriptor', look)

  look_for_the_pipe_again()
  for name in (heartbeats.ATTEMPT_VARIABLE, node_process.PIPE_VARIABLE):
    monkeypatch.delenv(name, raising=False)
  clock = clock_lib.Clock()
  heartbeats.make_heartbeat(clock.monotonic)()
  heartbeats.report_saved()
  assert heartbeats.attempt() == 0 and not heartbeats.is_supervised()
  look_for_the_pipe_again()
  reader, writer = os.pipe()
  monkeypatch.setenv(heartbeats.ATTEMPT_VARIABLE, '2')
  monkeypatch.setenv(node_process.PIPE_VARIABLE, str(writer))
  send = heartbeats.make_heartbeat(clock.monotonic)
  assert heartbeats.attempt() == 2 and heartbeats.is_supervised()
  # Child processes do not inherit the variable.
  assert node_process.PIPE_VARIABLE not in os.environ
  for _ in range(25):
    send()
    clock.now += 0.1
  assert os.read(reader, 100) == heartbeats.MARK * 3
  heartbeats.report_stopping()
  heartbeats.report_saved()
  assert os.read(reader, 100) == heartbeats.STOP_MARK + heartbeats.SAVED_MARK
  os.close(reader)
  heartbeats.report_saved()  # The launcher is gone.
  os.close(writer)
