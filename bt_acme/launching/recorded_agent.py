"""Records the agent of a run, and recreates the agent and its policy.

The record is in `config.json`, the policy in the newest checkpoint. Behaviors
are recorded by directory or name, in the order of their extra actions.
"""

import dataclasses
import os
import pathlib
import shutil
from collections.abc import Sequence
from typing import Any

from bt_acme import assembly, behaviors, files, learner_assembly, untrusted
from bt_acme import config as config_lib
from bt_acme.acting import statistics_store
from bt_acme.behaviors import exported_folder
from bt_acme.config import checks, names
from bt_acme.config import run as run_config
from bt_acme.launching import initial_weights, named_behaviors
from bt_acme.runtime import (
  checkpoints,
  old_checkpoints,
  resume_checks,
  saved_nodes,
)
from bt_acme.runtime import workdir as workdir_lib

_COPIES = 'behaviors'  # The directory of `keep_behaviors`.


def start_options(
  agent: assembly.Agent,
  seed: int,
  weights: initial_weights.WeightsConfig,
  source: behaviors.Exported | None = None,
) -> dict[str, Any]:
  """Returns the arguments of `starting.start` that depend on given parameters.

  The checksums of parameters are part of a run's identity, and
  `workdir.claim` compares them instead of directories.

  Args:
    agent: the agent. Its behaviors that were not exported are identified by
      their names.
    seed: the seed of the weights that are not loaded.
    weights: the initial weights.
    source: the behavior in `init_from`, if it has already been loaded.

  Raises:
    ValueError: if `init_from` cannot be loaded, or has another architecture.
  """
  origins = [
    (x.source, x.params_sha256)
    if type(x) is behaviors.Exported  # A subclass may act differently.
    else (x.name, x.name)
    for x in agent.behaviors
  ]
  identity: dict[str, Any] = {}
  params = None
  if origins:
    identity['behaviors'] = [name for name, _ in origins]
    identity['behavior_weights'] = list(agent.behavior_weights)
  if weights.init_from:
    source = source or behaviors.Exported(
      weights.init_from, setting='init_from'
    )
    params = initial_weights.load(weights, source, agent, seed)
    identity['weights'] = dataclasses.asdict(weights)
  if identity:
    identity[resume_checks.PARAMS] = {
      'behaviors': [checksum for _, checksum in origins],
      'init_from': source and source.params_sha256,
    }
  return {'initial_params': params, 'identity': identity}


def make(
  workdir: str, identity: names.Values, given: Sequence[behaviors.Behavior] = ()
) -> assembly.Agent:
  """Recreates the agent of a run.

  Args:
    workdir: the directory of the run.
    identity: the result of `workdir.read_identity`.
    given: the behaviors that the run transfers; required if one of them is
      neither exported nor built in.

  Raises:
    ValueError: if the behaviors are missing or differ from the behaviors of the
      run, or if the record is damaged.
  """
  try:
    config = config_lib.from_dict(
      config_lib.AGENTS[identity['agent']], identity['config']
    )
    run = workdir_lib.run_of(workdir, identity)
    return assembly.Agent(
      config,
      assembly.spec_by_name(run.env, num_stacked=run.num_stacked),
      _behaviors(workdir, identity, config, given),
      tuple(identity.get('behavior_weights', ())),
    )
  except ValueError as error:
    raise ValueError(f'workdir={workdir!r}: {error}') from error
  except Exception as error:  # An untrusted record can raise any error.
    raise ValueError(
      f'workdir={workdir!r}: its config.json is damaged '
      f'({untrusted.one_line(error)}). Choose another workdir.'
    ) from error


def _behaviors(
  workdir: str,
  identity: names.Values,
  config: Any,
  given: Sequence[behaviors.Behavior],
) -> tuple[behaviors.Behavior, ...]:
  """Returns the behaviors of a run, from its own copies if available."""
  recorded = identity.get('behaviors', [])
  copies = _copies(workdir)
  if given:
    for behavior in given:
      checks.require(
        isinstance(behavior, behaviors.Behavior),
        f'behavior={behavior!r} is not a behavior. Pass objects, not names.',
      )
    expected = [
      copies[i].name if i in copies else name for i, name in enumerate(recorded)
    ]
    found = [behavior.name for behavior in given]
    checks.require(
      found == expected,
      f'behavior={found}, but the run transfers {expected}. Pass the '
      'behaviors of that run to bt_acme.load_run, in that order.',
    )
  checksums = identity.get(resume_checks.PARAMS, {}).get('behaviors', ())
  loaded: list[behaviors.Behavior] = []
  for i, name in enumerate(recorded):
    has_no_files = name in checksums and name not in named_behaviors.BUILT_IN
    if given:
      behavior = given[i]
    elif has_no_files and i not in copies:
      raise ValueError(
        f'{name!r} is your own behavior. Pass the behaviors {recorded} to '
        'bt_acme.load_run.'
      )
    else:
      behavior = named_behaviors.load(str(copies.get(i, name)))
    if checksums and type(behavior) is behaviors.Exported:
      checks.require(
        behavior.params_sha256 == checksums[i],
        f'{behavior.source!r} is not the behavior that the run transfers: its '
        'parameters differ. Restore that behavior, or rerun the command of the '
        'run with the directory that contains it now.',
      )
    loaded += named_behaviors.make(behavior, config.transfer)
  return tuple(loaded)


def read_policy(
  run: run_config.RunConfig, agent: assembly.Agent
) -> assembly.Learned:
  """Reads the learned policy from the newest checkpoint of a run.

  Raises:
    ValueError: if there is no checkpoint, or if it does not fit the agent.
  """
  shapes = learner_assembly.state_shapes(agent)
  # This must not write: the run may be active or belong to another user.
  old = old_checkpoints.read(run, shapes)
  restored = (
    checkpoints.restore(run.checkpoint_folder, shapes)
    if old is None
    else old[:2]
  )
  if restored is None:
    raise ValueError(
      f'workdir={run.workdir!r} has no checkpoint yet. Let the run continue '
      'until it has written one, or pass the directory of an exported behavior.'
    )
  state, values = restored
  with saved_nodes.refusals(run):  # Damaged values can raise any error.
    store = statistics_store.StatisticsStore()
    store.restore(values['learner']['statistics'])
    statistics = store.merged()
    actor_steps = int(values['counts'].get('actor_steps', 0))
  return assembly.Learned(
    actor_steps,
    assembly.Variables(state.params, state.intrinsic_params),
    statistics,
  )


def check_behaviors(run: run_config.RunConfig, agent: assembly.Agent) -> None:
  """Raises ValueError if a behavior to copy is not the one in its directory."""
  for behavior in _not_kept(run, agent).values():
    checks.require(
      exported_folder.is_complete(behavior.folder, behavior.params_sha256),
      f'behavior={behavior.folder!r} has changed since it was loaded. Load it '
      'again, or pass an unchanged copy.',
    )


def keep_behaviors(run: run_config.RunConfig, agent: assembly.Agent) -> None:
  """Copies exported behaviors, so that the run needs only its workdir."""
  for index, behavior in _not_kept(run, agent).items():
    copy = pathlib.Path(run.workdir) / _COPIES / str(index)
    with files.new_folder(copy) as temporary:
      (temporary / behavior.name).mkdir()
      # The directory may also contain anything else, even the workdir.
      for name in exported_folder.FILES:
        file = os.path.join(behavior.folder, name)
        shutil.copyfile(file, temporary / behavior.name / name)


def _not_kept(
  run: run_config.RunConfig, agent: assembly.Agent
) -> dict[int, behaviors.Exported]:
  """Returns the exported behaviors without a copy, by index."""
  copies = _copies(run.workdir)
  return {
    i: behavior
    for i, behavior in enumerate(agent.behaviors)
    if type(behavior) is behaviors.Exported and i not in copies
  }


def _copies(workdir: str) -> dict[int, pathlib.Path]:
  """Returns the directories of the copied behaviors, by behavior index."""
  folder = pathlib.Path(workdir) / _COPIES
  # Unlike pathlib, os.path does not raise if the name is too long.
  paths = folder.glob('*/*') if os.path.isdir(folder) else ()
  return {int(p.parent.name): p for p in paths if p.parent.name.isdecimal()}
