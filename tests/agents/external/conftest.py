"""Fixtures for the tests of external agents."""

import pytest

from bt_acme import behaviors
from tests.agents import fakes


@pytest.fixture(scope='session')
def exported(tmp_path_factory):
  """Returns a small exported NGU policy with random parameters."""
  folder = tmp_path_factory.mktemp('exported') / 'behavior'
  fakes.export_behavior(folder)
  return behaviors.Exported(str(folder))
