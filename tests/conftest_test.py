"""Tests the time limits of tests."""

import pathlib
import shutil
import subprocess
import sys

_ROOT = pathlib.Path(__file__).parents[1]
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
  for path in (_ROOT / 'pyproject.toml', _ROOT / 'tests' / 'conftest.py'):
    shutil.copy(path, tmp_path)
  options = ['-n1', '--max-worker-restart=0', '-ofaulthandler_timeout=3']
  done = subprocess.run(
    [sys.executable, '-m', 'pytest', *options, 'stuck_test.py'],
    cwd=tmp_path,
    stdin=subprocess.DEVNULL,
    stdout=subprocess.PIPE,
    stderr=subprocess.STDOUT,
    text=True,
    timeout=100,
  )
  assert done.returncode == 1
  assert 'test_python took more than 1 s' in done.stdout
  assert 'crashed while running' in done.stdout
  for name in ('test_python', 'test_uninterruptible'):
    assert f'in {name}\n' in done.stdout
  assert '2 failed, 1 passed' in done.stdout
