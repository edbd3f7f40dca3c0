"""Tests the time limits of tests."""

import shutil
import subprocess

from tests import python

_STUCK = """
import signal, time
def test_python(): time.sleep(1000)
def test_after(): pass
def test_uninterruptible():
  signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])
  time.sleep(1000)
"""


def test_a_test_that_takes_too_long_fails_and_prints_its_stack(tmp_path):
  (tmp_path / 'stuck_test.py').write_text(_STUCK)
  for name in ('pyproject.toml', 'tests/conftest.py'):
    shutil.copy(python.ROOT / name, tmp_path)
  options = ['-n1', '--max-worker-restart=0', '-ofaulthandler_timeout=3']
  done = python.run(
    *('-m', 'pytest', *options, 'stuck_test.py'),
    cwd=tmp_path,
    stdin=subprocess.DEVNULL,
    timeout=100,
  )
  assert done.returncode == 1
  output = done.stdout + done.stderr
  assert 'test_python took more than 1 s' in output
  assert 'crashed while running' in output
  for name in ('test_python', 'test_uninterruptible'):
    assert f'in {name}\n' in output
  assert '2 failed, 1 passed' in output
