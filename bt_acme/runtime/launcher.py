"""Runs a program on the engine that `lp_launch_type` selects.

To add an engine, write a module in `engines/` and add a line to `ENGINES`. Runs
in one process do not need one: `launching.starting` executes them itself.
"""

import math
import pathlib
from collections.abc import Mapping
from typing import Any

import launchpad as lp

from bt_acme.runtime import events, interrupts, supervisor
from bt_acme.runtime.engines import base, processes, ray_cluster, threads

# Engine classes by `lp_launch_type`; `config.run` lists the allowed values.
ENGINES: dict[str, type[base.Engine]] = {
  'local_mp': processes.Processes,
  'local_mt': threads.Threads,
  'ray': ray_cluster.RayCluster,
}


def launch(
  program: lp.Program,
  *,
  workdir: str | pathlib.Path,
  launch_type: str = 'local_mp',
  engine_options: Mapping[str, Any] | None = None,
  environments: Mapping[str, Mapping[str, str]] | None = None,
  ports: Mapping[str, int] | None = None,
  rules: supervisor.Rules | None = None,
) -> int:
  """Runs a program until its main node ends, a node fails, or the user stops.

  Must be called from the main thread, because Python handles signals only
  there. With `local_mt`, a node that ignores the request to stop can only be
  ended together with the process, so this function then exits the process with
  the exit code.

  Args:
    program: the nodes, grouped by label. They must poll `lp.wait_for_stop`.
    workdir: the directory of the run. The output of each process is written to
      `processes/LABEL-INDEX.log` in it.
    launch_type: a key of `ENGINES`: `local_mp` starts a process for each node,
      `local_mt` a thread, `ray` a process on a machine of a cluster.
    engine_options: keyword arguments of the engine; see its class.
    environments: by label, environment variables of its processes in addition
      to those of this process, as {'actor': {'JAX_PLATFORMS': 'cpu'}}. Threads
      share the environment of this process.
    ports: by label, the port of the label's first node; by default a free port.
    rules: how the program ends, and the node failures from which it recovers;
      threads recover from none.

  Returns:
    An exit code: 0; 1 after a failure; 128 + the number of the signal that
    stopped the program (130 for Ctrl-C).
  """
  engine_class = ENGINES[launch_type]
  rules = rules or supervisor.Rules()
  if engine_class.in_this_process:
    rules = rules._replace(max_restarts_per_hour=0, watchdog_seconds=math.inf)
  queue = events.EventQueue()
  with interrupts.put_into(queue):
    return supervisor.Supervisor(
      lambda: engine_class(queue, **(engine_options or {})),
      queue,
      workdir,
      rules,
      environments or {},
      ports or {},
    ).run(program)
