"""The copies of exported behaviors that a run in one process keeps."""

import pathlib
import shutil
from typing import Dict

from bt_acme import assembly, behaviors, files
from bt_acme.config import run as run_config

_FOLDER = 'behaviors'


def folders(workdir: str) -> Dict[int, pathlib.Path]:
  """Returns the folders of the behaviors that a run transfers, by their index.

  A run keeps a copy of each that was exported; of others it cannot.

  Args:
    workdir: the folder of the run.
  """
  kept = (pathlib.Path(workdir) / _FOLDER).glob('*/*')
  return {
    int(path.parent.name): path for path in kept if path.parent.name.isdecimal()
  }


def keep(config: run_config.RunConfig, agent: assembly.Agent) -> None:
  """Copies behaviors, so that the run needs nothing but its workdir."""
  copies = folders(config.workdir)
  for index, behavior in enumerate(agent.behaviors):
    if isinstance(behavior, behaviors.Exported) and index not in copies:
      kept = pathlib.Path(config.workdir) / _FOLDER / str(index)
      with files.new_folder(kept) as temporary:
        shutil.copytree(behavior.folder, temporary / behavior.name)
