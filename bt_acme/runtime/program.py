r"""The nodes of a run and who talks to whom.

  actors --transitions--> replay --batches--> learner --parameters--> actors
     \                                          |  \--> evaluators
      \--steps, episodes--> coordinator <-------/         |
                                 ^------------------------/

With `inference=server` one more node, on the learner's accelerator, chooses the
actions of all actors.
"""

import dataclasses
import functools
from typing import Any, Callable

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
)

# The labels that a launcher has to know: the run is over when the coordinator
# is, and it has failed if the learner could not save.
MAIN_LABEL = 'coordinator'
CHECKED_LABELS = ('learner',)
# The nodes that are started anew while the others go on, and which ones have to
# start anew with them. The inference server holds the state of the actors'
# episodes, which they cannot go on with when it is gone. Other nodes hold what
# all need, so that the program goes back to its checkpoint without them.
RESTARTED_LABELS = {'inference': ('actor',), 'actor': (), 'evaluator': ()}

_SPARE_THREADS = 4  # For calls to the inference server besides `act`.


def make_program(
  run: run_config.RunConfig,
  builder: builders_lib.AgentBuilder,
  *,
  initial_params: Any = None,
) -> lp.Program:
  """Connects the nodes of a run.

  Args:
    run: the run.
    builder: builds the parts of the agent.
    initial_params: parameters of the Q-network to start from; None for fresh
      ones.

  Returns:
    A program for `launcher.launch`.
  """
  # No actor has a seed that an earlier session of the run had. Machines that
  # act need not see the workdir.
  session = provenance.current(run.workdir)
  acting_run = dataclasses.replace(run, seed=session.seed(run.seed))
  program = lp.Program('bt_acme')

  def here(make: Callable[..., Any]) -> Callable[..., Any]:
    """What reads and writes the workdir has to see it."""
    if run.spans_machines:
      return executables.beside_workdir(make, run.workdir, session)
    return make

  with program.group('replay'):
    replay = program.add_node(
      replay_server.ReplayServer(
        run,
        here(
          executables.with_signs(
            functools.partial(builder.make_replay_tables, None)
          )
        ),
      )
    )
  with program.group('coordinator'):
    coordinator_client = program.add_node(
      lp.CourierNode(
        here(executables.make_node),
        coordinator.Coordinator,
        run,
        progress.Progress,
      )
    )
  clients = {'replay': replay, 'coordinator': coordinator_client}
  with program.group('learner'):
    learner = program.add_node(
      lp.CourierNode(
        here(executables.make_node),
        learner_node.LearnerNode,
        run,
        builder.agent,
        functools.partial(reverb_learner.make, builder, initial_params),
        **clients,
      )
    )
  clients['learner'] = learner
  if run.inference == 'server':
    # Each request waits in a thread of its own.
    threads = run.num_groups + _SPARE_THREADS
    with program.group('inference'):
      clients['inference'] = program.add_node(
        lp.CourierNode(
          executables.make_node,
          inference_node.InferenceNode,
          acting_run,
          builder.agent,
          learner=learner,
          courier_kwargs={'thread_pool_size': threads},
        )
      )
  with program.group('actor'):
    for index in range(run.num_actors):
      program.add_node(
        lp.PyClassNode(
          executables.make_node,
          actor_node.ActorNode,
          acting_run,
          builder.agent,
          index,
          writer.ReverbWriter,
          **clients,
        )
      )
  with program.group('evaluator'):
    for index in range(run.num_evaluators):
      program.add_node(
        lp.PyClassNode(
          executables.make_node,
          evaluator_node.EvaluatorNode,
          run,
          builder.agent,
          index,
          coordinator=coordinator_client,
          learner=learner,
        )
      )
  return program
