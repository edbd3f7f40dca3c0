"""Ports of this machine."""

import socket


def check_free(port: int, setting: str = 'port') -> None:
  """Checks that a server can listen on a port of this machine.

  Args:
    port: the port, in [1, 65535].
    setting: the name of the user's setting for it.

  Raises:
    ValueError: if the port is out of range or cannot be used.
  """
  if not 0 < port < 1 << 16:
    raise ValueError(f'{setting}={port} must lie in [1, 65535].')
  with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
    # A port counts as free while its last connections are in TIME_WAIT.
    probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
      probe.bind(('', port))
    except OSError as error:
      raise ValueError(
        f'{setting}={port} cannot be used ({error.strerror}). Choose another '
        'port, or end the program that uses this one.'
      ) from error
