"""Errors about ports that cannot be used."""

import pytest

from bt_acme.runtime import ports


@pytest.mark.parametrize('port', [0, 65536])
def test_port_out_of_range(port):
  with pytest.raises(ValueError, match=f'replay_port={port} must lie in'):
    ports.check_free(port, setting='replay_port')
