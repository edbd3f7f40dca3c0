"""Starts and resumes runs, for `launch/run_*.py` and `bt_acme.api`.

`check` rejects invalid settings before anything is started or written.
"""

import functools
import os
import pathlib
import shutil
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bt_acme import assembly, compilation_cache, environments, installation
from bt_acme import config as config_lib
from bt_acme.behaviors import exported_folder
from bt_acme.config import checks, placement
from bt_acme.config import run as run_config
from bt_acme.core import data_parallel
from bt_acme.evaluation import tables
from bt_acme.launching import recorded_agent
from bt_acme.replay import memory_estimate
from bt_acme.runtime import (
  checkpoints,
  coordinator,
  environment_variables,
  freed_memory,
  interrupts,
  launch_checks,
  output,
  progress,
  provenance,
  replay_checkpoints,
  resume_checks,
  saved_nodes,
  workdir,
  workdir_lock,
)
from bt_acme.runtime.engines import in_process


def start(
  run: run_config.RunConfig,
  agent: assembly.Agent,
  *,
  initial_params: Any = None,
  identity: Mapping[str, Any] | None = None,
  make_display: coordinator.MakeDisplay | None = None,
  callbacks: Sequence[in_process.Callback] = (),
) -> int:
  """Starts or resumes a run and waits until it ends.

  Args:
    run: the configuration of the run.
    agent: the agent: R2D2, NGU or BT.
    initial_params: initial parameters of the Q-network, if any.
    identity: additional identity of the run; see `workdir.claim`.
    make_display: creates the display of a run in one process, given the budget
      of actor steps. With a display, the messages of the launch scripts are not
      printed; None prints them and shows a progress bar.
    callbacks: functions that a run in one process calls after each iteration.
      If any of them returns True, the run saves its state and stops.

  Returns:
    The exit code of the process.

  Raises:
    FloatingPointError: if the learner of a run in one process has diverged.
    OSError: if the disk is full, when the run starts or in one process.
    RuntimeError: if a run in one process, started by a script, raises
      ValueError after it has started.
    ValueError: before anything starts, if the settings are invalid or if
      another run uses the workdir.
  """
  if not run.uses_launchpad:
    freed_memory.share_one_arena()  # `check` lets JAX start its threads.
  check(run, agent)
  by_script = make_display is None

  def execute(resumed: bool, begin_next: Callable[[], None]) -> int:
    if by_script:
      _announce(run, agent, resumed)
    recorded_agent.keep_behaviors(run, agent)
    if run.uses_launchpad:
      return _launch_nodes(run, agent, initial_params, begin_next)
    return _run_in_process(run, agent, initial_params, make_display, callbacks)

  identity = {**(identity or {}), **({} if run.uses_launchpad else ENGINE)}
  with workdir_lock.held(run.workdir):
    code = run_session(run, agent.config, identity, execute)
  if code is None and by_script:
    steps = tables.counted(workdir.completed_steps(run.workdir), 'actor step')
    output.show(
      f'The run in {run.workdir} has completed its {steps}. Raise '
      'max_actor_steps to continue.'
    )
  stopped = [interrupts.exit_code(x) for x in interrupts.stop_signals()]
  if run.uses_launchpad and by_script and code in stopped:
    output.show('Stopped. Rerun the same command to resume.')
  return code or 0


# Part of the identity of runs in one process, because the checkpoints of other
# runs do not contain the states of actors.
ENGINE = {'engine': 'in_process'}


def run_session(
  run: run_config.RunConfig,
  config: config_lib.R2D2Config,
  identity: Mapping[str, Any],
  execute: Callable[[bool, Callable[[], None]], int],
) -> int | None:
  """Claims the workdir of a run, and runs and records one session.

  Args:
    run: the run, whose workdir is locked.
    config: the agent's configuration.
    identity: see `workdir.claim`.
    execute: a function that executes the run and returns its exit code. Its
      arguments are whether the run is resumed, and a function to call when the
      run restarts from its checkpoint, which records a new session.

  Returns:
    The exit code; None if the run was already completed.

  Raises:
    ValueError: if the workdir belongs to another run, or if the budget is too
      small; see `check_budget`.
  """
  resumed = workdir.claim(run, config, identity)
  if workdir.is_completed(run):
    return None
  check_budget(run)
  if run.uses_launchpad and resumed:
    replay_checkpoints.check(run, config.replay)
  params = identity.get(resume_checks.PARAMS, {})
  settings = {name: getattr(run, name) for name in resume_checks.OF_SESSION}
  begin = functools.partial(provenance.begin, run.workdir, params, **settings)

  def begin_next() -> None:
    provenance.end(run.workdir)
    begin()

  begin()
  try:
    code = execute(resumed, begin_next)
  finally:
    provenance.end(run.workdir)
  if code == 0:
    workdir.mark_completed(run)
  return code


def check_budget(run: run_config.RunConfig) -> None:
  """Raises ValueError if a lowered budget is smaller than the steps taken.

  The budget of the last session is accepted, which its last steps may exceed.
  """
  last = provenance.last_settings(run.workdir).get('max_actor_steps', 0)
  if 0 < last <= run.max_actor_steps:
    return
  with saved_nodes.refusals(run):  # Damaged values can raise any error.
    steps = checkpoints.actor_steps(run.checkpoint_folder)
  checks.require(
    run.max_actor_steps >= steps,
    f'max_actor_steps={run.max_actor_steps} is less than the {steps} steps '
    'taken. Pass the total number of steps.',
  )


def check(run: run_config.RunConfig, agent: assembly.Agent) -> None:
  """Raises ValueError if the settings of a run are invalid on this machine."""
  num_names = len(environments.names_in(run.env))
  for name, value in (
    (run.environments_setting, run.num_environments),
    # One evaluator plays all episodes of an evaluation.
    ('evaluation_episodes', run.num_evaluators and run.evaluation_episodes),
  ):
    checks.require(
      value >= num_names or not value,
      f'env={run.env!r} lists {num_names} environments, more than {name}='
      f'{value}. Raise {name}, or list fewer environments.',
    )
  if run.uses_launchpad:
    try:
      installation.require_full_stack()
    except ImportError as error:
      raise ValueError(
        f'lp_launch_type={run.lp_launch_type!r} cannot be used: {error} Set '
        "lp_launch_type='in_process', which does not need them either."
      ) from error
  else:
    checks.require_defaults(
      agent.config.replay, 'codec', without='a run in one process'
    )
  # Otherwise, only the learner's process can see the learner's devices.
  if run.is_in_this_process or os.environ.get('JAX_PLATFORMS') == 'cpu':
    data_parallel.make_shardings(agent.config.learner)
  if run.spans_machines:
    from bt_acme.runtime.engines import ray_cluster

    checks.require(
      bool(shutil.which(run.ray_python)),
      f'ray_python={run.ray_python!r} is not an executable. Run `make ray` to '
      'create an environment with Ray, or set ray_python to a Python in which '
      'Ray is installed.',
    )
    try:
      ray_cluster.check(run.ray_address, run.ray_python)
    except OSError as error:
      raise ValueError(
        f'ray_address={run.ray_address!r}, ray_python={run.ray_python!r}: '
        f'{error}'
      ) from error
  if agent.intrinsic is not None:
    exported_folder.check_replaceable(pathlib.Path(run.behavior_folder))
  launch_checks.check(run, agent)
  recorded_agent.check_behaviors(run, agent)


def _announce(
  run: run_config.RunConfig, agent: assembly.Agent, resumed: bool
) -> None:
  """Prints a summary of the run, its memory estimate, and warnings."""
  actors = f'{tables.counted(run.num_actors, "actor")}, '
  output.show(
    f'{"Resuming" if resumed else "Starting"} {type(agent.config).__name__} '
    f'on {run.env} in {run.workdir}: {actors if run.uses_launchpad else ""}'
    f'{tables.counted(run.num_environments, "environment")}, '
    f'{tables.counted(run.max_actor_steps, "actor step")}.'
  )
  if run.uses_launchpad:
    replay = memory_estimate.estimate(agent.replay_layout)
    size = memory_estimate.size_in_words(replay)
    output.show(
      f'A full replay takes about {size} if it compresses like Atari frames.'
    )
    if shortage := replay_checkpoints.shortage(run, replay):
      output.show(f'Warning: {shortage}')
  if run.spans_machines:
    output.show(
      'Warning: the nodes listen on ports of their machines without a '
      'password. Anyone who can connect can run code there, so the machines '
      'must be on a private network (see SECURITY.md).'
    )
  if resumed and not checkpoints.numbers(pathlib.Path(run.checkpoint_folder)):
    output.show(
      'Warning: the workdir has no checkpoint, so the run starts at step 0.'
    )
  if warning := launch_checks.oversubscription_warning(run):
    output.show(f'Warning: {warning}')


def _run_in_process(
  run: run_config.RunConfig,
  agent: assembly.Agent,
  initial_params: Any,
  make_display: coordinator.MakeDisplay | None,
  callbacks: Sequence[in_process.Callback],
) -> int:
  """Runs all nodes in this thread, and returns the exit code."""
  compilation_cache.enable()
  # After a signal other than Ctrl-C, `noted` ends the program.
  with interrupts.noted() as noted:
    engine = in_process.InProcess(
      run,
      agent,
      make_display=make_display or progress.Progress,
      initial_params=initial_params,
      should_stop=lambda: noted() is not None,
    )
    try:
      finished = engine.run(callbacks)
    except ValueError as error:
      # A script reports other ValueErrors as wrong flags.
      if engine.has_started and make_display is None:
        raise RuntimeError('The run failed.') from error
      raise
    interrupt = noted()
    if not finished and make_display is None:
      steps = engine.coordinator.get_counts().get('actor_steps', 0)
      output.show(
        f'Stopped after {tables.counted(steps, "actor step")}; state saved. '
        'Rerun the same command to resume.'
      )
  if finished:
    return 0
  return (
    interrupts.STOPPED if interrupt is None else interrupts.exit_code(interrupt)
  )


def _launch_nodes(
  run: run_config.RunConfig,
  agent: assembly.Agent,
  initial_params: Any,
  begin_next: Callable[[], None],
) -> int:
  """Starts the nodes, waits until they end, and returns the exit code.

  Args:
    run: the run.
    agent: the agent.
    initial_params: initial parameters of the Q-network, if any.
    begin_next: a function that records a new session, for restarts of the run.
  """
  # Imported here because runs in one process do not need Acme's stack.
  from bt_acme.agents import builders
  from bt_acme.runtime import launcher
  from bt_acme.runtime import program as program_lib

  def make_program() -> Any:
    return program_lib.make_program(
      run, builders.AgentBuilder(agent), initial_params=initial_params
    )

  def next_program() -> Any:
    begin_next()
    return make_program()

  return launcher.launch(
    make_program(),
    workdir=run.workdir,
    launch_type=run.lp_launch_type,
    engine_options=_engine_options(run),
    environments=environment_variables.by_label(),
    ports={'replay': run.replay_port} if run.replay_port else None,
    rules=program_lib.rules(run, next_program),
  )


def _engine_options(run: run_config.RunConfig) -> dict[str, Any]:
  """Returns the options of the run's engine."""
  if run.lp_launch_type == 'local_mp':
    return {'open_ports': run.open_ports}
  if not run.spans_machines:
    return {}
  return {
    'address': run.ray_address,
    'python': run.ray_python,
    'places': placement.parse(run.placement),
  }
