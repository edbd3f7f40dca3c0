r"""The nodes of a run and the connections between them.

  actors --transitions--> replay --batches--> learner --parameters--> actors
     \                                          |  \--> evaluators
      \--steps, episodes--> coordinator <-------/         |
                                 ^------------------------/

With `inference=server`, an additional node on the learner's accelerator selects
the actions of all actors.
"""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

import launchpad as lp

from bt_acme.agents import builders as builders_lib
from bt_acme.config import run as run_config
from bt_acme.replay import writer
from bt_acme.runtime import (
  actor_node,
  coordinator,
  evaluator_node,
  executables,
  inference_node,
  learner_node,
  progress,
  provenance,
  replay_server,
  reverb_learner,
  seeds,
  supervisor,
)

_SPARE_THREADS = 4  # For calls to the inference server besides `act`.


def rules(
  run: run_config.RunConfig, next_program: Callable[[], lp.Program]
) -> supervisor.Rules:
  """Returns the rules by which a run is supervised.

  Args:
    run: the run.
    next_program: makes the program to restart.
  """
  return supervisor.Rules(
    # The learner has not saved if it fails during the shutdown.
    checked_labels=('learner',),
    max_restarts_per_hour=run.max_restarts,
    # The inference server holds the state of the actors' episodes, so actors
    # restart with it. Other nodes hold state that all nodes need: when one of
    # them fails, the program restarts from its checkpoint.
    restarted_labels={'inference': ('actor',), 'actor': (), 'evaluator': ()},
    next_program=next_program,
    watchdog_seconds=run.watchdog_seconds,
  )


def make_program(
  run: run_config.RunConfig,
  builder: builders_lib.AgentBuilder,
  *,
  initial_params: Any = None,
) -> lp.Program:
  """Makes the program of a run, with its nodes connected to each other.

  Args:
    run: the run.
    builder: builds the parts of the agent.
    initial_params: initial parameters of the Q-network; None for random ones.

  Returns:
    A program for `launcher.launch`.
  """
  # Each session of the run uses new seeds. They are computed here, because the
  # machines of the actors need not see the workdir.
  session = provenance.current(run.workdir)
  seed = seeds.for_run(run.seed, session.number)
  acting_run = dataclasses.replace(run, seed=seed)
  program = lp.Program('bt_acme')
  handles: dict[str, Any] = {}

  def here(make: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps `make` to fail immediately on a machine without the workdir."""
    if run.spans_machines:
      return executables.require_workdir(make, run.workdir, session)
    return make

  def add(
    label: str,
    node_class: Any,
    *arguments: Any,
    clients: Sequence[str] = (),
    kind: Any = lp.CourierNode,
    make: Callable[..., Any] = executables.make_node,
    **options: Any,
  ) -> None:
    """Adds a node that has clients of nodes that were added before."""
    node_clients = {client: handles[client] for client in clients}
    node = kind(make, node_class, *arguments, **node_clients, **options)
    handles[label] = program.add_node(node, label)

  make_tables = functools.partial(builder.make_replay_tables, None)
  handles['replay'] = program.add_node(
    replay_server.ReplayServer(run, here(make_tables)), 'replay'
  )
  add(
    'coordinator',
    *(coordinator.Coordinator, run, progress.Progress),
    make=here(executables.make_node),
  )
  add(
    'learner',
    *(learner_node.LearnerNode, run, builder.agent),
    functools.partial(reverb_learner.make, builder, initial_params),
    clients=('coordinator', 'replay'),
    make=here(executables.make_node),
  )
  if run.inference == 'server':
    # Each request blocks a thread of its own.
    threads = run.num_groups + _SPARE_THREADS
    add(
      'inference',
      *(inference_node.InferenceNode, acting_run, builder.agent),
      clients=('learner',),
      courier_kwargs={'thread_pool_size': threads},
    )
  clients = tuple(handles)
  for index in range(run.num_actors):
    add(
      'actor',
      *(actor_node.ActorNode, acting_run, builder.agent, index),
      writer.ReverbWriter,
      clients=clients,
      kind=lp.PyClassNode,
    )
  for index in range(run.num_evaluators):
    add(
      'evaluator',
      *(evaluator_node.EvaluatorNode, run, builder.agent, index),
      clients=('coordinator', 'learner'),
      kind=lp.PyClassNode,
    )
  return program
