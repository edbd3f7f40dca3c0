"""Shared fixtures of the command-line tests."""

import pytest


@pytest.fixture(name='folder', scope='session')
def export(tmp_path_factory):
  """Returns the directory of an exported behavior."""
  from tests.agents import fakes

  folder = tmp_path_factory.mktemp('behavior') / 'b'
  fakes.export_behavior(folder)
  return str(folder)
