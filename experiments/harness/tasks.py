"""What workers execute: the paper's runs, and what other experiments run."""

import pathlib
from typing import Any, Callable, Protocol, Sequence

# Takes what a task that is executed tells about itself.
Report = Callable[[Any], None]


class Task(Protocol):
  """Something to do once, in the folder that all workers share.

  It is done by a script, or by the task itself in a process of `hosts`. These
  tasks can be pickled, and have a method `execute(folder, report)` as well.
  """

  @property
  def id(self) -> str:
    """Names its files in the queue. Tasks of the same id are the same."""

  @property
  def is_evaluation(self) -> bool:
    """Whether it learns nothing, and leaves GPUs to those that do."""

  @property
  def needed(self) -> Sequence['Task']:
    """The tasks that must not fail if this one is to be ready."""

  def is_done(self, folder: pathlib.Path) -> bool:
    """Returns whether all that it should leave is there."""

  def is_ready(self, folder: pathlib.Path) -> bool:
    """Returns whether what it needs is there."""
