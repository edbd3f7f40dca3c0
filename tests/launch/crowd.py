"""Runs a program of many nodes on machines that this computer simulates.

  .venv/bin/python -m tests.launch.crowd --nodes=256

Launcher, engine and Ray are real, and so is the loss of a machine. The nodes
only send a heartbeat each second, because this computer lacks the memory for as
many actors: a node takes about 8 MB, and its Ray actor 44 MB. The result shows
whether all nodes are scheduled, started, watched, moved and ended, and how much
CPU time the launcher needs.
"""

import argparse
import contextlib
import pathlib
import signal
import sys
import tempfile
import time

import psutil

from tests.launch import machines as machines_lib
from tests.launch import scripts

_MACHINES = 3
_PATIENCE = 900.0  # Seconds.
_WATCH_SECONDS = 30.0
# The code of a node.
_NODE = """
import os, time
while True:
  os.write(int(os.environ['BT_ACME_HEARTBEATS']), b'.')
  time.sleep(1)
"""
# The code of the launcher. Its arguments are the number of nodes, the cluster's
# address, the Python of Ray and the directory for log files.
_PROGRAM = f"""
import sys, types
import bt_acme
import launchpad as lp
from bt_acme.config import placement
from bt_acme.runtime import executables, launcher, supervisor

number, address, python, workdir = sys.argv[1:]
program = lp.Program('crowd')
with program.group('actor'):
  for _ in range(int(number)):
    program.add_node(lp.PyNode(print))
program.add_node(lp.PyNode(print), label='coordinator')
command = [sys.executable, '-S', '-c', {_NODE!r}]
node = types.SimpleNamespace(command_as_list=command)
executables.make = lambda program, addresses: dict.fromkeys(addresses, node)
sys.exit(launcher.launch(program, workdir=workdir, launch_type='ray',
  engine_options=dict(address=address, python=python,
    places=placement.parse('')),
  rules=supervisor.Rules(max_restarts_per_hour=3,
    restarted_labels={{'actor': []}}, watchdog_seconds=120.0)))
"""


def _cpu_seconds(pid):
  """Returns the CPU time of the launcher and its driver."""
  launcher = psutil.Process(pid)
  times = [p.cpu_times() for p in (launcher, *launcher.children())]
  return sum(t.user + t.system for t in times)


def _nodes_on(machines, machine):
  found = machines.processes(machine).values()
  return [c for c in found if ' -S -c ' in c and 'prctl' not in c]


def run(number):
  """Measures start, supervision, loss of a machine and end; returns a table."""
  table = ['| | |', '|---|---|']

  def report(what, value):
    table.append(f'| {what} | {value} |')
    print(table[-1], flush=True)

  with contextlib.ExitStack() as stack:
    folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
    # Two machines can run all nodes.
    machines = machines_lib.Machines(_MACHINES, num_cpus=number // 2 + 1)
    stack.enter_context(contextlib.closing(machines))
    python = str(machines_lib.RAY / 'python')
    command = [
      *(*machines.command_on(0), sys.executable, '-c', _PROGRAM),
      *(str(number), machines.address, python, str(folder)),
    ]
    program = scripts.Program(command, machines_lib.VARIABLES, capture=False)
    launcher = stack.enter_context(program).process
    on_each, lost = [], 0

    def all_run():
      attempts = scripts.num_attempts(folder, 'actor-*')
      if len(attempts) != number or sum(attempts) != number + lost:
        return False
      # An attempt is logged before its process runs.
      on_each[:] = [len(_nodes_on(machines, i)) for i in range(_MACHINES)]
      return sum(on_each) == number + 1

    def wait():
      return scripts.wait_until(all_run, launcher, _PATIENCE, pause=0.5)

    report('start of all nodes, s', f'{wait():.0f}')
    report('nodes on each machine', on_each)
    assert all(on_each)
    used, start = _cpu_seconds(launcher.pid), time.monotonic()
    time.sleep(_WATCH_SECONDS)
    share = (_cpu_seconds(launcher.pid) - used) / (time.monotonic() - start)
    report('cores used by launcher and driver', f'{share:.2f}')
    lost = on_each[2]
    machines.crash(2)
    report('restart of the nodes of a crashed machine, s', f'{wait():.0f}')
    start = time.monotonic()
    launcher.send_signal(signal.SIGINT)
    assert launcher.wait(_PATIENCE) == 130
    report('end after Ctrl-C, s', f'{time.monotonic() - start:.0f}')
    assert not any(_nodes_on(machines, i) for i in range(_MACHINES))
  return '\n'.join(table)


def main():
  parser = argparse.ArgumentParser(description=__doc__)
  parser.add_argument('--nodes', type=int, default=256)
  options = parser.parse_args()
  missing = machines_lib.missing()
  if missing:
    parser.error(f'this needs {missing}')
  run(options.nodes)


if __name__ == '__main__':
  main()
