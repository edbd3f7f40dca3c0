"""Runs a program on the engine that `lp_launch_type` selects.

To add an engine, write a module in `engines/` and add a line to `ENGINES`.
"""

import pathlib
from collections.abc import Collection, Mapping
from typing import Any

import launchpad as lp

from bt_acme.runtime import events, interrupts, restarts, supervisor
from bt_acme.runtime import ports as ports_lib
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
  main_label: str = 'coordinator',
  checked_labels: Collection[str] = (),
  grace_seconds: float = 10.0,
  policy: restarts.RestartPolicy | None = None,
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
    main_label: the program ends when the node with this label exits.
    checked_labels: the labels of nodes whose failure fails the program even
      during shutdown. Other nodes may fail then, because their servers stop as
      well.
    grace_seconds: the seconds between the request to stop and SIGKILL. When the
      program completes, nodes of `checked_labels` have six times as long.
    policy: the node failures from which the program recovers; by default, and
      always for threads, none.

  Returns:
    An exit code: 0; 1 after a failure; 128 + the number of the signal that
    stopped the program (130 for Ctrl-C).

  Raises:
    ValueError: before anything is started, if the launch type or a label is
      unknown, or a port is in use.
  """
  if launch_type not in ENGINES:
    raise ValueError(
      f'lp_launch_type={launch_type!r} is unknown. Choose one of '
      f'{sorted(ENGINES)}.'
    )
  chosen_class = ENGINES[launch_type]
  environments, ports = environments or {}, ports or {}
  if policy is None or chosen_class.in_this_process:
    policy = restarts.RestartPolicy()
  labels = (main_label, *checked_labels, *policy.labels)
  for label in (*labels, *environments, *ports):
    if label not in program.groups:
      raise ValueError(
        f'label={label!r} is not in the program. Choose one of '
        f'{sorted(program.groups)}.'
      )
  for label, port in ports.items():
    ports_lib.check_free(port, setting=f'{label}_port')
  queue = events.EventQueue()
  with interrupts.put_into(queue):
    return supervisor.Supervisor(
      lambda: chosen_class(queue, **(engine_options or {})),
      queue,
      workdir=workdir,
      environments=environments,
      ports=ports,
      main_label=main_label,
      checked_labels=checked_labels,
      grace_seconds=grace_seconds,
      policy=policy,
    ).run(program)
