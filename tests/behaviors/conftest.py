"""Fixtures for the tests of behaviors."""

import pytest

from tests.agents import fakes


@pytest.fixture(name='exported', scope='session')
def export_once(tmp_path_factory):
  """Exports a small NGU policy and returns its directory."""
  folder = tmp_path_factory.mktemp('behavior') / 'b'
  fakes.export_behavior(folder)
  return folder
