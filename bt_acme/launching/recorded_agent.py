"""Recreates the agent of an existing run from its `config.json`."""

from typing import Any, List, Sequence

from bt_acme import assembly, behaviors, untrusted
from bt_acme import config as config_lib
from bt_acme.config import names
from bt_acme.launching import named_behaviors
from bt_acme.runtime import behavior_copies
from bt_acme.runtime import workdir as workdir_lib


def make(
  workdir: str,
  identity: names.Values,
  given: Sequence[behaviors.Behavior] = (),
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
    return _make(workdir, identity, given)
  except ValueError as error:
    raise ValueError(f'workdir={workdir!r}: {error}') from error
  except Exception as error:  # An untrusted record can raise any error.
    raise ValueError(
      f'workdir={workdir!r}: its config.json is damaged '
      f'({untrusted.one_line(error)}). Choose another workdir.'
    ) from error


def _make(
  workdir: str,
  identity: names.Values,
  given: Sequence[behaviors.Behavior],
) -> assembly.Agent:
  config = config_lib.from_dict(
    config_lib.AGENTS[identity['agent']], identity['config']
  )
  run = workdir_lib.run_of(workdir, identity)
  spec = assembly.spec_by_name(run.env, num_stacked=run.num_stacked)
  recorded = identity.get('behaviors', [])
  if isinstance(recorded, dict):  # Recorded by a launch script.
    named = named_behaviors.BehaviorsConfig(**recorded)
    paths = [path.strip() for path in named.behavior.split(',')]
    transferred = given or _load(workdir, paths, config)
    return assembly.Agent(config, spec, tuple(transferred), named.weights)
  transferred = given or _load(workdir, recorded, config, only_copies=True)
  names = [behavior.name for behavior in transferred]
  if names != recorded:
    raise ValueError(
      f'behavior={names}, but the run in {workdir!r} transfers {recorded}. '
      'Pass the behaviors of that run to bt_acme.load_run, in that order.'
    )
  weights = tuple(identity.get('behavior_weights', ()))
  return assembly.Agent(config, spec, tuple(transferred), weights)


def _load(
  workdir: str,
  recorded: Sequence[str],
  config: Any,
  only_copies: bool = False,
) -> List[behaviors.Behavior]:
  """Loads the behaviors of a run, from the run's own copies if available.

  Args:
    workdir: the directory of the run.
    recorded: the directory or name of each behavior.
    config: the agent's configuration.
    only_copies: whether to skip behaviors that are neither copied nor built in;
      for records that contain names instead of directories.
  """
  copies = behavior_copies.folders(workdir)
  return [
    behavior
    for index, name in enumerate(recorded)
    if not only_copies or index in copies or name in named_behaviors.BUILT_IN
    for behavior in named_behaviors.make(
      str(copies.get(index, name)), config.transfer
    )
  ]
