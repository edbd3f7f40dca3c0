"""Tests the error for builders without the full stack."""

import importlib.util

import pytest

from bt_acme import installation
from tests import python


def test_missing_packages_are_named_with_the_fix(monkeypatch):
  installed = dict.fromkeys(('acme', 'launchpad', 'reverb', 'tensorflow'), ...)
  monkeypatch.setattr(importlib.util, 'find_spec', installed.get)
  installation.require_full_stack()
  del installed['launchpad'], installed['reverb']
  with pytest.raises(ImportError) as error:
    installation.require_full_stack()
  message = str(error.value)
  assert 'needs dm-launchpad, dm-reverb, which' in message
  assert 'Python 3.10 on Linux x86_64' in message
  assert 'pip install .' in message
  assert '\n' not in message


def test_importing_a_builder_without_the_stack_fails():
  program = """
import sys
for name in ('acme', 'launchpad', 'reverb', 'tensorflow'):
  sys.modules[name] = None
from bt_acme.agents import BTBuilder
"""
  last_line = python.run('-c', program).stderr.splitlines()[-1]
  assert last_line.startswith('ImportError: bt_acme.agents needs dm-acme, ')
