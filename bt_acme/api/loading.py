"""Loads behaviors and runs from disk."""

import pathlib

import jax
import numpy as np

from bt_acme import assembly, behaviors
from bt_acme import config as config_lib
from bt_acme.api import runs
from bt_acme.behaviors import download
from bt_acme.config import checks
from bt_acme.core import weight_loading
from bt_acme.launching import named_behaviors
from bt_acme.runtime import workdir

# A run, a behavior, the workdir of a run, or what `load_behavior` accepts.
Source = runs.Run | behaviors.Behavior | str | pathlib.Path


def load_behavior(
  folder: str | pathlib.Path, *, sha256: str = ''
) -> behaviors.Exported:
  """Loads an exported behavior.

  The files are treated as untrusted: nothing in them is executed.

  Args:
    folder: the directory written by `Run.export`, the workdir of a
      pre-training run, which contains a behavior, the name of a behavior that
      comes with the package (`bt_acme.behaviors.list`), or the https address of
      a `.tar.gz` archive of the directory.
    sha256: the SHA-256 of the archive at an address. It can also be appended to
      the address, as in `https://example.org/explorer.tar.gz#sha256=...`.

  Returns:
    The behavior.

  Raises:
    ValueError: if the directory is missing, incomplete or damaged, or if the
      archive cannot be downloaded or has another checksum.

  Example:
    ```python
    behavior = bt_acme.load_behavior('minigrid-explorer')
    print(behavior.actor_steps)
    ```
  """
  checks.require(
    not isinstance(folder, runs.Run),
    f'folder={folder!r} is a run. Pass the directory that its `export` wrote.',
  )
  checks.path('folder', folder)
  chosen = str(folder)
  if sha256:
    checks.require(
      download.is_address(chosen),
      f'sha256={sha256!r}: folder={chosen!r} is not an address. Omit sha256.',
    )
    chosen = f'{chosen}#sha256={sha256}'
  return behaviors.Exported(chosen, setting='folder')


def load_policy(source: Source) -> runs.Run | behaviors.Exported:
  """Returns a run or a behavior, which is loaded if only its name is given.

  Args:
    source: a run, a behavior, the workdir of a run, or anything that
      `load_behavior` accepts.

  Raises:
    ValueError: for anything else, or if the source cannot be loaded.
  """
  if isinstance(source, (runs.Run, behaviors.Exported)):
    return source
  if isinstance(source, (str, pathlib.Path)):
    is_run = workdir.contains_run(source)
    return runs.load_run(source) if is_run else load_behavior(source)
  raise ValueError(
    f'source={source!r} is neither a run nor an exported behavior. Pass one.'
  )


def load_agent(
  source: Source, env: str
) -> tuple[assembly.Agent, assembly.Learned]:
  """Returns the agent of a run or a behavior, and its policy.

  Args:
    source: see `load_policy`; or any other behavior, or the name of a built-in
      one.
    env: the name of the environment; empty for the one used in training.

  Raises:
    ValueError: if the source cannot be loaded or does not fit the environment,
      or if a behavior without training has no environment.
  """
  if isinstance(source, str) and source in named_behaviors.BUILT_IN:
    source = named_behaviors.BUILT_IN[source]()
  # A subclass of an exported behavior may act differently.
  if (
    isinstance(source, behaviors.Behavior)
    and type(source) is not behaviors.Exported
  ):
    checks.require(
      bool(env), f'env={env!r}: name an environment for {source.name!r}.'
    )
    return _following(source, env)
  policy = load_policy(source)
  return assembly.moved(policy.agent, env), policy.learned


def _following(
  behavior: behaviors.Behavior, env: str
) -> tuple[assembly.Agent, assembly.Learned]:
  """Returns an agent whose extra action always has the highest value."""
  config = config_lib.BTConfig(
    network=config_lib.NetworkConfig(torso_size=1, lstm_size=1, head_size=1),
    acting=config_lib.ActingConfig(evaluation_epsilon=0.0),
    transfer=config_lib.TransferConfig(flights=False),
  )
  agent = assembly.Agent(config, assembly.spec_by_name(env), (behavior,))
  variables = jax.tree.map(
    lambda x: np.zeros(x.shape, x.dtype), agent.variable_shapes
  )
  variables.agent[weight_loading.ADVANTAGE_OUTPUT]['b'][-1] = 1.0
  return agent, assembly.Learned(0, variables, None)
