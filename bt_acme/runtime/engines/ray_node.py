"""Runs a node's process on a machine of a cluster, for `ray_driver`.

The driver sends this module to the machines together with `node_process`, so
both import only the standard library and Ray.
"""

import contextlib
import os
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from typing import Any

import node_process  # In the directory of this script.
import ray

# Variables that Ray sets in its workers, or that belong to Ray's own Python.
_OF_RAY = ('RAY_', 'OMP_NUM_THREADS', 'PYTHONPATH', 'VIRTUAL_ENV')
# Placeholders in a command for values that only this process knows.
_PARENT = '{parent}'
_DATA_FILE = '{data_file}'


class NodeRunner:
  """Ray actor that reserves a node's slot and runs the node's process there."""

  def __init__(self) -> None:
    self._process: subprocess.Popen | None = None

  def find_ports(self, number: int) -> tuple[str, list[int]]:
    """Returns this machine's address, and some of its free ports."""
    with contextlib.ExitStack() as stack:
      probes = [stack.enter_context(socket.socket()) for _ in range(number)]
      for probe in probes:
        probe.bind(('', 0))
      ports = [probe.getsockname()[1] for probe in probes]
    return ray.util.get_node_ip_address(), ports

  def run(
    self,
    command: list[str],
    environment: Mapping[str, str],
    data: bytes,
    folder: str,
  ) -> Iterator[dict[str, Any]]:
    """Runs the process until it exits.

    The kernel kills the process when the thread that started it ends, which is
    the thread of this generator.

    Args:
      command: the words of the command, with `_PARENT` and `_DATA_FILE`.
      environment: environment variables in addition to those of the machine.
      data: the content of the file whose path replaces `_DATA_FILE`.
      folder: the working directory, if it exists on this machine.

    Yields:
      Events as in `ray_driver`, without the title: `started`, any number of
      `output`, and `ended`.
    """
    own = {k: v for k, v in os.environ.items() if not k.startswith(_OF_RAY)}
    with tempfile.TemporaryDirectory() as own_folder:
      try:
        path = os.path.join(own_folder, 'data')
        with open(path, 'wb') as file:
          file.write(data)
        known = {_PARENT: str(os.getpid()), _DATA_FILE: path}
        process, pipes = node_process.start(
          [known.get(word, word) for word in command],
          {**own, **environment},
          cwd=folder if os.path.isdir(folder) else None,
        )
      except OSError as error:
        reason = f'cannot be started on {socket.gethostname()}: {error}.'
        yield {'event': 'ended', 'code': 1, 'reason': reason}
        return
      self._process = process
      yield {'event': 'started'}
      for stream, data in node_process.follow(process, pipes):
        text = data.decode('latin-1')
        yield {'event': 'output', 'stream': stream, 'data': text}
      yield {'event': 'ended', 'code': process.returncode, 'reason': ''}

  def signal(self, signum: int) -> None:
    """Sends a signal to the process; SIGKILL goes to its whole session."""
    assert self._process is not None
    node_process.send(self._process, signum)
