"""Tests the Makefile with a set-up that does nothing."""

import os
import pathlib
import shutil
import subprocess

import pytest

_ROOT = pathlib.Path(__file__).parents[1]


def test_tests_named_in_the_makefile_exist():
  printed = subprocess.run(
    ['make', '-pn', 'help'], cwd=_ROOT, capture_output=True, text=True
  ).stdout
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
    interpreters = [f'PYTHON_{name}=echo' for name in ('FULL', 'CORE', 'COLAB')]
    return subprocess.run(
      ['make', *interpreters, *arguments],
      cwd=tmp_path,
      env=environment,
      capture_output=True,
      text=True,
      check=False,
    )

  return make


@pytest.mark.parametrize('target', ('test-full', 'test-core', 'test-colab'))
def test_only_a_missing_python_skips_tests(target, make):
  done = make(target)
  assert done.returncode == 0 and '-m pytest' in done.stdout
  assert 'skipped' not in done.stdout
  skipped = make(target, status=3)
  assert skipped.returncode == 0
  assert 'because Python 3.12 is missing' in skipped.stdout
  failed = make(target, status=1)
  assert failed.returncode != 0
  assert 'skipped' not in failed.stdout and '-m pytest' not in failed.stdout


def test_owner_is_no_option_of_notebooks(make):
  assert 'make_notebooks.py' in make('notebooks').stdout
  done = make('notebooks', 'OWNER=name')
  assert done.returncode != 0
  assert 'use make owner OWNER=name' in done.stderr
