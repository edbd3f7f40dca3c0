"""What the tests of external agents share."""

import pytest

from bt_acme import behaviors
from tests.agents import fakes


@pytest.fixture(scope='session')
def exported(tmp_path_factory):
  """A small NGU policy, as pre-training exports it, with random parameters."""
  folder = tmp_path_factory.mktemp('exported') / 'behavior'
  fakes.export_behavior(folder)
  return behaviors.Exported(str(folder))
