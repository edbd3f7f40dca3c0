"""Copies of exported behaviors in the workdir of a run in one process."""

import pathlib
import shutil

from bt_acme import assembly, behaviors, files
from bt_acme.config import run as run_config

_FOLDER = 'behaviors'


def folders(workdir: str) -> dict[int, pathlib.Path]:
  """Returns the directories of the copied behaviors, by behavior index.

  Only exported behaviors are copied.

  Args:
    workdir: the directory of the run.
  """
  paths = (pathlib.Path(workdir) / _FOLDER).glob('*/*')
  return {
    int(path.parent.name): path
    for path in paths
    if path.parent.name.isdecimal()
  }


def keep(config: run_config.RunConfig, agent: assembly.Agent) -> None:
  """Copies exported behaviors, so that the run needs only its workdir."""
  copies = folders(config.workdir)
  for index, behavior in enumerate(agent.behaviors):
    if isinstance(behavior, behaviors.Exported) and index not in copies:
      copy = pathlib.Path(config.workdir) / _FOLDER / str(index)
      with files.new_folder(copy) as temporary:
        shutil.copytree(behavior.folder, temporary / behavior.name)
