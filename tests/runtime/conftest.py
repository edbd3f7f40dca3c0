"""Shared fixtures of the runtime tests."""

import resource

import pytest


@pytest.fixture(name='limit_file_size')
def make_limit():
  """Limits the size of files in bytes; None removes the limit."""
  _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)

  def limit(size):
    soft = hard if size is None else size
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

  yield limit
  limit(None)
