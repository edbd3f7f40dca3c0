"""Tests the Makefile with a set-up that does nothing."""

import functools
import os
import pathlib
import shutil
import subprocess

import pytest

_ROOT = pathlib.Path(__file__).parents[1]
run = functools.partial(subprocess.run, capture_output=True, text=True)


def test_tests_named_in_the_makefile_exist():
  printed = run(['make', '-pn', 'help'], cwd=_ROOT).stdout
  (named,) = [x for x in printed.splitlines() if x.startswith('CORE_TESTS :=')]
  for name in named.split()[2:]:
    path, _, function = name.partition('::')
    assert (_ROOT / path).exists(), path
    if function:
      assert f'def {function}(' in (_ROOT / path).read_text(), name


@pytest.fixture(name='make')
def make_with_fake_setup(tmp_path):
  """Returns a function that runs a target, given the status of the set-up."""
  shutil.copy(_ROOT / 'Makefile', tmp_path)
  (tmp_path / 'scripts').mkdir()
  setup = tmp_path / 'scripts' / 'setup.sh'

  def make(*arguments, status=0):
    setup.write_text(f'#!/bin/sh\n[ "$1" = full ] || exit {status}\n')
    setup.chmod(0o755)
    environment = {**os.environ, 'MAKEFLAGS': ''}  # `make test` has its own.
    names = ('FULL', 'CORE', 'COLAB', 'ACCEL')
    command = ['make', '--no-print-directory']
    command += [f'PYTHON_{name}=echo' for name in names]
    return run([*command, *arguments], cwd=tmp_path, env=environment)

  return make


@pytest.mark.parametrize(
  'target', ('test-full', 'test-core', 'test-colab', 'test-accelerators')
)
def test_only_missing_packages_skip_tests(target, make):
  done = make(target)
  assert done.returncode == 0 and '-m pytest' in done.stdout
  assert 'skipped' not in done.stdout
  for status, reason in ((3, 'Python 3.12 is missing'), (4, 'its packages')):
    skipped = make(target, status=status)
    assert skipped.returncode == 0
    assert f'because {reason}' in skipped.stdout
  failed = make(target, status=1)
  assert failed.returncode != 0
  assert 'skipped' not in failed.stdout and '-m pytest' not in failed.stdout


# Stands for a Python 3.12 whose pip reaches no index.
_OFFLINE = """#!/bin/sh
case "$*" in
  -c*) echo "$0" ;;
  '-m venv'*) mkdir -p "$3/bin" && cp "$0" "$3/bin/python" ;;
  *) echo 'ERROR: No matching distribution found for libtpu'; exit 1 ;;
esac
"""


@pytest.mark.parametrize('name, status', [('core', 1), ('accelerators', 4)])
def test_only_packages_for_compilation_are_optional(name, status, tmp_path):
  for folder in ('scripts', 'requirements'):
    shutil.copytree(_ROOT / folder, tmp_path / folder)
  shutil.copy(_ROOT / 'setup.py', tmp_path)
  python = tmp_path / 'python'
  python.write_text(_OFFLINE)
  python.chmod(0o755)
  environment = {**os.environ, 'BT_ACME_PYTHON': str(python)}
  done = run(['scripts/setup.sh', name], cwd=tmp_path, env=environment)
  assert done.returncode == status, done.stderr
  assert 'No matching distribution found for libtpu' in done.stderr


@pytest.mark.parametrize('has_gpu', (False, True))
def test_the_check_of_a_gpu_installs_what_it_needs(
  has_gpu, make, tmp_path, monkeypatch
):
  smi = tmp_path / 'bin' / 'nvidia-smi'
  smi.parent.mkdir()
  smi.write_text(f'#!/bin/sh\nexit {0 if has_gpu else 9}\n')
  python = tmp_path / 'python'  # It has no package, so that `-c` fails.
  python.write_text('#!/bin/sh\n[ "$1" = -m ] && echo "$@"\n')
  for path in (smi, python):
    path.chmod(0o755)
  monkeypatch.setenv('PATH', f'{smi.parent}:{os.environ["PATH"]}')
  done = make('gpu-check', f'PYTHON_FULL={python}', 'ARGS=--scale=tiny')
  assert done.returncode == 0, done.stderr
  assert ('.[cuda12]' in done.stdout) == has_gpu
  assert done.stdout.splitlines()[-1] == '-m benchmarks.gpu_check --scale=tiny'


def test_owner_is_no_option_of_notebooks(make):
  assert 'make_notebooks.py' in make('notebooks').stdout
  done = make('notebooks', 'OWNER=name')
  assert done.returncode != 0
  assert 'use make owner OWNER=name' in done.stderr
