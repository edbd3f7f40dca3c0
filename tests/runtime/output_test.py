"""Messages to a terminal or a pipe that is gone."""

import os
import pty
import subprocess
import sys

import pytest

# Every message fails, and finally Python itself flushes both streams.
_PROGRAM = """
import pathlib, sys
from bt_acme.runtime import events, progress, terminal
from bt_acme.runtime.engines import private_network, processes
private_network.make = lambda: ()  # As on a system that forbids namespaces.
for _ in range(2):
  processes.Processes(events.EventQueue())
shown = terminal.Terminal(pathlib.Path('launcher.log'))
shown.print_above('a line')
shown.show('', progress.STATUS_MARK + 'at work')
display = progress.Progress(100)
display.update({'actor_steps': 1})
display.close()
sys.exit(129)
"""


@pytest.mark.parametrize('make', [os.pipe, pty.openpty])
def test_a_program_ends_as_usual_without_its_terminal(make, tmp_path):
  reader, writer = make()
  os.close(reader)
  # Tests may run without the buffer that Python flushes.
  variables = {k: v for k, v in os.environ.items() if k != 'PYTHONUNBUFFERED'}
  done = subprocess.run(
    [sys.executable, '-c', _PROGRAM],
    **{'stdout': writer, 'stderr': writer, 'cwd': tmp_path},
    env={**variables, 'PYTHONPATH': os.pathsep.join(filter(None, sys.path))},
    timeout=60,
  )
  os.close(writer)
  assert done.returncode == 129
