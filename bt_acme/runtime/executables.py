"""Makes the executables of a program's nodes with Launchpad.

Launchpad gives each node its addresses, its clients of other nodes and the
notice to stop. A node's function is sent to another process. The function must
carry its settings with it and cannot read flags, because a Launchpad process
parses only Launchpad's flags. The process imports the module of the function,
so `make_node` is not in `program`, which imports every node.
"""

import functools
import os
import socket
import sys
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import launchpad as lp
from launchpad import context as lp_context

from bt_acme import compilation_cache
from bt_acme.runtime import heartbeats, provenance
from bt_acme.runtime import node as node_lib

_T = TypeVar('_T')


def make_node(node_class: Any, *arguments: Any, **clients: Any) -> Any:
  """Makes a node in its process, where Launchpad turns handles into clients.

  Args:
    node_class: the node's class, called with the arguments and, last, the
      node's `node.Context`.
    *arguments: the arguments of the node.
    **clients: handles of other nodes, by the name of the context's field.
  """
  compilation_cache.enable()
  lp.register_stop_handler(heartbeats.report_stopping)
  return node_class(
    *arguments,
    node_lib.Context(
      lp.wait_for_stop,
      lp.register_stop_handler,
      attempt=heartbeats.attempt(),
      send_heartbeat=heartbeats.make_heartbeat(),
      report_saved=heartbeats.report_saved,
      **clients,
    ),
  )


def require_workdir(
  make: Callable[..., Any], workdir: str, session: provenance.Session
) -> Callable[..., Any]:
  """Wraps a function to fail immediately without the run's directory.

  It raises RuntimeError if the path refers to a different directory, as on a
  machine that does not share the file system.

  Args:
    make: the function that the process calls first.
    workdir: the run's directory.
    session: the session of the run.
  """

  def check_and_make(*arguments: Any, **clients: Any) -> Any:
    if provenance.current(workdir) != session:
      raise RuntimeError(
        f'workdir={workdir!r} on {socket.gethostname()} is not the directory '
        'of this run. Use a directory that all machines share, or place the '
        'learner, replay and coordinator on the machine of the launcher.'
      )
    return make(*arguments, **clients)

  return check_and_make


def _by_title(by_label: Mapping[str, Sequence[_T]]) -> dict[str, _T]:
  return {
    f'{label}/{index}': value
    for label, values in by_label.items()
    for index, value in enumerate(values)
  }


def _run_and_exit(run: Callable[[], None]) -> None:
  """Runs a node to its end, and then exits its process with code 0.

  Python aborts a process if a thread returns from native code, such as a call
  to another node, while the interpreter ends. So the interpreter does not end.
  """
  run()
  sys.stdout.flush()
  sys.stderr.flush()
  os._exit(0)


def _to_executables(label: str, nodes: Sequence[Any]) -> Sequence[Any]:
  context = nodes[0].launch_context
  functions = nodes
  if context.launch_type is lp_context.LaunchType.LOCAL_MULTI_PROCESSING:
    functions = [
      types.SimpleNamespace(
        function=functools.partial(_run_and_exit, node.function)
      )
      for node in nodes
    ]
  return nodes[0].to_executables(functions, label, context)


def prepare(program: lp.Program, *, in_this_process: bool) -> dict[str, int]:
  """Tells the nodes where they will run, as Launchpad does first.

  Args:
    program: the program.
    in_this_process: whether the nodes will be threads of this process.

  Returns:
    The number of ports that each node listens on, by title.
  """
  launch_type = lp_context.LaunchType.LOCAL_MULTI_PROCESSING
  if in_this_process:
    launch_type = lp_context.LaunchType.LOCAL_MULTI_THREADING
  nodes = _by_title(program.groups)
  for node in nodes.values():
    node._initialize_context(launch_type, launch_config=None)
  return {title: len(node.addresses) for title, node in nodes.items()}


def make(
  program: lp.Program, addresses: Mapping[str, list[str]]
) -> dict[str, Any]:
  """Makes the executables of a program after `prepare`.

  Args:
    program: the program.
    addresses: by title, `host:port` of each port of the node.

  Returns:
    The executables by title: functions for threads, otherwise Launchpad's
    `Command`, whose `command_as_list` starts a process on any machine.
  """
  for title, node in _by_title(program.groups).items():
    for address, text in zip(node.addresses, addresses[title], strict=True):
      address.bind(types.SimpleNamespace(build=lambda text=text: text))
  return _by_title(
    {
      label: _to_executables(label, nodes)
      for label, nodes in program.groups.items()
      if nodes
    }
  )
