"""Starts and controls `ray_machines.py`."""

import contextlib
import json
import pathlib
import subprocess
from unittest import mock

from tests.launch import machines as machines_lib

PYTHON = machines_lib.RAY / 'python'
_SCRIPT = pathlib.Path(__file__).with_name('ray_machines.py')


class Machines:
  """A cluster of two machines; the second can crash."""

  def __init__(self):
    self._process = subprocess.Popen(
      [PYTHON, _SCRIPT],
      stdin=subprocess.PIPE,
      stdout=subprocess.PIPE,
      stderr=subprocess.DEVNULL,
      text=True,
    )
    self.address = self._answer()['address']

  def _answer(self):
    """Reads the next answer; Ray may print lines of its own before it."""
    for line in self._process.stdout:
      if line.startswith('{'):
        return json.loads(line)
    raise AssertionError('The cluster has ended.')

  def crash(self):
    self._process.stdin.write('crash\n')
    self._process.stdin.flush()
    self._answer()

  def close(self):
    self._process.stdin.close()
    self._process.wait(60)
    self._process.stdout.close()


@contextlib.contextmanager
def start():
  """Runs a cluster during the block, and sets the variables to join it."""
  with mock.patch.dict('os.environ', machines_lib.VARIABLES):
    with contextlib.closing(Machines()) as machines:
      yield machines
