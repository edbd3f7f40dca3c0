"""The agent of a run, made from what the run wrote down about itself."""

from typing import Any, List, Sequence

from bt_acme import assembly, behaviors, untrusted
from bt_acme import config as config_lib
from bt_acme.cli import named_behaviors
from bt_acme.config import names
from bt_acme.runtime import behavior_copies
from bt_acme.runtime import workdir as workdir_lib


def make(
  workdir: str,
  identity: names.Values,
  given: Sequence[behaviors.Behavior] = (),
) -> assembly.Agent:
  """Makes the agent of a run.

  Args:
    workdir: the folder of the run.
    identity: what `workdir.read_identity` returned for it.
    given: the behaviors that it transfers; needed if one of them is neither
      exported nor built in.

  Raises:
    ValueError: if the behaviors are others than those of the run, or missing,
      or if the record is damaged.
  """
  try:
    return _make(workdir, identity, given)
  except ValueError as error:
    raise ValueError(f'workdir={workdir!r}: {error}') from error
  except Exception as error:  # Whatever a stranger's record makes of the code.
    raise ValueError(
      f'workdir={workdir!r}: its config.json is damaged '
      f'({untrusted.one_line(error)}): choose another workdir.'
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
  if isinstance(recorded, dict):  # Those of a launch script.
    named = named_behaviors.BehaviorsConfig(**recorded)
    paths = [path.strip() for path in named.behavior.split(',')]
    transferred = given or _load(workdir, paths, config)
    return assembly.Agent(config, spec, tuple(transferred), named.weights)
  transferred = given or _load(workdir, recorded, config, only_kept=True)
  names = [behavior.name for behavior in transferred]
  if names != recorded:
    raise ValueError(
      f'behavior={names}, but the run in {workdir!r} transfers {recorded}: '
      'give the behaviors of that run to bt_acme.load_run, in that order.'
    )
  weights = tuple(identity.get('behavior_weights', ()))
  return assembly.Agent(config, spec, tuple(transferred), weights)


def _load(
  workdir: str,
  recorded: Sequence[str],
  config: Any,
  only_kept: bool = False,
) -> List[behaviors.Behavior]:
  """Loads the behaviors of a run: its own copies, where it has kept some.

  Args:
    workdir: the folder of the run.
    recorded: the folder or the name of each behavior.
    config: the agent's configuration.
    only_kept: whether to leave out what is neither copied nor built in, because
      `recorded` has names that are no folders.
  """
  copies = behavior_copies.folders(workdir)
  return [
    behavior
    for index, name in enumerate(recorded)
    if not only_kept or index in copies or name in named_behaviors.BUILT_IN
    for behavior in named_behaviors.make(
      named_behaviors.BehaviorsConfig(behavior=str(copies.get(index, name))),
      config.transfer,
    )
  ]
