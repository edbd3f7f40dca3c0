"""What several tests of the command line share."""

import pytest


@pytest.fixture(name='folder', scope='session')
def export(tmp_path_factory):
  """The folder of an exported behavior."""
  from tests.agents import fakes

  folder = tmp_path_factory.mktemp('behavior') / 'b'
  fakes.export_behavior(folder)
  return str(folder)
