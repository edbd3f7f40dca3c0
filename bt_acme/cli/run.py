"""From settings to a running program: what `launch/run_*.py` share.

Whatever a user can get wrong is refused by `check`, before anything starts and
before anything is written.
"""

import os
from typing import Any, Mapping, Optional

from absl import flags as absl_flags

from bt_acme import assembly
from bt_acme.agents import builders as builders_lib
from bt_acme.config import run as run_config
from bt_acme.core import data_parallel
from bt_acme.replay import memory_estimate
from bt_acme.runtime import (
  launcher,
  ports,
  process_environments,
  requirements,
  workdir,
)
from bt_acme.runtime import program as program_lib

FLAGS = absl_flags.FLAGS


def environment_spec(run: run_config.RunConfig) -> assembly.EnvironmentSpec:
  """Returns the spec of the run's environment.

  Raises:
    ValueError: if there is no such environment.
  """
  return assembly.spec_by_name(run.env, num_stacked=run.num_stacked)


def launch(
  run: run_config.RunConfig,
  builder: builders_lib.AgentBuilder,
  *,
  initial_params: Any = None,
  identity: Optional[Mapping[str, Any]] = None,
) -> int:
  """Runs an agent's program to its end.

  Args:
    run: where it runs, with how many processes, and for how long.
    builder: builds the agent.
    initial_params: parameters of the Q-network to start from, if any.
    identity: what else distinguishes this run from others in the same workdir.

  Returns:
    The exit code of the process.
  """
  agent = builder.agent
  check(run, agent)
  resumed = workdir.claim(run, agent.config, identity)
  if workdir.is_completed(run):
    print(
      f'The run in {run.workdir} has taken its {run.max_actor_steps:,} actor '
      'steps: raise max_actor_steps to go on.'
    )
    return 0
  _announce(run, agent, resumed)
  code = _launch(run, builder, initial_params)
  if code == 0:
    workdir.mark_completed(run)
  return code


def check(run: run_config.RunConfig, agent: assembly.Agent) -> None:
  """Raises ValueError for a run that could not do what it is meant to."""
  launcher.engine_class(FLAGS.lp_launch_type)  # It raises for an unknown one.
  # Elsewhere only the learner's process sees the learner's devices.
  if os.environ.get('JAX_PLATFORMS') == 'cpu':
    data_parallel.make_shardings(agent.config.learner)
  if run.replay_port:
    ports.check_free(run.replay_port, setting='replay_port')
  requirements.check(run, agent)


def _announce(
  run: run_config.RunConfig, agent: assembly.Agent, resumed: bool
) -> None:
  """Prints what is about to run, and what memory it is going to take."""
  print(
    f'{"Resuming" if resumed else "Starting"} {type(agent.config).__name__} '
    f'on {run.env} in {run.workdir}: {run.num_actors} actors of '
    f'{run.envs_per_actor} environments, {run.max_actor_steps:,} actor steps.'
  )
  print(memory_estimate.estimate(agent.config.replay, agent.replay_shapes))


def _launch(
  run: run_config.RunConfig,
  builder: builders_lib.AgentBuilder,
  initial_params: Any,
) -> int:
  """Starts the nodes, waits for their end, and returns the exit code."""
  program = program_lib.make_program(
    run, builder, initial_params=initial_params
  )
  return launcher.launch(
    program,
    workdir=run.workdir,
    launch_type=FLAGS.lp_launch_type,
    environments=process_environments.of_labels(program.groups),
    ports={'replay': run.replay_port} if run.replay_port else None,
    main_label=program_lib.MAIN_LABEL,
    checked_labels=program_lib.CHECKED_LABELS,
  )
