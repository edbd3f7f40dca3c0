"""Replay servers of both sides, each in a process of its own."""

import functools
import multiprocessing
import os
import pathlib
from typing import Any, Callable, NamedTuple

import reverb

from benchmarks import acme_side, our_side
from bt_acme import assembly


def _serve(make_server: Callable[[], reverb.Server], pipe: Any) -> None:
  server = make_server()
  pipe.send(server.port)
  pipe.recv()
  server.stop()


class ServerProcess:
  """A replay server in a process of its own.

  Attributes:
    client: of the server.
  """

  def __init__(self, make_server: Callable[[], reverb.Server]):
    # A fork of a process that has loaded Reverb hangs.
    context = multiprocessing.get_context('spawn')
    self._pipe, theirs = context.Pipe()
    self._process = context.Process(
      target=_serve, args=(make_server, theirs), daemon=True
    )
    self._process.start()
    self.client = reverb.Client(f'localhost:{self._pipe.recv()}')

  def resident_bytes(self) -> int:
    """Memory that the process takes."""
    statm = pathlib.Path(f'/proc/{self._process.pid}/statm').read_text()
    return int(statm.split()[1]) * os.sysconf('SC_PAGE_SIZE')

  def num_items(self) -> int:
    """Sequences in its table."""
    (info,) = self.client.server_info().values()
    return int(info.current_size)

  def stop(self) -> None:
    """Ends the process."""
    self._pipe.send(None)
    self._process.join(10)
    self._process.kill()


class Servers(NamedTuple):
  """A server of each side; `with` stops both."""

  ours: ServerProcess
  theirs: ServerProcess

  def __enter__(self) -> 'Servers':
    return self

  def __exit__(self, *exception: Any) -> None:
    self.ours.stop()
    self.theirs.stop()


def _start_acme_replay(game: str, config: Any) -> reverb.Server:
  return acme_side.start_replay(game, config)[0]


def start(agent: assembly.Agent, acme_config: Any) -> Servers:
  """Starts the replay of an agent of ours, and that of dm-acme's R2D2."""
  return Servers(
    ServerProcess(functools.partial(our_side.start_replay, agent)),
    ServerProcess(
      functools.partial(_start_acme_replay, agent.spec.name, acme_config)
    ),
  )
