"""Tests of exit codes and signals of launch scripts."""

import signal
import subprocess
import textwrap

import pytest

from experiments import launching


@pytest.fixture(name='write')
def _write(tmp_path, monkeypatch):
  monkeypatch.setattr(launching, 'ROOT', tmp_path)
  (tmp_path / 'launch').mkdir()

  def write(text):
    (tmp_path / 'launch' / 'script.py').write_text(textwrap.dedent(text))

  return write


def test_flags_and_exit_code_are_passed_on(write):
  write('import sys; sys.exit(len(sys.argv) + 4)')
  assert launching.launch('script.py', ['--a=1', '--b=2']) == 7


def test_a_signal_during_the_start_is_passed_on(tmp_path, monkeypatch):
  process = subprocess.Popen(['sleep', '60'])
  monkeypatch.setattr(
    subprocess, 'Popen', lambda *_, **__: signal.raise_signal(15) or process
  )
  assert launching.execute([], tmp_path) == -signal.SIGTERM


@pytest.mark.parametrize('signum', [signal.SIGINT, signal.SIGTERM])
def test_sigterm_is_passed_on_and_an_interrupt_is_left_to_the_script(
  write, signum
):
  # Ctrl-C reaches both processes; the script decides when to exit.
  before = signal.getsignal(signum)
  write(f"""
    import os, signal, sys, time
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(9))
    os.kill(os.getppid(), {int(signum)})
    time.sleep({20 if signum == signal.SIGTERM else 0.2})
    sys.exit(130)
  """)
  code = launching.launch('script.py', [])
  assert code == (9 if signum == signal.SIGTERM else 130)
  assert signal.getsignal(signum) is before
