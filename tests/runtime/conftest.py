"""What several tests of this folder share."""

import resource

import pytest


@pytest.fixture(name='room')
def prune_replays():
  """Limits the size of files, in bytes; None takes the limit away."""
  _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)

  def limit(size):
    soft = hard if size is None else size
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

  yield limit
  limit(None)
