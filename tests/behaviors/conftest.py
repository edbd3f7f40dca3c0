"""What the tests of behaviors share."""

import pytest

from tests.agents import fakes


@pytest.fixture(name='whole', scope='session')
def export_once(tmp_path_factory):
  folder = tmp_path_factory.mktemp('behavior') / 'b'
  fakes.export_behavior(folder)
  return folder
