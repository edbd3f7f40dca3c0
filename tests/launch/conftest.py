"""Fixtures for tests of the launch scripts."""

import pytest

from tests.launch import scripts


@pytest.fixture(name='server', scope='session')
def start_server():
  """Returns a server that runs scripts with all imports done."""
  server = scripts.Server()
  yield server
  server.close()
