"""Loads behaviors and runs from disk."""

import pathlib

from bt_acme import behaviors
from bt_acme.api import runs
from bt_acme.behaviors import download
from bt_acme.config import checks
from bt_acme.runtime import workdir

# A run, a behavior, the workdir of a run, or what `load_behavior` accepts.
Source = runs.Run | behaviors.Exported | str | pathlib.Path


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
  checks.require(
    isinstance(source, (str, pathlib.Path)),
    f'source={source!r} is neither a run nor an exported behavior. Pass one.',
  )
  if workdir.contains_run(source):
    return runs.load_run(source)
  return load_behavior(source)
